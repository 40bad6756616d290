// The table of costs of a model: its policies run on the backend at the number of rows that
// matters, or their parameters counted.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/random.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/linear_gate.hpp"
#include "wanamaker/gate/references.hpp"
#include "wanamaker/stats/distributions.hpp"
#include "wanamaker/study/model_speed.hpp"
#include "wanamaker/study/optimise_result.hpp"
#include "wanamaker/surrogate/affine_map.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A layer as the search has it: w·x + c > 0 goes to a map that lives elsewhere, as the MLP does.
template <class B>
using SearchedGate =
    GatedMlp<LinearGate<B, IdentityLink>, MlpReference<AnyMlp<B>>, MlpReference<AnyMlp<B>>>;

namespace detail {

/// Policies with drawn weights, one of each kind for every layer (8 at most), so that weights come
/// from memory as they do in a model.
template <class B>
class DrawnPolicies {
 public:
  DrawnPolicies(B& backend, const AnyTransformer<B>& model)
      : backend_(backend), model_(model), copies_(std::min<Index>(8, model.layers())) {
    for (Index i = 0; i < copies_; ++i) affine_.emplace_back(AffineMlp<B>(drawn(width(), width())));
  }

  std::vector<AnyMlp<B>> of(const LayerPolicy& wanted) {
    std::vector<AnyMlp<B>> policies;
    for (Index i = 0; i < copies_; ++i) policies.push_back(one(wanted, i));
    return policies;
  }

 private:
  Index width() const { return model_.config().width; }

  std::vector<double> numbers(Index count, double scale) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& v : values) v = scale * random_.normal();
    return values;
  }
  Linear<B> drawn(Index inputs, Index outputs) {
    const double scale = 1 / std::sqrt(static_cast<double>(inputs));
    return linear_from_host(backend_, numbers(inputs * outputs, scale), inputs, outputs,
                            numbers(outputs, 1));
  }

  AnyMlp<B> one(const LayerPolicy& wanted, Index i) {
    const AnyMlp<B>& affine = affine_[static_cast<std::size_t>(i)];
    if (wanted.kind == PolicyKind::affine) return AnyMlp<B>(MlpReference(affine));
    if (wanted.kind == PolicyKind::low_rank) {
      return AnyMlp<B>(LowRankMlp<B>(drawn(width(), wanted.rank), drawn(wanted.rank, width())));
    }
    // Standard normal rows are routed with the probability `share`, each by itself.
    LinearScore score{numbers(width(), 1 / std::sqrt(static_cast<double>(width()))),
                      normal_quantile(wanted.share)};
    return AnyMlp<B>(SearchedGate<B>::hard({backend_, std::move(score)}, MlpReference(affine),
                                           MlpReference(model_.mlp(i)), 0.0));
  }

  B& backend_;
  const AnyTransformer<B>& model_;
  Index copies_;
  RandomStream random_{7};
  std::vector<AnyMlp<B>> affine_;
};

template <class B>
class CostMeasurement {
 public:
  CostMeasurement(B& backend, const AnyTransformer<B>& model, Workspace<B>& workspace,
                  CostTable table)
      : backend_(backend),
        model_(model),
        workspace_(workspace),
        table_(std::move(table)),
        trial_(backend, model, workspace, table_.kind, table_.batch),
        drawn_(backend, model) {
    passes_ = std::max<Index>(model.layers(), 64 / trial_.rows());
    draw_inputs();
  }

  CostTable run(const std::vector<LayerPolicy>& policies) {
    std::vector<AnyMlp<B>> own;
    for (Index l = 0; l < model_.layers(); ++l) own.emplace_back(MlpReference(model_.mlp(l)));
    BlockEdits<B> none, no_blocks;
    for (Index l = 0; l < model_.layers(); ++l) no_blocks.leave_out(l);
    std::vector<std::string> names{"full", "rest", "mlp"};
    std::vector<std::function<double()>> runs{[&] { return trial_.seconds(none); },
                                              [&] { return trial_.seconds(no_blocks); },
                                              [&] { return seconds_with(own); }};
    std::vector<std::vector<AnyMlp<B>>> drawn;
    drawn.reserve(policies.size());
    for (const LayerPolicy& policy : policies) {
      const auto& made = drawn.emplace_back(drawn_.of(policy));
      names.push_back(name_of(policy));
      runs.push_back([this, &made] { return seconds_with(made); });
    }
    const std::vector<double> medians = interleaved_medians(runs, table_.repetitions);
    for (std::size_t i = 1; i < names.size(); ++i) table_.parts[names[i]] = medians[i];
    table_.parts["block"] =
        std::max(0.0, medians[0] - medians[1]) / static_cast<double>(model_.layers());
    table_.tokens = trial_.tokens();
    return std::move(table_);
  }

 private:
  void draw_inputs() {
    RandomStream random(8);
    constexpr Index most_rows = 4096;
    const Index blocks = std::clamp<Index>(most_rows / trial_.rows(), 1, passes_);
    const Index rows = blocks * trial_.rows();
    std::vector<scalar_t<B>> values;
    for (Index i = 0; i < rows * model_.config().width; ++i) {
      values.push_back(static_cast<scalar_t<B>>(random.normal()));
    }
    inputs_ = matrix_from_host<scalar_t<B>>(backend_, values.data(), rows, model_.config().width);
  }

  /// Seconds a token; each pass has other rows and the next layer's policy.
  double seconds_with(const std::vector<AnyMlp<B>>& policies) {
    const typename Workspace<B>::Frame frame(workspace_);
    const Index rows = trial_.rows();
    const matrix_view_t<B> y = workspace_.matrix(rows, model_.config().width);
    const Index blocks = inputs_.rows() / rows;
    const double seconds = seconds_of([&] {
      for (Index i = 0; i < passes_; ++i) {
        const auto& policy = policies[static_cast<std::size_t>(i) % policies.size()];
        policy.forward(backend_, std::as_const(inputs_).view().middle_rows(i % blocks * rows, rows),
                       RowContext<B>{}, y, workspace_);
      }
      backend_.synchronize();
    });
    return seconds / static_cast<double>(passes_ * rows);
  }

  B& backend_;
  const AnyTransformer<B>& model_;
  Workspace<B>& workspace_;
  CostTable table_;
  SpeedTrial<B> trial_;
  DrawnPolicies<B> drawn_;
  Index passes_ = 1;
  matrix_t<B> inputs_{};
};

/// Parameters of what `policy` needs beside or in place of the MLP.
inline double policy_parameters(const LayerPolicy& policy, double width, double mlp) {
  const double affine = width * width + width;
  if (policy.kind == PolicyKind::affine) return affine;
  if (policy.kind == PolicyKind::low_rank) {
    return static_cast<double>(policy.rank) * 2 * width + width;
  }
  return width + 1 + affine + mlp;
}

template <class B>
CostTable counted_costs(const AnyTransformer<B>& model, const std::vector<LayerPolicy>& policies,
                        CostTable table) {
  const double width = static_cast<double>(model.config().width);
  const double mlp = model.mlp(0).cost(1).parameters;
  const double block = model.visit([](const auto& m) { return m.block(0).parameters(); });
  table.repetitions = 0;
  table.parts = {{"mlp", mlp},
                 {"block", block},
                 {"rest", model.parameters() - block * static_cast<double>(model.layers())}};
  for (const LayerPolicy& policy : policies) {
    table.parts[name_of(policy)] = policy_parameters(policy, width, mlp);
  }
  return table;
}

}  // namespace detail

/// What the model's parts and the policies cost: parameters counted, or seconds a token on this
/// machine, medians of `repetitions` interleaved runs of the policies themselves on random rows, as
/// many as one forward pass of SpeedTrial has; "block" and "rest" come from whole passes with all
/// blocks and with none. Throws what the passes throw.
template <class B>
CostTable cost_table(B& backend, const AnyTransformer<B>& model, Workspace<B>& workspace,
                     CostKind kind, Index batch, const std::vector<LayerPolicy>& policies,
                     Index repetitions = 9) {
  CostTable table{.kind = kind,
                  .batch = batch,
                  .layers = model.layers(),
                  .width = model.config().width,
                  .repetitions = repetitions};
  if (kind == CostKind::parameters) {
    return detail::counted_costs(model, policies, std::move(table));
  }
  return detail::CostMeasurement<B>(backend, model, workspace, std::move(table)).run(policies);
}

/// By the table, of the whole model with the policies in the places of MLPs, blocks left out and
/// runs of blocks that one affine map stands for.
inline double cost_of(const CostTable& table, const std::vector<BlockChange>& changes) {
  double cost = table.at("rest") + static_cast<double>(table.layers) * table.at("block");
  for (const BlockChange& change : changes) {
    if (change.now == "left-out") {
      cost -= table.at("block");
    } else if (change.now == "linear") {
      cost += table.at("affine") - table.at("block");
    } else {
      cost += table.at(change.now) - table.at("mlp");
    }
  }
  return cost;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
