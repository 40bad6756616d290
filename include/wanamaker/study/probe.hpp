// Probes of the routing decision: gates that see the token's part of an MLP's input, its context,
// what attention or earlier MLPs wrote, or all of it, beside the token-identity table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/bottleneck_training.hpp"
#include "wanamaker/gate/logistic_gate.hpp"
#include "wanamaker/gate/rule_gates.hpp"
#include "wanamaker/residual/part_collection.hpp"
#include "wanamaker/study/layer_delta.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/probe_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Parts are layers.
using ProbeCheckpoint = Checkpoint<Index, ProbeLayer>;

namespace detail {

/// What the published probes made of the MLP's input x and the raw embedding e, two vectors of
/// different units.
enum class PublishedForm {
  none,
  context,      ///< x − e
  interaction,  ///< e ∘ (x − e)
  norm          ///< ‖x‖
};

/// Rows x [T × d] in a published form with the raw embeddings e [T × d]: x's own memory, changed,
/// or one column of the workspace.
template <class B>
matrix_view_t<B> in_form(B& backend, PublishedForm form, matrix_view_t<B> x,
                         const_matrix_view_t<B> e, Workspace<B>& workspace) {
  using T = scalar_t<B>;
  if (form == PublishedForm::norm) {
    const matrix_view_t<B> norms = workspace.matrix(x.rows, 1);
    backend.for_each_row(x.rows, kernels::NormRow<T, T>{x, 1.0, VectorView<T>(norms.data, x.rows)});
    return norms;
  }
  if (form != PublishedForm::none) ops::subtract<B>(backend, x, e, x);
  if (form == PublishedForm::interaction) ops::multiply<B>(backend, x, e, x);
  return x;
}

/// One set of features of a split's kept positions [n × d].
template <class B>
struct ProbeFeatures {
  std::string name{};
  std::vector<Index> parts{};  ///< of the residual stream
  PublishedForm form = PublishedForm::none;
  bool has_mlp = false;  ///< a small MLP is fitted beside the linear probe
  matrix_t<B> rows{};

  Index columns(Index width) const { return form == PublishedForm::norm ? 1 : width; }
};

/// All sets of one split, and what is known of its positions.
template <class B>
struct ProbeData {
  std::vector<ProbeFeatures<B>> sets{};
  std::vector<double> delta{};
  std::vector<TokenId> tokens{};
  std::vector<Index> documents{};
};

/// One layer's probes.
template <class B>
class LayerProbe {
 public:
  LayerProbe(const SweepContext<B>& context, const ProbeOptions& options, Index layer,
             const CoMoments& moments)
      : c_(context),
        options_(options),
        layer_(layer),
        moments_(moments),
        decomposition_(context.backend, context.model) {}

  ProbeLayer run() {
    ProbeLayer result{.layer = layer_};
    const RidgeSurrogate fit = choose_ridge(c_, moments_, result.lambda_trials).fit;
    result.r2 = fit.report().in_sample.r2;
    result.lambda = fit.report().lambda;
    const AnyMlp<B> surrogate(fit.to_mlp(c_.backend));
    const ProbeData<B> gate = collect(*c_.gate, surrogate);
    const ProbeData<B> report = collect(*c_.report, surrogate);
    const DeltaLabels labels = labels_at_most(report.delta, 0);
    result.positive_share = labels.positive_share;
    const std::vector<std::vector<double>> scores = fit_probes(gate, report, result);
    judge(scores, labels.labels, report.documents, result);
    summarise_parts(result);
    return result;
  }

 private:
  Index width() const { return c_.model.config().width; }

  // The parts by kind, then their groups, then what the published probes made of the input.
  std::vector<ProbeFeatures<B>> feature_sets() const {
    const auto parts = decomposition_.parts_before_mlp(layer_);
    std::vector<ProbeFeatures<B>> sets;
    for (PartGroup& group : parts_by_kind(parts)) {
      sets.push_back({.name = group.name, .parts = std::move(group.parts)});
    }
    sets.push_back(
        {.name = "context", .parts = token_and_context(parts)[1].parts, .has_mlp = true});
    std::vector<Index> all;
    for (Index p = 0; p < static_cast<Index>(parts.size()); ++p) all.push_back(p);
    sets.push_back({.name = "input", .parts = all, .has_mlp = true});
    const auto published = [&](const char* name, PublishedForm form) {
      sets.push_back({.name = name, .parts = all, .form = form});
    };
    published("published-context", PublishedForm::context);
    published("published-interaction", PublishedForm::interaction);
    published("published-norm", PublishedForm::norm);
    return sets;
  }

  ProbeData<B> collect(WalkedSplit<B>& split, const AnyMlp<B>& surrogate) {
    const std::vector<Index> kept = evenly_spread(split.set.scored(), options_.positions);
    const std::string what = "layer " + std::to_string(layer_) + ", ridge";
    ProbeData<B> data{.sets = feature_sets(),
                      .delta = chosen_of(measure_delta(c_, surrogate, split, what), kept),
                      .tokens = chosen_of(inputs_of_losses(split.set), kept),
                      .documents = chosen_of(documents_of_losses(split.set), kept)};
    for (ProbeFeatures<B>& set : data.sets) {
      set.rows = make_matrix(c_.backend, static_cast<Index>(kept.size()), set.columns(width()));
    }
    for (const EvaluationBatch& batch : split.set.batches) {
      const typename Workspace<B>::Frame frame(c_.workspace);
      const PackedBatch<B> packed(c_.backend, batch.tokens, batch.offsets);
      decompose(packed);
      for (ProbeFeatures<B>& set : data.sets) append(batch, kept, set);
    }
    return data;
  }

  void decompose(const PackedBatch<B>& packed) {
    const typename Workspace<B>::Frame frame(c_.workspace);
    const matrix_view_t<B> stream = c_.workspace.matrix(packed.rows(), width());
    decomposition_.begin(packed);
    c_.model.forward(c_.backend, packed, stream, c_.workspace, decomposition_);
  }

  // The batch's rows of those that are kept.
  void append(const EvaluationBatch& batch, const std::vector<Index>& kept, ProbeFeatures<B>& set) {
    const auto begin = std::lower_bound(kept.begin(), kept.end(), batch.first_loss);
    std::vector<TokenId> rows;
    for (auto k = begin; k != kept.end(); ++k) {
      const std::size_t s = static_cast<std::size_t>(*k - batch.first_loss);
      if (s >= batch.scored.rows.size()) break;
      rows.push_back(batch.scored.rows[s]);
    }
    if (!rows.empty()) append_rows(rows, begin - kept.begin(), set);
  }

  // Rows of the batch that was decomposed to `set` from row `first` on.
  void append_rows(const std::vector<TokenId>& rows, Index first, ProbeFeatures<B>& set) {
    const typename Workspace<B>::Frame frame(c_.workspace);
    const Index count = static_cast<Index>(rows.size());
    const matrix_view_t<B> all = c_.workspace.matrix(decomposition_.rows(), width());
    decomposition_.contribution(layer_, set.parts, all);
    const matrix_view_t<B> features =
        in_form(c_.backend, set.form, all, decomposition_.part(0), c_.workspace);
    const VectorView<TokenId> index = c_.workspace.template vector<TokenId>(count);
    c_.backend.copy_from_host(rows.data(), count, index.data);
    ops::gather_rows(c_.backend, const_matrix_view_t<B>(features), index,
                     set.rows.view().middle_rows(first, count));
  }

  // Scores of the report split's positions, one list for each probe; the last is that of
  // the table of labels, which knows all that a token says of them.
  std::vector<std::vector<double>> fit_probes(const ProbeData<B>& gate, const ProbeData<B>& report,
                                              ProbeLayer& result) {
    const DeltaLabels labels = labels_at_most(gate.delta, 0);
    std::vector<std::vector<double>> scores;
    for (std::size_t s = 0; s < gate.sets.size(); ++s) {
      const LogisticFit fit = fit_logistic_regression<B>(c_.backend, gate.sets[s].rows.view(),
                                                         labels.labels, {}, {.C = options_.C});
      const LinearScore score = fit.folded();
      if (gate.sets[s].name == "input") gate_ = score.weights;
      scores.push_back(linear_scores<B>(c_.backend, score, report.sets[s].rows.view()));
      result.probes.push_back({.name = gate.sets[s].name,
                               .features = gate.sets[s].columns(width()),
                               .note = fit_note(fit.report)});
      if (gate.sets[s].has_mlp) add_mlp(gate.sets[s], report.sets[s], labels, scores, result);
    }
    std::vector<double> harm;
    for (const std::uint8_t label : labels.labels) harm.push_back(label == 1 ? 0.0 : 1.0);
    add_table("token-table", gate, gate.delta, report, scores, result);
    add_table("token-label-table", gate, harm, report, scores, result);
    return scores;
  }

  // What a linear probe cannot see: a hidden layer of a few units on the same features.
  void add_mlp(const ProbeFeatures<B>& gate, const ProbeFeatures<B>& report,
               const DeltaLabels& labels, std::vector<std::vector<double>>& scores,
               ProbeLayer& result) const {
    const auto fit = fit_bottleneck_gate(c_.backend, gate.rows.view(), labels.labels, {},
                                         {.units = options_.mlp_units, .C = options_.C});
    scores.push_back(logits_of(fit.gate.bottleneck_score(), report.rows.view()));
    result.probes.push_back({.name = gate.name + "-mlp",
                             .features = gate.columns(width()),
                             .note = fit_note(fit.report)});
  }

  // Scores by the token alone: minus the shrunk mean of `values` over the gate split's positions.
  void add_table(const char* name, const ProbeData<B>& gate, std::span<const double> values,
                 const ProbeData<B>& report, std::vector<std::vector<double>>& scores,
                 ProbeLayer& result) const {
    const TokenTable table =
        fit_token_table({gate.tokens, values, gate.documents}, c_.model.config().vocabulary);
    scores.emplace_back();
    for (const TokenId token : report.tokens) {
      scores.back().push_back(-table.expected_delta[static_cast<std::size_t>(token)]);
    }
    result.probes.push_back({.name = name, .features = table.seen_tokens});
  }

  // Not probabilities: those near 0 and 1 would be ties.
  std::vector<double> logits_of(const BottleneckScore& score, const_matrix_view_t<B> rows) const {
    std::vector<double> values(static_cast<std::size_t>(rows.rows), score.bias);
    for (std::size_t k = 0; k < score.hidden.size(); ++k) {
      const std::vector<double> unit = linear_scores<B>(c_.backend, score.hidden[k], rows);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] += score.out[k] * std::max(0.0, unit[i]);
      }
    }
    return values;
  }

  void judge(const std::vector<std::vector<double>>& scores, std::span<const std::uint8_t> labels,
             std::span<const Index> documents, ProbeLayer& result) const {
    const auto table = rank_positions(scores.back(), labels, documents);
    const auto table_auc = area_under_roc(scores.back(), labels);
    for (std::size_t p = 0; p < scores.size(); ++p) {
      ProbeScore& probe = result.probes[p];
      probe.auc = area_under_roc(scores[p], labels);
      if (!probe.auc) continue;
      probe.interval =
          auc_document_interval(scores[p], labels, documents, options_.bootstrap, c_.executor);
      if (p + 1 == scores.size()) continue;
      probe.above_token_table = probe.auc->auc - table_auc->auc;
      const auto own = rank_positions(scores[p], labels, documents);
      const auto difference = [&](std::span<const double> weights) -> std::optional<double> {
        const auto a = weighted_auc(own, weights);
        const auto b = weighted_auc(table, weights);
        return a && b ? std::optional(*a - *b) : std::nullopt;
      };
      probe.above_token_table_interval =
          document_interval(documents, difference, "run_probe", options_.bootstrap, c_.executor);
    }
  }

  // Norms, shares and the token's cosine with its context over the report split.
  void summarise_parts(ProbeLayer& result) {
    const auto parts = decomposition_.parts_before_mlp(layer_);
    const std::vector<PartGroup> kinds = parts_by_kind(parts);
    const std::vector<PartGroup> two = token_and_context(parts);
    PartStatistics by_kind(static_cast<Index>(kinds.size()), {gate_});
    PartStatistics against(2);
    for (const EvaluationBatch& batch : c_.report->set.batches) {
      const PackedBatch<B> packed(c_.backend, batch.tokens, batch.offsets);
      decompose(packed);
      std::vector<std::uint8_t> chosen(batch.tokens.size(), 1);
      for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
        chosen[static_cast<std::size_t>(batch.offsets[s])] = 0;
      }
      const auto add = [&](PartStatistics& statistics, const std::vector<PartGroup>& groups) {
        add_to<B>(statistics, c_.backend, decomposition_, layer_, groups, PartView::mlp_input,
                  c_.workspace, chosen);
      };
      add(by_kind, kinds);
      add(against, two);
    }
    for (Index p = 0; p < by_kind.parts(); ++p) {
      result.parts.push_back({kinds[static_cast<std::size_t>(p)].name, by_kind.norm(p).mean(),
                              by_kind.length_share(p), by_kind.projection_share(0, p)});
    }
    result.token_context_cosine = against.cosine(0, 1).mean();
  }

  const SweepContext<B>& c_;
  const ProbeOptions& options_;
  Index layer_;
  const CoMoments& moments_;
  ResidualDecomposition<B> decomposition_;
  std::vector<double> gate_{};  // direction of the probe of the whole input
};

}  // namespace detail

/// For each layer: logistic regressions of the label δ ≤ 0 on what each kind of part contributes to
/// the MLP's input through its norm, on the context (everything but the token's embedding), on the
/// whole input, on both by a small MLP, and on what the published probes had (the input less the
/// raw embedding, its product with the embedding, the input's norm); and two tables by token, of
/// mean δ and of the share of δ ≤ 0. Fitted on the gate split, AUC on the report split, whose
/// documents are others. Memory: up to nine times n·d scalars for n = `positions` of both splits.
/// Throws what its parts throw.
template <class B>
ProbeResult run_probe(const StudyInput<B>& input, const ProbeOptions& options = {},
                      const ProbeCheckpoint& checkpoint = {}) {
  LayerStudy<B> study(input, {.gate = true, .select = input.options.rhos.size() > 1});
  ProbeResult result{study.header(), options.positions, {}};
  const SweepContext<B> context = study.context();
  result.layers = study.for_each_layer("probe", checkpoint, [&](Index layer) {
    return detail::LayerProbe<B>(context, options, layer, study.moments(layer)).run();
  });
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
