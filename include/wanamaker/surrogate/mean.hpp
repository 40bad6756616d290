// The constant surrogate, mean ablation: the baseline that a linear map must beat.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "wanamaker/surrogate/affine_map.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// f̂(x) = mean of y.
class MeanSurrogate {
 public:
  /// Throws DataError where there are no rows.
  static MeanSurrogate fit(const CoMoments& moments) {
    detail::check_has_rows(moments);
    return MeanSurrogate({moments.mean_y().begin(), moments.mean_y().end()});
  }

  /// [e].
  const std::vector<double>& mean() const { return mean_; }
  /// e.
  Index parameters() const { return static_cast<Index>(mean_.size()); }

  /// R² on any data, from their co-moments: 0 on those it was fitted on, at most 0 on others.
  Explained explained_on(const CoMoments& moments) const {
    check_size(detail::view_of(mean_), moments.outputs(), "MeanSurrogate: co-moments");
    std::vector<double> residual(moments.yy().begin(), moments.yy().end());
    for (std::size_t j = 0; j < residual.size(); ++j) {
      const double error = moments.mean_y()[j] - mean_[j];
      residual[j] += moments.weight() * error * error;
    }
    return detail::explained_from(std::move(residual), {moments.yy().begin(), moments.yy().end()});
  }

  /// As an MLP policy. Throws NumericalError where a value does not fit the backend's scalar.
  template <Backend B>
  MeanMlp<B> to_mlp(B& backend) const {
    const std::vector<scalar_t<B>> values = detail::narrowed<scalar_t<B>>(mean_);
    return MeanMlp<B>(matrix_from_host<scalar_t<B>>(backend, values.data(), 1,
                                                    static_cast<Index>(values.size())));
  }

 private:
  explicit MeanSurrogate(std::vector<double> mean) : mean_(std::move(mean)) {}

  std::vector<double> mean_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
