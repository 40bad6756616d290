// What the tests of the backend on a device share. They run on the emulated device (emulation.hpp)
// where it stands first on the include path, and on a real one otherwise.
#pragma once

#include "testing.hpp"
#include "wanamaker/backend/cublas.hpp"

namespace wanamaker_test {

/// A backend with a small workspace for cuBLAS.
template <class B>
B small_backend() {
  wanamaker::CublasOptions options;
  options.workspace_bytes = std::size_t{64} << 10;
  return B(options);
}

}  // namespace wanamaker_test
