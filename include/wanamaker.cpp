// The C interface of wanamaker.h, by EigenBackend<float>.
#define WANAMAKER_C_COMPILED
#include "wanamaker.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/embed.hpp"
#include "wanamaker/embed/artefact.hpp"

namespace {

using namespace wanamaker;
using B = EigenBackend<float>;

/// What is refused here, with the status that a caller sees.
class Refused : public Error {
 public:
  Refused(wanamaker_status status, const Problem& problem) : Error(problem), status_(status) {}
  wanamaker_status status() const { return status_; }

 private:
  wanamaker_status status_;
};

void require(const void* pointer, const char* where) {
  if (pointer != nullptr) return;
  throw Refused(WANAMAKER_NULL, {.id = "c/null",
                                 .where = where,
                                 .what = "a null pointer",
                                 .mend = "pass the address of an object"});
}

/// Open objects by handles that no other had before. The upper half of a handle says of which kind
/// it is.
template <class T>
class Registry {
 public:
  explicit Registry(std::uint64_t kind) : next_(kind << 32) {}

  std::uint64_t add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    objects_.emplace(++next_, std::move(object));
    return next_;
  }
  std::shared_ptr<T> find(std::uint64_t handle, const char* where) {
    const std::lock_guard lock(mutex_);
    return place(handle, where)->second;
  }
  /// The object, which ends when the last call that uses it does.
  std::shared_ptr<T> remove(std::uint64_t handle, const char* where) {
    const std::lock_guard lock(mutex_);
    const auto found = place(handle, where);
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  auto place(std::uint64_t handle, const char* where) {
    const auto found = objects_.find(handle);
    if (found != objects_.end()) return found;
    throw Refused(WANAMAKER_BAD_HANDLE, {.id = "c/handle",
                                         .where = where,
                                         .what = "nothing open has this handle",
                                         .found = std::to_string(handle),
                                         .mend = "pass a handle that was opened and not closed"});
  }

  std::mutex mutex_;
  std::uint64_t next_;
  std::map<std::uint64_t, std::shared_ptr<T>> objects_;
};

/// The caller's executor as ours. What a piece throws waits until all are done: no exception passes
/// through the caller's code.
class HostExecutor {
 public:
  explicit HostExecutor(const wanamaker_executor* host)
      : host_(host ? *host : wanamaker_executor{}) {
    if (host == nullptr) return;
    require(reinterpret_cast<const void*>(host_.run), "wanamaker_session_open: executor.run");
    if (host_.concurrency >= 1 && host_.concurrency <= 1024) return;
    throw ShapeError({.id = "c/concurrency",
                      .where = "wanamaker_session_open: executor",
                      .what = "no number of threads",
                      .expected = "1 to 1024",
                      .found = std::to_string(host_.concurrency),
                      .mend = "say how many pieces may be in work at once"});
  }

  Index concurrency() const { return host_.run == nullptr ? 1 : host_.concurrency; }

  template <class F>
  void run(Index n, F&& f) {
    if (host_.run == nullptr) return SerialExecutor().run(n, f);
    Job<F> job{f, n};
    host_.run(host_.context, n, Job<F>::piece, &job);
    if (job.failure) std::rethrow_exception(job.failure);
    if (job.calls == n) return;
    throw Refused(WANAMAKER_HOST_FAILED, {.id = "c/executor",
                                          .where = "the caller's executor",
                                          .what = "it does not call every piece once",
                                          .expected = std::to_string(n) + " calls",
                                          .found = std::to_string(job.calls),
                                          .mend = "call piece(argument, i) for 0 to pieces - 1"});
  }

 private:
  template <class F>
  struct Job {
    F& f;
    Index pieces;
    std::atomic<Index> calls{0};  // with a number that is none: more than there are pieces
    std::mutex mutex{};
    std::exception_ptr failure{};

    static void piece(void* argument, std::int64_t number) {
      auto& job = *static_cast<Job*>(argument);
      const bool is_piece = number >= 0 && number < job.pieces;
      job.calls += is_piece ? 1 : job.pieces + 1;
      if (!is_piece) return;
      try {
        job.f(static_cast<Index>(number));
      } catch (...) {
        const std::lock_guard lock(job.mutex);
        job.failure = std::current_exception();
      }
    }
  };

  wanamaker_executor host_;
};

struct Session {
  explicit Session(const wanamaker_executor* host) : executor(host) {}

  HostExecutor executor;
  B backend{ExecutorRef(executor)};
  Workspace<B> workspace{backend};
  std::atomic_flag in_use{};
};

/// A session for the length of a call; also from within one, by way of the caller's MLP, it is
/// refused to a second.
class Turn {
 public:
  explicit Turn(Session& session) : session_(session) {
    if (!session_.in_use.test_and_set(std::memory_order_acquire)) return;
    throw Refused(WANAMAKER_BUSY, {.id = "c/busy",
                                   .where = "session",
                                   .what = "another call is using it",
                                   .mend = "open a session for each thread"});
  }
  ~Turn() { session_.in_use.clear(std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Session& session_;
};

struct Layer {
  StoredGatedMlp<B> gated;
  Index width() const { return gated.gate().weights().size; }
};

// Never destroyed: threads may still be in calls when the program ends.
Registry<Layer>& layers() {
  static auto* const registry = new Registry<Layer>(0x776c);
  return *registry;
}
Registry<Session>& sessions() {
  static auto* const registry = new Registry<Session>(0x7773);
  return *registry;
}

/// The caller's MLP as a policy's function.
struct HostMlp {
  wanamaker_mlp mlp;
  void* context;

  void operator()(ConstMatrixView<float> x, MatrixView<float> y) const {
    const std::int32_t status = mlp(context, x.rows, x.cols, x.data, x.stride, y.data, y.stride);
    if (status == 0) return;
    throw Refused(WANAMAKER_HOST_FAILED, {.id = "c/host-mlp",
                                          .where = "the caller's MLP",
                                          .what = "it failed",
                                          .expected = "0",
                                          .found = std::to_string(status),
                                          .mend = "see what it says"});
  }
};

/// f(element) with an element of the type.
template <class F>
void with_type(wanamaker_type type, F&& f) {
  switch (type) {
    case WANAMAKER_FLOAT32:
      return f(float());
    case WANAMAKER_FLOAT64:
      return f(double());
    case WANAMAKER_FLOAT16:
      return f(half());
    case WANAMAKER_BFLOAT16:
      return f(bfloat16());
    default:
      throw Refused(WANAMAKER_BAD_TYPE,
                    {.id = "c/type",
                     .where = "type",
                     .what = "no type of elements",
                     .expected = "1 to 4",
                     .found = std::to_string(type),
                     .mend = "pass WANAMAKER_FLOAT32 or another of wanamaker.h"});
  }
}

thread_local char last_error[1024] = "";

wanamaker_status failed(wanamaker_status status, const char* message) {
  std::snprintf(last_error, sizeof last_error, "%s", message);
  return status;
}

/// Runs a call; whatever it throws becomes a status and the thread's last error.
template <class F>
wanamaker_status guarded(F&& call) noexcept {
  try {
    call();
    return WANAMAKER_OK;
  } catch (const Refused& error) {
    return failed(error.status(), error.what());
  } catch (const ShapeError& error) {
    return failed(WANAMAKER_BAD_SHAPE, error.what());
  } catch (const FormatError& error) {
    return failed(WANAMAKER_BAD_FILE, error.what());
  } catch (const FileError& error) {
    return failed(WANAMAKER_BAD_FILE, error.what());
  } catch (const DataError& error) {
    return failed(WANAMAKER_BAD_DATA, error.what());
  } catch (const Error& error) {
    const bool is_memory = error.id() == "backend/out-of-memory";
    return failed(is_memory ? WANAMAKER_OUT_OF_MEMORY : WANAMAKER_FAILED, error.what());
  } catch (const std::bad_alloc&) {
    return failed(WANAMAKER_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failed(WANAMAKER_FAILED, error.what());
  } catch (...) {
    return failed(WANAMAKER_FAILED, "the caller's code threw something");
  }
}

/// Opens a layer whose full path `mlp_of(backend)` makes.
template <class F>
void open_layer(const char* folder, std::int64_t number, wanamaker_layer* layer, F mlp_of) {
  require(layer, "layer");
  *layer = 0;
  require(folder, "folder");
  B backend;
  *layer = layers().add(std::make_shared<Layer>(
      Layer{load_gated_mlp(backend, folder, static_cast<Index>(number), mlp_of(backend))}));
}

}  // namespace

extern "C" {

uint32_t wanamaker_c_abi(void) {
  return WANAMAKER_C_ABI;
}

const char* wanamaker_version(void) {
  static const std::string version = std::to_string(WANAMAKER_VERSION_MAJOR) + "." +
                                     std::to_string(WANAMAKER_VERSION_MINOR) + "." +
                                     std::to_string(WANAMAKER_VERSION_PATCH);
  return version.c_str();
}

const char* wanamaker_last_error(void) {
  return last_error;
}

wanamaker_status wanamaker_layer_open(const char* folder, int64_t number, wanamaker_layer* layer) {
  return guarded([&] {
    open_layer(folder, number, layer,
               [&](B& backend) { return load_mlp(backend, folder, static_cast<Index>(number)); });
  });
}

wanamaker_status wanamaker_layer_open_with(const char* folder, int64_t number, wanamaker_mlp mlp,
                                           void* context, wanamaker_layer* layer) {
  return guarded([&] {
    require(reinterpret_cast<const void*>(mlp), "wanamaker_layer_open_with: mlp");
    open_layer(folder, number, layer, [&](B&) {
      return AnyMlp<B>(ForeignMlp<HostMlp>({mlp, context}));
    });
  });
}

wanamaker_status wanamaker_layer_close(wanamaker_layer layer) {
  return guarded([&] { layers().remove(layer, "wanamaker_layer_close"); });
}

wanamaker_status wanamaker_layer_width(wanamaker_layer layer, int64_t* width) {
  return guarded([&] {
    require(width, "wanamaker_layer_width: width");
    *width = layers().find(layer, "wanamaker_layer_width")->width();
  });
}

wanamaker_status wanamaker_layer_counts(wanamaker_layer layer, int64_t* to_map, int64_t* to_mlp) {
  return guarded([&] {
    require(to_map, "wanamaker_layer_counts: to_map");
    require(to_mlp, "wanamaker_layer_counts: to_mlp");
    const auto own = layers().find(layer, "wanamaker_layer_counts");
    *to_map = own->gated.surrogate_rows();
    *to_mlp = own->gated.mlp_rows();
  });
}

wanamaker_status wanamaker_session_open(const wanamaker_executor* executor,
                                        wanamaker_session* session) {
  return guarded([&] {
    require(session, "wanamaker_session_open: session");
    *session = 0;
    *session = sessions().add(std::make_shared<Session>(executor));
  });
}

wanamaker_status wanamaker_session_reserve(wanamaker_session session, wanamaker_layer layer,
                                           int64_t rows) {
  return guarded([&] {
    const auto own = layers().find(layer, "wanamaker_session_reserve: layer");
    const auto used = sessions().find(session, "wanamaker_session_reserve: session");
    const Turn turn(*used);
    reserve_workspace(used->backend, own->gated, static_cast<Index>(rows), own->width(),
                      used->workspace);
  });
}

wanamaker_status wanamaker_session_close(wanamaker_session session) {
  return guarded([&] { sessions().remove(session, "wanamaker_session_close"); });
}

wanamaker_status wanamaker_forward(wanamaker_layer layer, wanamaker_session session,
                                   wanamaker_type type, int64_t rows, int64_t columns,
                                   const void* x, int64_t x_stride, void* y, int64_t y_stride) {
  return guarded([&] {
    const auto own = layers().find(layer, "wanamaker_forward: layer");
    const auto used = sessions().find(session, "wanamaker_forward: session");
    const Turn turn(*used);
    with_type(type, [&]<class T>(T) {
      run_foreign(used->backend, own->gated,
                  ConstMatrixView<T>(static_cast<const T*>(x), rows, columns, x_stride),
                  MatrixView<T>(static_cast<T*>(y), rows, columns, y_stride), used->workspace);
    });
  });
}

wanamaker_status wanamaker_scores(wanamaker_layer layer, wanamaker_session session,
                                  wanamaker_type type, int64_t rows, int64_t columns, const void* x,
                                  int64_t x_stride, double* scores) {
  return guarded([&] {
    const auto own = layers().find(layer, "wanamaker_scores: layer");
    const auto used = sessions().find(session, "wanamaker_scores: session");
    const Turn turn(*used);
    with_type(type, [&]<class T>(T) {
      score_foreign(used->backend, own->gated.gate(),
                    ConstMatrixView<T>(static_cast<const T*>(x), rows, columns, x_stride),
                    VectorView<double>(scores, rows), used->workspace);
    });
  });
}

}  // extern "C"
