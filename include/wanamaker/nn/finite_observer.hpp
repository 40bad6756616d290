// Where in a forward pass a NaN or an infinity first arises.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/nn/observer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Looks at everything that a pass shows and ends it at the first value that is NaN or infinite:
/// NumericalError `numeric/non-finite-activation` names the layer, the component and the place in
/// the batch. Copies each activation to the host, so a watched pass takes longer.
template <Backend B>
class FiniteObserver {
 public:
  /// `batch` names what is run, for the message. The backend must outlive the observer.
  FiniteObserver(B& backend, std::string batch) : backend_(&backend), batch_(std::move(batch)) {}

  /// The stream that enters `layer` is what the blocks before it have left.
  void on_residual(Index layer, const_matrix_view_t<B> r) { check("residual stream", layer, r); }
  void on_attention_heads(Index layer, const_matrix_view_t<B> h) {
    check("attention heads", layer, h);
  }
  void on_attention_output(Index layer, const_matrix_view_t<B> a) {
    check("attention output", layer, a);
  }
  void on_mlp_input(Index layer, const_matrix_view_t<B> x) { check("MLP input", layer, x); }
  void on_mlp_output(Index layer, const_matrix_view_t<B> y) { check("MLP output", layer, y); }

 private:
  void check(std::string_view component, Index layer, const_matrix_view_t<B> view) const {
    using T = scalar_t<B>;
    for (Index row = 0; row < view.rows; ++row) {
      const std::vector<T> values =
          detail::host_copy(*backend_, VectorView<const T>(view.row(row), view.cols));
      const auto bad =
          std::find_if(values.begin(), values.end(), [](T x) { return !std::isfinite(x); });
      if (bad != values.end()) refuse(component, layer, row, bad - values.begin(), *bad);
    }
  }

  [[noreturn]] void refuse(std::string_view component, Index layer, Index row, Index column,
                           scalar_t<B> value) const {
    throw NumericalError({.id = "numeric/non-finite-activation",
                          .where = "layer " + std::to_string(layer) + ", " +
                                   std::string(component) + ", row " + std::to_string(row) +
                                   ", column " + std::to_string(column) + " of " + batch_,
                          .what = "an activation is not finite, and none before it is so",
                          .expected = "finite numbers",
                          .found = std::to_string(value),
                          .mend = "check this component's weights, or compute with --backend "
                                  "reference (double)"});
  }

  B* backend_;
  std::string batch_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
