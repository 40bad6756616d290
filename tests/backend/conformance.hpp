// What every backend must do, as one suite: `conformance::everything(backend)` inside a test case.
// Inputs are made on the host, uploaded, and results downloaded; the oracle is in oracle.hpp.
// Functors are named, trivially copyable and marked for host and device, so that a device backend
// can run the same suite.
#pragma once

#include <tuple>
#include <type_traits>

#include "backend/conformance_attention.hpp"
#include "backend/conformance_errors.hpp"
#include "backend/conformance_launches.hpp"
#include "backend/conformance_products.hpp"
#include "backend/conformance_rows.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/sanitizers.hpp"
#include "wanamaker/core/thread_pool.hpp"

namespace wanamaker_test::conformance {

using namespace wanamaker;

/// Sanitizers look for wrong accesses, which do not depend on the type of numbers, and make
/// compiling slow: they get fewer types.
inline constexpr bool sanitized = WANAMAKER_SANITIZED != 0;

/// `Few` where sanitized, `All` otherwise; both std::tuple.
template <class Few, class All>
using types = std::conditional_t<sanitized, Few, All>;

/// The whole suite, one subcase per part.
template <Backend B>
void everything(B& backend) {
  static_assert(check_backend<B>());
  SUBCASE("memory") memory(backend);
  SUBCASE("gemm") gemm(backend);
  SUBCASE("gemm of several tiles") gemm_of_several_tiles(backend);
  SUBCASE("gemm_batched") gemm_batched(backend);
  SUBCASE("gram") gram(backend);
  SUBCASE("gram of one matrix") gram_of_one_matrix(backend);
  SUBCASE("gram is exact where asked") gram_is_exact_where_asked(backend);
  SUBCASE("norms") norms(backend);
  SUBCASE("activations") activations(backend);
  SUBCASE("linear layers") linear_layers(backend);
  SUBCASE("gated products") gated_products(backend);
  SUBCASE("sums and broadcasts") sums_and_broadcasts(backend);
  SUBCASE("copies") copies(backend);
  SUBCASE("gather and scatter") gather_and_scatter(backend);
  SUBCASE("rotary positions") rotary(backend);
  SUBCASE("attention") attentions(backend);
  SUBCASE("gradients of attention") attention_gradients(backend);
  SUBCASE("attention to one key") attention_to_one_key(backend);
  SUBCASE("attention is causal") attention_is_causal(backend);
  SUBCASE("losses") losses(backend);
  SUBCASE("losses of a head") head_losses(backend);
  SUBCASE("for_each") for_each(backend);
  SUBCASE("for_each_row") for_each_row(backend);
  SUBCASE("wrong products") wrong_products(backend);
}

/// What generic.hpp checks before any backend sees it: for one backend.
template <Backend B>
void wrong_operations(B& backend) {
  SUBCASE("rows") wrong_rows(backend);
  SUBCASE("indices") wrong_indices(backend);
  SUBCASE("attention") wrong_attention(backend);
}

/// Serial, and on a pool of three threads.
template <Backend B>
void host_everything() {
  SUBCASE("serial") {
    B backend;
    everything(backend);
  }
  SUBCASE("three threads") {
    ThreadPool pool(3);
    B backend{ExecutorRef(pool)};
    everything(backend);
  }
}

/// Bytes of the results of operations that are cut into pieces.
template <Backend B>
std::vector<unsigned char> fingerprint(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(20);
  std::vector<unsigned char> bytes;
  const auto keep = [&](const auto& m) {
    const auto* first = reinterpret_cast<const unsigned char*>(m.values.data());
    bytes.insert(bytes.end(), first, first + m.values.size() * sizeof(m.values[0]));
  };
  auto x = upload(backend, random_matrix<S>(random, 300, 45));
  auto w = upload(backend, random_matrix<storage_t<B>>(random, 45, 780));
  auto bias = upload(backend, random_matrix<S>(random, 1, 780));
  auto y = upload(backend, HostMatrix<S>(300, 780));
  ops::linear<B>(backend, x.view(), plain(w.view()), bias.vector(), y.view(), GeluTanh{});
  keep(y.download());
  auto z = upload(backend, HostMatrix<S>(780, 45));
  backend.gemm(transposed(y.view()), plain(x.view()), S(1), S(0), z.view());
  keep(z.download());
  auto c = upload(backend, HostMatrix<double>(780, 45));
  backend.gram(y.view(), x.view(), c.view(), GramPrecision::blocked);
  keep(c.download());
  auto out = upload(backend, HostMatrix<S>(300, 45));
  Workspace<B> workspace(backend);
  const std::vector<AttentionSpan> spans{{0, 100, 0, 100}, {100, 200, 100, 200}};
  ops::causal_attention<B>(backend, x.view(), x.view(), x.view(), spans, {5, 5, 9, 0.3, 0},
                           out.view(), workspace);
  keep(out.download());
  ops::rms_norm<B>(backend, x.view(), bias.const_vector().middle(0, 45), 1e-6, out.view());
  keep(out.download());
  auto nll = upload(backend, HostMatrix<double>(1, 300));
  auto targets = upload(backend, HostMatrix<TokenId>(1, 300, TokenId(700)));
  ops::linear_token_loss<B>(backend, x.view(), plain(w.view()), bias.vector(), targets.vector(),
                            780, nll.vector(), workspace);
  keep(nll.download());
  return bytes;
}

/// Says nothing of itself: that no piece may run beside another is no reason to run none.
struct SilentExecutor {
  template <class F>
  void run(Index n, F&& f) {
    for (Index i = 0; i < n; ++i) f(i);
  }
  Index concurrency() const { return 0; }
};

/// The same bytes, however many threads work.
template <Backend B>
void same_on_any_threads() {
  B serial;
  const std::vector<unsigned char> expected = fingerprint(serial);
  for (const Index threads : {2, 3}) {
    ThreadPool pool(threads);
    B parallel{ExecutorRef(pool)};
    CHECK((fingerprint(parallel) == expected));
  }
  SilentExecutor silent;
  B modest{ExecutorRef(silent)};
  CHECK((fingerprint(modest) == expected));
}

}  // namespace wanamaker_test::conformance
