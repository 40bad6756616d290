// Perplexity against the share of positions routed to the surrogate, for every gate of the ladder
// and every layer, with random routing and the δ-sorted reference beside them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/preset_gate.hpp"
#include "wanamaker/study/flops_shares.hpp"
#include "wanamaker/study/gate_curve_result.hpp"
#include "wanamaker/study/gate_ladder.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/ridge_choice.hpp"
#include "wanamaker/study/site_routing.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// ∫₀¹ Δ(f) df of a curve through (0, 0) and its points in ascending shares, in nats per token.
inline double area_under_curve(const std::vector<CurvePoint>& points) {
  double area = 0;
  double share = 0;
  double delta = 0;
  for (const CurvePoint& point : points) {
    const double next = point.result.fraction_linear.value_or(share);
    const double nats = point.result.comparison.delta_nats;
    area += (next - share) * (delta + nats) / 2;
    share = next;
    delta = nats;
  }
  return area;
}

/// Fills in what one curve is worth beside random routing and the reference.
inline void compare_curves(std::vector<GateCurve>& curves) {
  const auto area_of = [&](const std::string& name) -> std::optional<double> {
    for (const GateCurve& c : curves) {
      if (c.gate == name) return c.area_nats;
    }
    return std::nullopt;
  };
  for (GateCurve& curve : curves) curve.area_nats = area_under_curve(curve.points);
  const double random = area_of("random").value_or(0);
  const double reach = random - area_of("oracle").value_or(random);
  for (GateCurve& curve : curves) {
    curve.area_below_random = random - curve.area_nats;
    if (reach > 0) curve.share_of_oracle = curve.area_below_random / reach;
  }
}

/// The point of the largest share whose cost on the select split is within the limit.
inline std::optional<Index> operating_point_of(const GateCurve& curve, double max_loss_percent) {
  std::optional<Index> best;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const auto& cost = curve.points[i].select_delta_percent;
    if (cost && *cost <= max_loss_percent) best = static_cast<Index>(i);
  }
  return best;
}

namespace detail {

/// One layer's curves; all passes stand at it before and past it afterwards.
template <class B>
class LayerCurves {
 public:
  LayerCurves(const SweepContext<B>& context, const CurveOptions& options, Index layer,
              const CoMoments& moments)
      : c_(context), options_(options), layer_(layer), moments_(moments) {}

  CurveLayer run() {
    CurveLayer result{.layer = layer_};
    const RidgeSurrogate fit = choose_ridge(c_, moments_, result.lambda_trials).fit;
    result.r2 = fit.report().in_sample.r2;
    result.lambda = fit.report().lambda;
    ridge_ = AnyMlp<B>(fit.to_mlp(c_.backend));
    const GateData<B> data =
        collect_gate_data(c_.backend, *c_.gate->pass, ridge_, c_.gate->baseline,
                          c_.model.config().width, c_.workspace);
    gates_ = fit_gate_ladder(c_.backend, data, c_.model.config().vocabulary, ladder(),
                             c_.options.seed + static_cast<std::uint64_t>(layer_));
    std::erase_if(gates_, [&](const NamedGate<B>& gate) { return !is_wanted(gate.name); });
    choose_points();
    measure_on_select();
    measure_on_report();
    result.curves = make_curves();
    return result;
  }

 private:
  // A routing of the report split, and of the select split where a gate makes it.
  struct Point {
    std::size_t curve = 0;
    double target = 0;
    double threshold = 0.5;
    std::vector<double> select_losses{};
    std::vector<double> losses{};
    std::vector<std::uint8_t> routed{};  // the oracle's
    double fraction = 0;
  };

  bool is_wanted(const std::string& name) const {
    const std::vector<std::string>& wanted = options_.gates;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  }
  // Gates that were asked for by name are there whatever the ladder.
  Ladder ladder() const {
    const std::vector<std::string>& wanted = options_.gates;
    const bool is_full = std::any_of(wanted.begin(), wanted.end(), is_wider_gate);
    return is_full ? Ladder::full : c_.options.ladder;
  }
  bool is_oracle(const Point& point) const { return point.curve == gates_.size(); }
  std::size_t scored() const { return c_.report->baseline.size(); }

  // Thresholds for the wanted shares; shares that a gate's ties do not reach are left out.
  void choose_points() {
    std::vector<std::vector<double>> scores;
    c_.select->pass->visit([&](const MlpSite<B>& site) {
      append_scores(c_.backend, site, gates_, scores, c_.workspace);
    });
    for (std::size_t g = 0; g < gates_.size(); ++g) {
      double last = 0;
      for (const double target : options_.fractions) {
        const GateThreshold at = threshold_for_fraction(scores[g], target);
        if (at.fraction <= last || at.fraction >= 1) continue;
        last = at.fraction;
        points_.push_back({.curve = g, .target = target, .threshold = at.threshold});
      }
    }
  }

  VectorView<double> scores_of(std::size_t gate, const MlpSite<B>& site) {
    const VectorView<double> scores = c_.workspace.template vector<double>(site.mlp_input.rows);
    gates_[gate].gate.score(c_.backend, site.mlp_input, site.rows, scores, c_.workspace);
    return scores;
  }

  void measure_on_select() {
    for (Point& p : points_) p.select_losses.resize(c_.select->baseline.size());
    select_ridge_.resize(c_.select->baseline.size());
    c_.select->pass->advance([&](const MlpSite<B>& site) {
      measure_policy(c_, ridge_, site, *c_.select->pass, select_ridge_);
      measure_site(site, *c_.select, select_ridge_, &Point::select_losses);
    });
  }

  void measure_on_report() {
    measure_ridge();
    add_oracle_points();
    for (Point& p : points_) p.losses.resize(scored());
    c_.report->pass->advance([&](const MlpSite<B>& site) {
      measure_site(site, *c_.report, ridge_losses_, &Point::losses);
    });
  }

  // The surrogate on all rows: the curves' last point, and δ for the reference.
  void measure_ridge() {
    ridge_losses_.resize(scored());
    c_.report->pass->visit([&](const MlpSite<B>& site) {
      measure_policy(c_, ridge_, site, *c_.report->pass, ridge_losses_);
    });
    check_finite_losses(ridge_losses_, "layer " + std::to_string(layer_) + ", ridge");
  }

  void add_oracle_points() {
    const std::vector<double> delta = detail::differences(ridge_losses_, c_.report->baseline);
    for (const double target : options_.fractions) {
      OracleRouting routing = oracle_at_fraction(delta, target);
      points_.push_back({.curve = gates_.size(),
                         .target = target,
                         .routed = std::move(routing.routed),
                         .fraction = routing.fraction});
    }
  }

  // Both outputs are at hand: every point selects rows. `ridge`: losses of all rows routed.
  void measure_site(const MlpSite<B>& site, WalkedSplit<B>& split, LinearLosses ridge,
                    std::vector<double> Point::*losses) {
    const typename Workspace<B>::Frame frame(c_.workspace);
    const matrix_view_t<B> linear = c_.workspace.matrix(site.mlp_input.rows, site.mlp_input.cols);
    ridge_.forward(c_.backend, site.mlp_input, site.rows, linear, c_.workspace);
    const bool on_report = losses == &Point::losses;
    for (std::size_t g = 0; g <= gates_.size(); ++g) {
      const typename Workspace<B>::Frame own(c_.workspace);
      VectorView<double> scores{};
      if (g < gates_.size()) scores = scores_of(g, site);
      for (Point& p : points_) {
        if (p.curve != g) continue;
        if (is_oracle(p)) scores = routing_scores(c_.backend, site, p.routed, c_.workspace);
        if (on_report && !is_oracle(p)) p.fraction += routed_share(site, scores, p.threshold);
        measure_selected(c_, site, split, scores, p.threshold, linear, ridge, p.*losses);
      }
    }
  }

  // Routed rows among the scored ones, as a share of all scored rows of the report split.
  double routed_share(const MlpSite<B>& site, VectorView<double> scores, double threshold) {
    const std::vector<double> own = scored_rows_of(c_.backend, site, scores);
    const auto above =
        std::count_if(own.begin(), own.end(), [threshold](double s) { return s > threshold; });
    return static_cast<double>(above) / static_cast<double>(scored());
  }

  // --- results ---

  void set_flops(VariantResult& result, double flops) const {
    const FlopsShares shares = flops_shares_of_layer(c_.model, c_.report->set, layer_, flops);
    result.flops_fraction_mlp = shares.mlp;
    result.flops_fraction_total = shares.total;
  }

  VariantResult result_of(const std::string& name, const std::vector<double>& losses) const {
    check_finite_losses(losses, "layer " + std::to_string(layer_) + ", " + name);
    VariantResult result{.name = name};
    result.nll_sum = sum_of(losses);
    result.perplexity = perplexity_of(result.nll_sum / static_cast<double>(scored()));
    return result;
  }

  CurvePoint point_of(const Point& p) const {
    const bool oracle = is_oracle(p);
    const MlpCost gate = oracle ? MlpCost{} : gates_[p.curve].gate.cost(1);
    CurvePoint point{.target = p.target,
                     .result = result_of(oracle ? "oracle" : gates_[p.curve].name, p.losses)};
    point.result.parameters = gate.parameters + ridge_.cost(1).parameters;
    point.result.fraction_linear = p.fraction;
    if (!oracle) {
      point.result.threshold = p.threshold;
      point.result.note = gates_[p.curve].note;
      point.select_delta_percent = percent_on_select(p.select_losses);
    }
    set_flops(point.result,
              GatedCost{gate, ridge_.cost(1), c_.model.mlp(layer_).cost(1)}.flops(p.fraction));
    return point;
  }

  CurvePoint last_point() const {
    CurvePoint point{.target = 1, .result = result_of("ridge", ridge_losses_)};
    point.result.parameters = ridge_.cost(1).parameters;
    point.result.fraction_linear = 1;
    point.select_delta_percent = percent_on_select(select_ridge_);
    set_flops(point.result, ridge_.cost(1).flops);
    return point;
  }

  double percent_on_select(const std::vector<double>& losses) const {
    const double nats = sum_of(losses) - sum_of(c_.select->baseline);
    return percent_of_nats(nats / static_cast<double>(losses.size()));
  }

  std::vector<GateCurve> make_curves() {
    std::vector<CurvePoint> all;
    std::vector<PairedSums> sums;
    const auto pair = [&](const std::vector<double>& losses) {
      sums.push_back(sum_by_document(c_.report->baseline, losses, c_.report->set.document_offsets));
    };
    for (const Point& p : points_) {
      all.push_back(point_of(p));
      pair(p.losses);
    }
    all.push_back(last_point());
    pair(ridge_losses_);
    const auto comparisons = compare_paired(sums, c_.options.intervals, c_.executor);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].result.comparison = comparisons[i];

    std::vector<GateCurve> curves(gates_.size() + 1);
    for (std::size_t g = 0; g < gates_.size(); ++g) curves[g].gate = gates_[g].name;
    curves.back().gate = "oracle";
    for (std::size_t i = 0; i < points_.size(); ++i) {
      curves[points_[i].curve].points.push_back(all[i]);
    }
    for (GateCurve& curve : curves) {
      curve.points.push_back(all.back());
      if (curve.gate == "oracle") continue;
      curve.operating_point = operating_point_of(curve, options_.max_loss_percent);
    }
    compare_curves(curves);
    return curves;
  }

  const SweepContext<B>& c_;
  const CurveOptions& options_;
  Index layer_;
  const CoMoments& moments_;
  AnyMlp<B> ridge_{};
  std::vector<NamedGate<B>> gates_;
  std::vector<Point> points_;
  std::vector<double> select_ridge_;
  std::vector<double> ridge_losses_;
};

inline void check_fractions(const std::vector<double>& fractions) {
  for (const double f : fractions) {
    if (f > 0 && f < 1) continue;
    throw ProtocolError({.id = "protocol/bad-fraction",
                         .where = "--fractions",
                         .what = "not a share of positions",
                         .expected = "numbers between 0 and 1, both excluded",
                         .found = detail::number_text(f),
                         .mend = "leave out 0 and 1: they are always there"});
  }
}

}  // namespace detail

/// Curves of every chosen layer. Surrogates are fitted on the fit split, gates on the gate split;
/// thresholds and the operating point are chosen on the select split; every figure is of the report
/// split. Throws ProtocolError ("protocol/bad-fraction", "protocol/unknown-gate") and what its
/// parts throw.
template <class B>
GateCurveResult run_gate_curve(const StudyInput<B>& input, CurveOptions options,
                               const GateCurveCheckpoint& checkpoint = {}) {
  detail::check_fractions(options.fractions);
  for (const std::string& gate : options.gates) check_gate_name(gate);
  std::sort(options.fractions.begin(), options.fractions.end());
  LayerStudy<B> study(input, {});
  GateCurveResult result{study.header(), options.max_loss_percent, {}};
  const SweepContext<B> context = study.context();
  result.layers = study.for_each_layer("gate curves", checkpoint, [&](Index layer) {
    return detail::LayerCurves<B>(context, options, layer, study.moments(layer)).run();
  });
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
