// What the emulated device watches, and what tests may ask it.
//
// Memory: device pointers lead into one region that the host may not touch but while queued work
// runs, so that a dereference elsewhere ends the test; allocations are filled with NaN, stand
// between guards that are looked at whenever the host waits, and are filled again when they are
// freed.
// Order: what is launched, copied or filled is queued by stream and runs only when the host waits
// for it, so that a missing wait reads what was there before; pinned memory is read late, as on a
// device, all other host memory when the copy is asked for.
// Kernels: the threads of a block are fibers that take turns at barriers, in rising and in falling
// order by turns: a missing barrier changes results; one that not all threads reach is a fault, and
// so is a parameter that points to memory of the host. Not seen: races within what runs between
// two barriers where any order gives the same, warps (the library's kernels use none of their
// operations), device limits (registers, shared memory), and speed.
// Products: by columns, operands checked to lie in one allocation each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cublas_v2.h"

namespace cuda_emulation {

/// The call of this name that comes `after` others of it fails with this status, once.
void fail(const std::string& call, int status, int after = 0);
/// No call fails any more.
void fail_nothing();

/// What was found wrong since the last time; each fault has made a wait fail, too.
std::vector<std::string> take_faults();

/// Device allocations that are not freed.
std::size_t live_allocations();

/// Calls of this name so far.
std::size_t calls_of(const std::string& call);

/// A block has at most so many threads (a power of two): fewer take less time. Kernels must be
/// right for any number. 1: no fibers.
void set_threads_per_block(unsigned most);

/// Whether the host may read this address now; false for device memory.
bool is_readable(const void* address);

/// What a handle was set to.
struct HandleState {
  cudaStream_t stream;
  void* workspace;
  std::size_t workspace_bytes;
  cublasPointerMode_t pointer_mode;
  cublasMath_t math;
  cublasAtomicsMode_t atomics;
};
HandleState state_of(cublasHandle_t handle);

}  // namespace cuda_emulation
