// Host matrices seen as xtensor expressions: the same memory, whatever the stride.
#include "wanamaker/backend/xtensor_view.hpp"

#include <vector>

#include "testing.hpp"

namespace {

using namespace wanamaker;

/// [3 × 4] with element (i, j) = 10·i + j in rows of 7; what lies between the rows is poison.
struct PaddedMatrix {
  std::vector<double> memory = std::vector<double>(3 * 7, 1e300);
  MatrixView<double> view{memory.data(), 3, 4, 7};

  PaddedMatrix() {
    for (Index i = 0; i < 3; ++i) {
      for (Index j = 0; j < 4; ++j) view(i, j) = static_cast<double>(10 * i + j);
    }
  }
};

}  // namespace

TEST_CASE("a matrix with padded rows is seen without its padding") {
  const PaddedMatrix matrix;
  const auto expression = as_xtensor(matrix.view);
  const xt::xtensor<double, 2> expected{{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}};
  CHECK(expression.shape()[0] == 3);
  CHECK(expression.shape()[1] == 4);
  CHECK(expression.size() == 12);
  CHECK(xt::xtensor<double, 2>(expression) == expected);
  CHECK(xt::xtensor<double, 2>(expression * 2.0 + 1.0) ==
        xt::xtensor<double, 2>(expected * 2.0 + 1.0));
  double sum = 0;
  for (const double value : expression) sum += value;
  CHECK(sum == 138);
}

TEST_CASE("writes through the expression go to the matrix and spare the padding") {
  PaddedMatrix matrix;
  auto expression = as_xtensor(matrix.view);
  expression(2, 1) = -1;
  CHECK(matrix.view(2, 1) == -1);
  expression += xt::xtensor<double, 2>{{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}};
  CHECK(matrix.view(0, 3) == 7);
  CHECK(matrix.view(2, 1) == 1);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 4; j < 7; ++j) CHECK(matrix.memory[i * 7 + j] == 1e300);
  }
}

TEST_CASE("the expression reads the matrix as it is then, without a copy") {
  PaddedMatrix matrix;
  const auto expression = as_xtensor(matrix.view);
  CHECK(&expression(1, 2) == &matrix.view(1, 2));
  matrix.view(1, 2) = 5;
  CHECK(expression(1, 2) == 5);
}

TEST_CASE("constant, dense and empty matrices, and vectors") {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto dense = as_xtensor(MatrixView<const float>(values.data(), 2, 3));
  CHECK(xt::xtensor<float, 2>(dense) == xt::xtensor<float, 2>{{1, 2, 3}, {4, 5, 6}});
  CHECK(as_xtensor(MatrixView<const float>(values.data(), 0, 3)).size() == 0);
  const auto vector = as_xtensor(VectorView<const float>{values.data(), 6});
  CHECK(vector.shape()[0] == 6);
  CHECK(vector(4) == 5);
  CHECK(xt::xtensor<float, 1>(vector) == xt::xtensor<float, 1>{1, 2, 3, 4, 5, 6});
}
