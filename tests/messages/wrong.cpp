// Backends, policies, gates, surrogates and observers that lack one thing each; see CMakeLists.txt.
#include "wanamaker/backend/host_memory.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/nn/mlp_policy.hpp"
#include "wanamaker/nn/observer.hpp"
#include "wanamaker/surrogate/surrogate.hpp"

namespace {

using namespace wanamaker;

struct Mine : HostMemory {
  // What hides HostMemory's members.
#if defined(NO_ALLOCATE)
  template <class T>
  T* allocate(Index) {
    return nullptr;
  }
#endif
#if defined(NO_COPIES)
  void copy_to_host() {}
#endif
#if defined(NO_SYNCHRONIZE)
  void synchronize(int) {}
#endif
#if defined(NO_GEMM_OF_WEIGHTS)
  void gemm(Operand<double>, Operand<double>, double, double, MatrixView<double>) {}
#elif !defined(NO_GEMM)
  template <class A, class W>
  void gemm(Operand<A>, Operand<W>, double, double, MatrixView<double>) {}
#endif
#if !defined(NO_GEMM_BATCHED)
  void gemm_batched(std::span<const GemmItem<double>>, double, double) {}
#endif
#if !defined(NO_GRAM)
  void gram(ConstMatrixView<double>, ConstMatrixView<double>, MatrixView<double>, GramPrecision) {}
#endif
#if !defined(NO_FOR_EACH)
  template <class F>
  void for_each(Index, F) {}
#endif
#if !defined(NO_FOR_EACH_ROW)
  template <class F>
  void for_each_row(Index, F) {}
#endif
};

struct Policy {
#if !defined(NO_FORWARD)
  void forward(ConstMatrixView<double>, MatrixView<double>) const {}
#endif
#if !defined(NO_COST)
  MlpCost cost(Index) const {
    return {};
  }
#endif
};

struct MyGate {
#if !defined(NO_SCORE)
  template <class B>
  void score(B&, const_matrix_view_t<B>, const RowContext<B>&, VectorView<double>,
             Workspace<B>&) const {}
#endif
  MlpCost cost(Index) const {
    return {};
  }
};

struct MySurrogate {
#if !defined(NO_TO_MLP)
  template <class B>
  Policy to_mlp(B&) const {
    return {};
  }
#endif
#if !defined(NO_PARAMETER_COUNT)
  Index parameters() const {
    return 0;
  }
#endif
};

struct MyObserver {
#if defined(NO_EVENT)
  void on_mlp_inputs(Index, ConstMatrixView<double>) {}
#else
  void on_mlp_input(Index, ConstMatrixView<double>) {}
#endif
};

}  // namespace

#if !defined(NO_TRAITS)
template <>
struct wanamaker::backend_traits<Mine> : wanamaker::HostBackendTraits<double, wanamaker::half> {};
#endif

static_assert(wanamaker::check_backend<Mine>());
static_assert(wanamaker::check_mlp_policy<Policy, wanamaker::ReferenceBackend<double>>());
static_assert(wanamaker::check_gate<MyGate, wanamaker::ReferenceBackend<double>>());
static_assert(wanamaker::check_surrogate<MySurrogate, wanamaker::ReferenceBackend<double>>());
static_assert(wanamaker::check_observer<MyObserver, wanamaker::ReferenceBackend<double>>());

// What training asks for besides.
#if defined(NO_BACKWARD) || defined(HALF_WEIGHTS)
#include "wanamaker/nn/backward/any_mlp.hpp"
#endif
#if defined(NO_BACKWARD)
inline wanamaker::AnyMlp<wanamaker::ReferenceBackend<double>> trained() {
  return wanamaker::trainable_mlp<wanamaker::ReferenceBackend<double>>(Policy{});
}
#endif
#if defined(HALF_WEIGHTS)
static_assert(wanamaker::check_trainable<Mine>());
#endif
