// Policies and gates on matrices of a host program: any pointer, stride and type of element,
// checked before anything is read.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

[[noreturn]] inline void throw_foreign(std::string_view id, const char* where, std::string what,
                                       std::string expected, std::string found) {
  throw ShapeError({.id = id,
                    .where = where,
                    .what = std::move(what),
                    .expected = std::move(expected),
                    .found = std::move(found),
                    .mend = "pass pointer, rows, columns and stride (in elements) of the buffer"});
}

/// Bytes from the first element to behind the last one; nothing where that overflows.
template <class T>
std::optional<std::uint64_t> foreign_extent(MatrixView<T> m) {
  if (m.rows == 0 || m.cols == 0) return 0;
  const auto before = checked_multiply(static_cast<std::uint64_t>(m.rows - 1),
                                       static_cast<std::uint64_t>(m.stride));
  constexpr auto most =
      static_cast<std::uint64_t>(std::numeric_limits<Index>::max() / Index{sizeof(T)});
  const auto last_row = static_cast<std::uint64_t>(m.cols);
  if (!before || last_row > most || *before > most - last_row) return std::nullopt;
  return (*before + last_row) * sizeof(T);
}

/// Throws ShapeError unless every element has an address.
template <class T>
void check_foreign(MatrixView<T> m, const char* where) {
  const bool is_shape =
      m.rows >= 0 && m.cols >= (m.rows > 0 ? 1 : 0) && (m.rows <= 1 || m.stride >= m.cols);
  if (!is_shape || !foreign_extent(m)) {
    throw_foreign("embed/shape", where, "no shape of a matrix",
                  "rows of 0 or more, columns of 1 or more, a stride of the columns or more",
                  shape_text(m) + ", stride " + std::to_string(m.stride));
  }
  if (m.size() == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(m.data);
  if (address != 0 && address % alignof(T) == 0) return;
  throw_foreign("embed/pointer", where, "no address of elements",
                "a pointer aligned to " + std::to_string(alignof(T)) + " bytes",
                address == 0 ? "null" : "another address");
}

/// Whether columns of one buffer are x and other columns of it y.
template <class X, class Y>
bool are_columns_apart(MatrixView<X> x, MatrixView<Y> y) {
  if (x.rows <= 1 || x.stride != y.stride || sizeof(X) != sizeof(Y)) return false;
  const auto pitch = static_cast<std::intptr_t>(x.stride) * std::intptr_t{sizeof(X)};
  const auto width = static_cast<std::intptr_t>(x.cols) * std::intptr_t{sizeof(X)};
  const auto between =
      reinterpret_cast<std::intptr_t>(y.data) - reinterpret_cast<std::intptr_t>(x.data);
  const std::intptr_t shift = (between % pitch + pitch) % pitch;
  return shift >= width && shift + width <= pitch;
}

/// Throws ShapeError where y shares an element with x.
template <class X, class Y>
void check_apart(MatrixView<X> x, MatrixView<Y> y, const char* where) {
  if (x.size() == 0 || y.size() == 0) return;
  const auto x_begin = reinterpret_cast<std::uintptr_t>(x.data);
  const auto y_begin = reinterpret_cast<std::uintptr_t>(y.data);
  if (x_begin + *foreign_extent(x) <= y_begin || y_begin + *foreign_extent(y) <= x_begin) return;
  if (are_columns_apart(x, y)) return;
  throw_foreign("embed/overlap", where, "the output lies in the input",
                "memory of its own for the output", "elements that both have");
}

}  // namespace detail

/// y ← policy(x) on a host program's matrices [T × d], which lie in the backend's memory. Their
/// elements are float, double, half or bfloat16; a host's own 16-bit types are viewed by a cast of
/// the pointer. Elements of another type than the backend's scalar are converted by way of the
/// workspace, rounded to nearest; others are read and written where they are. On a host backend
/// nothing is allocated once workspace and backend have grown to the batch (reserve_workspace). The
/// same policy may be run by several threads, each with a backend and a workspace of its own.
/// `rows` is for policies that look at it. Throws ShapeError ("embed/shape", "embed/pointer",
/// "embed/overlap", and those of the policy), before anything is written.
template <Backend B, class Policy, class X, FloatElement T>
requires std::is_same_v<std::remove_const_t<X>, T>
void run_foreign(B& backend, const Policy& policy, MatrixView<X> x, MatrixView<T> y,
                 Workspace<B>& workspace, const RowContext<B>& rows = {}) {
  detail::check_foreign(x, "run_foreign: x");
  detail::check_foreign(y, "run_foreign: y");
  check_shape(y, x.rows, x.cols, "run_foreign: y");
  detail::check_apart(x, y, "run_foreign");
  if (x.rows == 0) return;
  if constexpr (std::is_same_v<T, scalar_t<B>>) {
    mlp_forward(policy, backend, const_matrix_view_t<B>(x), rows, y, workspace);
  } else {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> own_x = workspace.matrix(x.rows, x.cols);
    const matrix_view_t<B> own_y = workspace.matrix(y.rows, y.cols);
    ops::copy(backend, x, own_x);
    mlp_forward(policy, backend, const_matrix_view_t<B>(own_x), rows, own_y, workspace);
    ops::copy(backend, own_y, y);
  }
}

/// scores [T] ← gate(x), as run_foreign; scores lie in the backend's memory.
template <Backend B, class G, class X>
requires FloatElement<std::remove_const_t<X>>
void score_foreign(B& backend, const G& gate, MatrixView<X> x, VectorView<double> scores,
                   Workspace<B>& workspace, const RowContext<B>& rows = {}) {
  detail::check_foreign(x, "score_foreign: x");
  detail::check_foreign(MatrixView<double>(scores.data, scores.size, 1), "score_foreign: scores");
  check_size(scores, x.rows, "score_foreign: scores");
  if (x.rows == 0) return;
  if constexpr (std::is_same_v<std::remove_const_t<X>, scalar_t<B>>) {
    gate.score(backend, const_matrix_view_t<B>(x), rows, scores, workspace);
  } else {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> own_x = workspace.matrix(x.rows, x.cols);
    ops::copy(backend, x, own_x);
    gate.score(backend, const_matrix_view_t<B>(own_x), rows, scores, workspace);
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
