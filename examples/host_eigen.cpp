// A host program that has its activations in Eigen matrices: a layer from a folder that `study
// export --replace gate-logistic` wrote runs on a block of one of them, where it lies.
// Usage: host_eigen FOLDER LAYER
#include <cstdlib>
#include <iostream>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/embed.hpp"
#include "wanamaker/embed/artefact.hpp"

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Backend = wanamaker::EigenBackend<float>;

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: host_eigen FOLDER LAYER\n";
    return 2;
  }
  Backend backend;
  wanamaker::Workspace<Backend> workspace(backend);
  // Gate, map and MLP; the file's check vectors have been run when this returns.
  const auto gated = wanamaker::load_gated_mlp(backend, argv[1], std::atol(argv[2]));
  const Eigen::Index rows = 32, width = gated.gate().weights().size;

  // Two layers' activations side by side: the right half goes in, the left half comes out.
  RowMajor activations = RowMajor::Random(rows, 2 * width);
  const auto before = activations.rightCols(width).eval();
  auto in = activations.rightCols(width);
  auto out = activations.leftCols(width);
  using View = wanamaker::MatrixView<float>;
  wanamaker::run_foreign(backend, gated, View(in.data(), rows, width, in.outerStride()),
                         View(out.data(), rows, width, out.outerStride()), workspace);

  // Eigen itself says what the map gives where the gate's score is above 0.
  const auto& map = gated.surrogate().map();
  const Eigen::Map<const RowMajor> weight(map.weight().data(), width, width);
  const Eigen::Map<const Eigen::RowVectorXf> bias(map.bias().data(), width);
  const Eigen::Map<const Eigen::VectorXd> w(gated.gate().weights().data, width);
  float furthest = 0;
  for (Eigen::Index i = 0; i < rows; ++i) {
    const double score = in.row(i).cast<double>().dot(w) + gated.gate().linear_score().bias;
    if (score <= 0) continue;
    furthest = std::max(furthest, (in.row(i) * weight + bias - out.row(i)).cwiseAbs().maxCoeff());
  }
  std::cout << gated.surrogate_rows() << " rows to the map, " << gated.mlp_rows()
            << " to the MLP; largest difference from Eigen's map: " << furthest << "\n";
  return furthest < 1e-3f && before == activations.rightCols(width) ? 0 : 1;
} catch (const wanamaker::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
