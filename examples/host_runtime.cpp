// A runtime with an MLP, threads and bfloat16 activations of its own: its MLP functor is the full
// path beside a gate and a map of ours, and its scheduler runs the products.
#include <algorithm>
#include <iostream>
#include <thread>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/embed.hpp"

using namespace wanamaker;
using B = EigenBackend<float>;

/// The runtime's MLP, by whatever kernels it has: here 2·max(x, 0).
struct RuntimeMlp {
  void operator()(ConstMatrixView<float> x, MatrixView<float> y) const {
    for (Index i = 0; i < x.rows; ++i) {
      std::transform(x.row(i), x.row(i) + x.cols, y.row(i),
                     [](float v) { return 2 * std::max(v, 0.0f); });
    }
  }
};

/// The runtime's scheduler.
struct Scheduler {
  template <class F>
  void run(Index n, F&& f) {
    std::vector<std::thread> threads;
    for (Index i = 0; i < n; ++i) threads.emplace_back([&f, i] { f(i); });
    for (std::thread& thread : threads) thread.join();
  }
  Index concurrency() const { return 2; }
};

int main() {
  constexpr Index rows = 300, width = 2;
  Scheduler scheduler;
  B backend{ExecutorRef(scheduler)};
  Workspace<B> workspace(backend);
  // 1 − x where x₀ > 0, the runtime's MLP elsewhere.
  const std::vector<float> weight{-1, 0, 0, -1}, bias{1, 1};
  using Gated = GatedMlp<LinearGate<B, IdentityLink>, AffineMlp<B>, ForeignMlp<RuntimeMlp>>;
  const Gated gated = Gated::hard(
      {backend, {{1, 0}, 0}},
      AffineMlp<B>({matrix_from_host<float>(backend, weight.data(), width, width),
                    WeightLayout::in_out, matrix_from_host<float>(backend, bias.data(), 1, width)}),
      ForeignMlp(RuntimeMlp{}), 0);
  reserve_workspace(backend, gated, rows, width, workspace);  // no batch allocates after this

  std::vector<bfloat16> x, y(rows * width);
  for (int i = 0; i < rows * width; ++i) x.emplace_back(static_cast<float>(i % 5 - 2));
  run_foreign(backend, gated, ConstMatrixView<bfloat16>(x.data(), rows, width),
              MatrixView<bfloat16>(y.data(), rows, width), workspace);
  std::cout << gated.surrogate_rows() << " rows to the map, " << gated.mlp_rows()
            << " to the runtime's MLP; " << x[2] << " " << x[3] << " became " << y[2] << " " << y[3]
            << ", " << x[4] << " " << x[5] << " became " << y[4] << " " << y[5] << "\n";
  const bool right = y[2] == 0 && y[3] == 2 && y[4] == -1 && y[5] == 3;
  return right && gated.surrogate_rows() == 120 ? 0 : 1;
}
