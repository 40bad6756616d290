// What a gate should learn from: joint δ, of all positions replaced together, or marginal δ, of one
// position alone. The same logistic regression on both, compared at equal shares.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/residual/marginal_agreement.hpp"
#include "wanamaker/residual/marginal_delta.hpp"
#include "wanamaker/study/gate_ladder.hpp"
#include "wanamaker/study/marginal_result.hpp"
#include "wanamaker/study/ridge_choice.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Marginal δ to first order of the site's scored rows in nats, in their order: `output` [T × d]
/// for the MLP's at one of them at a time. Costs a forward and a backward pass of the blocks above.
template <class B>
std::vector<double> marginal_delta_at(B& backend, const AnyTransformer<B>& model,
                                      const MlpSite<B>& site, const_matrix_view_t<B> output,
                                      Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const matrix_view_t<B> stream = workspace.matrix(site.carry.rows, site.carry.cols);
  const matrix_view_t<B> change = workspace.matrix(site.carry.rows, site.carry.cols);
  ops::add<B>(backend, site.carry, site.mlp_output, stream);
  ops::subtract<B>(backend, output, site.mlp_output, change);
  const std::vector<double> all = first_order_from<B>(
      backend, model, site.layer, site.packed, stream, change, site.tokens.scored, workspace);
  std::vector<double> chosen;
  chosen.reserve(site.tokens.scored.rows.size());
  for (const TokenId row : site.tokens.scored.rows) {
    chosen.push_back(all[static_cast<std::size_t>(row)]);
  }
  return chosen;
}

namespace detail {

/// One layer. All passes stand at it, and stay.
template <class B>
class GatesOfDeltaFit {
 public:
  GatesOfDeltaFit(const SweepContext<B>& context, Index layer, const CoMoments& moments)
      : c_(context), layer_(layer), moments_(moments) {}

  GatesOfDelta run() {
    std::vector<LambdaTrial> trials;
    surrogate_ = AnyMlp<B>(choose_ridge(c_, moments_, trials).fit.to_mlp(c_.backend));
    GatesOfDelta result{.layer = layer_};
    fit(result);
    choose_shares();
    measure(result);
    return result;
  }

 private:
  // [T × d], in the workspace's current frame.
  matrix_view_t<B> map_outputs(const MlpSite<B>& site) const {
    const matrix_view_t<B> mapped = c_.workspace.matrix(site.mlp_input.rows, site.mlp_input.cols);
    surrogate_.forward(c_.backend, site.mlp_input, site.rows, mapped, c_.workspace);
    return mapped;
  }

  void fit(GatesOfDelta& result) {
    GateData<B> data = empty_gate_data(c_.backend, c_.gate->set, c_.model.config().width);
    std::vector<double> losses(c_.gate->baseline.size());
    std::vector<double> marginal;
    c_.gate->pass->visit([&](const MlpSite<B>& site) {
      const typename Workspace<B>::Frame frame(c_.workspace);
      const matrix_view_t<B> mapped = map_outputs(site);
      append_inputs(c_.backend, site, data, c_.workspace);
      c_.gate->pass->losses_with(site, mapped, losses);
      const std::vector<double> own =
          marginal_delta_at<B>(c_.backend, c_.model, site, mapped, c_.workspace);
      marginal.insert(marginal.end(), own.begin(), own.end());
    });
    data.delta = differences(losses, c_.gate->baseline);
    const MarginalAgreement agreement = marginal_agreement(marginal, data.delta);
    result.positions = agreement.positions;
    result.spearman = agreement.spearman;
    result.same_sign = agreement.same_sign;
    result.joint = fit_one("gate-logistic", data, data.delta, false);
    result.marginal = fit_one("gate-marginal", data, marginal, true);
  }

  // A gate by the labels δ ≤ 0. `matched`: it is given the share of the first.
  GateOfDelta fit_one(const char* name, const GateData<B>& data, std::span<const double> delta,
                      bool matched) {
    const DeltaLabels labels = labels_at_most(delta, 0);
    auto fitted = fit_logistic_gate(c_.backend, data.inputs.view(), labels.labels);
    const std::string note = fit_note(fitted.report);
    gates_.push_back({name, std::move(fitted.gate), matched});
    return {.positive_share = labels.positive_share, .note = note};
  }

  void choose_shares() {
    std::vector<std::vector<double>> scores;
    c_.select->pass->visit([&](const MlpSite<B>& site) {
      append_scores(c_.backend, site, gates_, scores, c_.workspace);
    });
    set_thresholds(gates_, scores, threshold_rule(c_, layer_, surrogate_));
  }

  void measure(GatesOfDelta& result) {
    std::vector<std::vector<double>> losses(gates_.size(),
                                            std::vector<double>(c_.report->baseline.size()));
    std::vector<double> linear(c_.report->baseline.size());
    std::vector<std::vector<double>> scores;
    c_.report->pass->visit([&](const MlpSite<B>& site) {
      append_scores(c_.backend, site, gates_, scores, c_.workspace);
      measure_site(site, linear, losses);
    });
    const std::string where = "layer " + std::to_string(layer_) + ", ";
    for (std::size_t g = 0; g < gates_.size(); ++g) {
      check_finite_losses(losses[g], where + gates_[g].name);
    }
    result.joint.fraction_linear = threshold_at(scores[0], gates_[0].threshold).fraction;
    result.marginal.fraction_linear = threshold_at(scores[1], gates_[1].threshold).fraction;
    const std::vector<double>& full = c_.report->baseline;
    const std::vector<Index>& offsets = c_.report->set.document_offsets;
    const std::vector<PairedSums> sums{sum_by_document(full, losses[0], offsets),
                                       sum_by_document(full, losses[1], offsets),
                                       sum_by_document(losses[0], losses[1], offsets)};
    const std::vector<PairedComparison> found =
        compare_paired(sums, c_.options.intervals, c_.executor);
    result.joint.comparison = found[0];
    result.marginal.comparison = found[1];
    result.difference = found[2];
  }

  void measure_site(const MlpSite<B>& site, std::vector<double>& linear,
                    std::vector<std::vector<double>>& losses) {
    const typename Workspace<B>::Frame frame(c_.workspace);
    const matrix_view_t<B> mapped = map_outputs(site);
    // Only the last layer chooses from them.
    if (layer_ + 1 == c_.model.layers()) c_.report->pass->losses_with(site, mapped, linear);
    const VectorView<double> scores = c_.workspace.template vector<double>(site.mlp_input.rows);
    for (std::size_t g = 0; g < gates_.size(); ++g) {
      gates_[g].gate.score(c_.backend, site.mlp_input, site.rows, scores, c_.workspace);
      measure_selected<B>(c_, site, *c_.report, scores, gates_[g].threshold, mapped, linear,
                          losses[g]);
    }
  }

  const SweepContext<B>& c_;
  Index layer_;
  const CoMoments& moments_;
  AnyMlp<B> surrogate_{};
  std::vector<NamedGate<B>> gates_{};
};

}  // namespace detail

/// One layer's gates by either δ; the context's passes stand at the layer, and stay there. The
/// model must be trainable. Throws what its parts throw.
template <class B>
GatesOfDelta compare_gates_of_delta(const SweepContext<B>& context, Index layer,
                                    const CoMoments& moments) {
  return detail::GatesOfDeltaFit<B>(context, layer, moments).run();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
