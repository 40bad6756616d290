// Gates are fitted on the host in double: their rows as host memory, and on whose threads.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/host_memory.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/gate/linear_score.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// Does the backend compute in the host's own memory?
template <class B>
inline constexpr bool is_host_backend = std::is_same_v<buffer_t<B, float>, HostBuffer<float>>;

/// Rows of a backend's matrix on the host: the matrix itself where its memory is the host's, else a
/// copy.
template <Backend B>
class HostRows {
 public:
  HostRows(B& backend, const_matrix_view_t<B> x) : view_(x) {
    if constexpr (!is_host_backend<B>) {
      copy_.resize(static_cast<std::size_t>(x.size()));
      backend.synchronize();
      for (Index i = 0; i < x.rows; ++i) {
        backend.copy_to_host(x.row(i), x.cols, copy_.data() + i * x.cols);
      }
      view_ = {copy_.data(), x.rows, x.cols};
    }
  }
  HostRows(const HostRows&) = delete;
  HostRows& operator=(const HostRows&) = delete;

  const_matrix_view_t<B> view() const { return view_; }

 private:
  std::vector<scalar_t<B>> copy_{};
  const_matrix_view_t<B> view_;
};

/// w·x_i + bias for every row, in double on the host.
template <Backend B>
std::vector<double> linear_scores(B& backend, const LinearScore& score, const_matrix_view_t<B> x) {
  const HostRows<B> rows(backend, x);
  std::vector<double> scores;
  scores.reserve(static_cast<std::size_t>(x.rows));
  for (Index i = 0; i < x.rows; ++i) {
    double sum = score.bias;
    for (Index j = 0; j < x.cols; ++j) {
      sum += score.weights[static_cast<std::size_t>(j)] * static_cast<double>(rows.view()(i, j));
    }
    scores.push_back(sum);
  }
  return scores;
}

/// A backend's own executor; serial for one that has none.
template <Backend B>
ExecutorRef executor_of(const B& backend) {
  if constexpr (requires { ExecutorRef(backend.executor()); }) {
    return backend.executor();
  } else {
    return {};
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
