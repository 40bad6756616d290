// Views, shape checks, sizes, errors, progress: the small pieces of core.
#include "wanamaker/core/matrix_view.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/progress.hpp"

namespace {
using namespace wanamaker;
}  // namespace

TEST_CASE("a view addresses row-major memory with a stride") {
  std::vector<int> memory(12);
  for (int i = 0; i < 12; ++i) memory[static_cast<std::size_t>(i)] = i;
  const MatrixView<int> m(memory.data(), 3, 2, 4);
  CHECK(m(0, 0) == 0);
  CHECK(m(2, 1) == 9);
  CHECK(m.row(1) == memory.data() + 4);
  CHECK(m.size() == 6);
  CHECK(!m.contiguous());
  CHECK(m.middle_rows(1, 2)(1, 1) == 9);
  CHECK(m.middle_rows(1, 2).stride == 4);
  CHECK(m.middle_cols(1, 1)(2, 0) == 9);
  CHECK(m.middle_rows(2, 1).contiguous());
  const MatrixView<int> dense(memory.data(), 4, 3);
  CHECK(dense.stride == 3);
  CHECK(dense.contiguous());
  m(2, 1) = -1;
  CHECK(memory[9] == -1);
}

TEST_CASE("a writable view is a read-only one, not the other way round") {
  static_assert(std::is_convertible_v<MatrixView<float>, ConstMatrixView<float>>);
  static_assert(!std::is_convertible_v<ConstMatrixView<float>, MatrixView<float>>);
  static_assert(!std::is_convertible_v<MatrixView<float>, ConstMatrixView<double>>);
  static_assert(std::is_convertible_v<VectorView<float>, ConstVectorView<float>>);
  static_assert(!std::is_convertible_v<ConstVectorView<float>, VectorView<float>>);
  static_assert(std::is_trivially_copyable_v<MatrixView<float>>);
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  const VectorView<float> v(memory.data(), 6);
  const ConstVectorView<float> middle = ConstVectorView<float>(v).middle(2, 3);
  CHECK(middle.size == 3);
  CHECK(middle[0] == 3.0f);
  CHECK(ConstVectorView<float>{}.empty());
}

TEST_CASE("a wrong shape is told with the caller's name and both shapes") {
  std::vector<float> memory(6);
  const MatrixView<float> m(memory.data(), 2, 3);
  CHECK_NOTHROW(check_shape(m, 2, 3, "here"));
  CHECK(wanamaker_test::error_id([&] { check_shape(m, 3, 2, "here"); }) == "shape/matrix");
  CHECK(wanamaker_test::error_id([&] { check_shape(m, 2, 4, "here"); }) == "shape/matrix");
  const VectorView<float> v(memory.data(), 6);
  CHECK_NOTHROW(check_size(v, 6, "here"));
  CHECK(wanamaker_test::error_id([&] { check_size(v, 5, "here"); }) == "shape/vector");
  try {
    check_shape(m, 3, 2, "linear: y");
  } catch (const ShapeError& error) {
    const std::string text = error.what();
    CHECK(text.find("linear: y: ") == 0);
    CHECK(text.find("expected [3 × 2], found [2 × 3]") != std::string::npos);
  }
}

TEST_CASE("an error is one line of the parts that are there") {
  CHECK(one_line({.id = "a/b",
                  .where = "file",
                  .what = "broken",
                  .expected = "x",
                  .found = "y",
                  .mend = "do z"}) == "file: broken: expected x, found y; do z [a/b]");
  CHECK(one_line({.id = "a/b", .what = "broken", .found = "y"}) == "broken: found y [a/b]");
  CHECK(one_line({.id = "a/b", .what = "broken"}) == "broken [a/b]");
  CHECK(one_line({.id = "a/b", .what = "two\nlines\r\x1b[31m\x7f"}) == "two lines  [31m  [a/b]");
  const ShapeError error({.id = "shape/matrix", .what = "w"});
  CHECK(error.id() == "shape/matrix");
  CHECK(Cancelled().id() == "run/cancelled");
}

TEST_CASE("sizes from files are multiplied and added without overflow") {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(checked_multiply(0, most) == 0u);
  CHECK(checked_multiply(most, 0) == 0u);
  CHECK(checked_multiply(most, 1) == most);
  CHECK(checked_multiply(std::uint64_t{1} << 32, std::uint64_t{1} << 31) == std::uint64_t{1} << 63);
  CHECK(!checked_multiply(std::uint64_t{1} << 32, std::uint64_t{1} << 32));
  CHECK(!checked_multiply(most / 2 + 1, 2));
  CHECK(checked_add(most - 1, 1) == most);
  CHECK(!checked_add(most, 1));
  CHECK(blocks_of(0, 4) == 0);
  CHECK(blocks_of(8, 4) == 2);
  CHECK(blocks_of(9, 4) == 3);
}

TEST_CASE("progress is reported, and cancels where the caller says so") {
  Progress{}("silent", 1, 2);
  Index seen = 0;
  const Progress progress{[&](std::string_view, Index done, Index total) {
    seen = done;
    return done < total;
  }};
  progress("stage", 1, 2);
  CHECK(seen == 1);
  CHECK_THROWS_AS(progress("stage", 2, 2), Cancelled);
}
