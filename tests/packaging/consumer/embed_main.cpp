// A stranger's buffers through a gated MLP, with nothing but a compiler and core.
#include <vector>

#include "wanamaker/backend/reference.hpp"
#include "wanamaker/embed.hpp"

int main() {
  using Backend = wanamaker::ReferenceBackend<float>;
  using Gate = wanamaker::LinearGate<Backend, wanamaker::IdentityLink>;
  Backend backend;
  wanamaker::Workspace<Backend> workspace(backend);
  const auto twice = [](wanamaker::ConstMatrixView<float> x, wanamaker::MatrixView<float> y) {
    for (wanamaker::Index i = 0; i < x.rows; ++i) y(i, 0) = 2 * x(i, 0);
  };
  using Twice = wanamaker::ForeignMlp<decltype(twice)>;
  const auto gated = wanamaker::GatedMlp<Gate, wanamaker::ZeroMlp<Backend>, Twice>::hard(
      Gate(backend, {{1}, 0}), wanamaker::ZeroMlp<Backend>{}, Twice(twice), 0);
  const std::vector<float> x{-3, 9, 4, 9};
  std::vector<float> y(4, 7);
  wanamaker::run_foreign(backend, gated, wanamaker::ConstMatrixView<float>(x.data(), 2, 1, 2),
                         wanamaker::MatrixView<float>(y.data(), 2, 1, 2), workspace);
  return y == std::vector<float>{-6, 7, 0, 7} ? 0 : 1;
}
