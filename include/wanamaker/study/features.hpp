// Does anything simple that is known of a position say what replacing the MLP there costs? Features
// of the token at the position and of the one it predicts, judged on documents held out.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/feature_table.hpp"
#include "wanamaker/study/layer_delta.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/prediction_figures.hpp"
#include "wanamaker/study/token_features.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Parts are layers.
using FeaturesCheckpoint = Checkpoint<Index, FeaturesLayer>;

/// The sets that run_features offers to its regressions. Before anything is run the token and the
/// position are known; with the target, what hindsight knows; `comparison` needs both models' runs.
inline std::vector<FeatureSetChoice> feature_set_choices() {
  return {{"input", {"input"}},
          {"position", {"position"}},
          {"before", {"input", "position", "past"}},
          {"target", {"target"}},
          {"prediction", {"prediction"}},
          {"hindsight", {"input", "position", "past", "target", "prediction", "surprise"}},
          {"comparison", {"comparison"}},
          {"all", {}}};
}

/// Frequencies are of `frequencies`, spellings of the options. Adds what is known of the tokens, as
/// group `group`.
inline void add_token_features(FeatureTable& table, const std::string& group,
                               std::span<const TokenId> tokens, const TokenFrequencies& frequencies,
                               std::span<const std::string> spellings) {
  const auto add = [&](const char* name, const auto& value_of) {
    std::vector<double> values;
    values.reserve(tokens.size());
    for (const TokenId token : tokens) values.push_back(value_of(token));
    table.add(group, name, std::move(values));
  };
  add("log-frequency", [&](TokenId t) { return frequencies.log_frequency(t); });
  add("log-rank", [&](TokenId t) { return frequencies.log_rank(t); });
  if (spellings.empty()) return;
  const auto form = [&](TokenId t) {
    const std::size_t at = static_cast<std::size_t>(t);
    return at < spellings.size() ? form_of(spellings[at]) : TokenForm{};
  };
  const auto is = [&](TokenCategory category) {
    return [form, category](TokenId t) { return form(t).category == category ? 1.0 : 0.0; };
  };
  add("length", [&](TokenId t) { return static_cast<double>(form(t).length); });
  add("function-word", [&](TokenId t) { return form(t).is_function_word ? 1.0 : 0.0; });
  add("subword", is(TokenCategory::word_part));
  add("number", is(TokenCategory::number));
  add("punctuation", is(TokenCategory::punctuation));
  add("space", is(TokenCategory::space));
  add("other", is(TokenCategory::other));
}

namespace detail {

/// Where the scored positions are in their windows, and which loss is about the token at each.
struct ScoredPlaces {
  std::vector<double> positions{};     ///< from 0
  std::vector<Index> loss_of_input{};  ///< −1 where that token is not scored in this window
};

inline ScoredPlaces scored_places(const EvaluationSet& set) {
  ScoredPlaces places;
  for (const EvaluationBatch& batch : set.batches) {
    std::vector<Index> loss_at(batch.tokens.size(), -1);
    std::vector<Index> start(batch.tokens.size());
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      for (Index i = batch.offsets[s]; i < batch.offsets[s + 1]; ++i) {
        start[static_cast<std::size_t>(i)] = batch.offsets[s];
      }
    }
    Index loss = batch.first_loss;
    for (const TokenId row : batch.scored.rows) loss_at[static_cast<std::size_t>(row)] = loss++;
    for (const TokenId row : batch.scored.rows) {
      const std::size_t at = static_cast<std::size_t>(row);
      places.positions.push_back(static_cast<double>(row - start[at]));
      places.loss_of_input.push_back(row > start[at] ? loss_at[at - 1] : Index{-1});
    }
  }
  return places;
}

/// One figure of every position.
template <class Value>
std::vector<double> column_of(std::span<const PredictionFigures> figures, const Value& value) {
  std::vector<double> values;
  values.reserve(figures.size());
  for (const PredictionFigures& f : figures) values.push_back(value(f));
  return values;
}

/// One layer's features.
template <class B>
class LayerFeatures {
 public:
  LayerFeatures(const SweepContext<B>& context, const FeaturesOptions& options,
                const FeatureTable& tokens, Index layer, const CoMoments& moments)
      : c_(context), options_(options), tokens_(tokens), layer_(layer), moments_(moments) {}

  FeaturesLayer run() {
    FeaturesLayer result{.layer = layer_};
    const RidgeSurrogate fit = choose_ridge(c_, moments_, result.lambda_trials).fit;
    result.r2 = fit.report().in_sample.r2;
    result.lambda = fit.report().lambda;
    const AnyMlp<B> surrogate(fit.to_mlp(c_.backend));
    const std::vector<PredictionFigures> figures = compare(surrogate);
    const std::vector<double> delta =
        column_of(figures, [](const PredictionFigures& f) { return f.changed_loss - f.full_loss; });
    check_finite_losses(delta, "layer " + std::to_string(layer_) + ", ridge");
    result.mean_delta = mean_of(delta);
    const FeatureTable table = with_predictions(figures);
    const std::vector<Index> documents = documents_of_losses(c_.report->set);
    result.features = correlate_features(table, delta, documents, options_.bootstrap, c_.executor);
    result.sets =
        explain_delta(table, feature_set_choices(), delta, documents, options_, c_.executor);
    return result;
  }

 private:
  // Both models from the site on.
  std::vector<PredictionFigures> compare(const AnyMlp<B>& surrogate) const {
    std::vector<PredictionFigures> figures;
    c_.report->pass->visit([&](const MlpSite<B>& site) {
      const typename Workspace<B>::Frame frame(c_.workspace);
      const Index rows = site.mlp_input.rows;
      const matrix_view_t<B> full = c_.workspace.matrix(rows, site.mlp_input.cols);
      const matrix_view_t<B> changed = c_.workspace.matrix(rows, site.mlp_input.cols);
      surrogate.forward(c_.backend, site.mlp_input, site.rows, changed, c_.workspace);
      ops::add<B>(c_.backend, site.carry, site.mlp_output, full);
      ops::add<B>(c_.backend, site.carry, changed, changed);
      for (const matrix_view_t<B>& stream : {full, changed}) {
        c_.model.forward_from(c_.backend, layer_ + 1, site.packed, stream, c_.workspace);
      }
      const std::vector<PredictionFigures> own = compare_predictions<B>(
          c_.backend, c_.model, full, changed, site.tokens.scored, c_.workspace);
      figures.insert(figures.end(), own.begin(), own.end());
    });
    return figures;
  }

  FeatureTable with_predictions(std::span<const PredictionFigures> figures) const {
    FeatureTable table = tokens_;
    const auto column = [&](const auto& value) { return column_of(figures, value); };
    const std::vector<double> losses =
        column([](const PredictionFigures& f) { return f.full_loss; });
    add_past(table, losses);
    table.add("prediction", "entropy",
              column([](const PredictionFigures& f) { return f.full_entropy; }));
    table.add("surprise", "surprise", losses);
    table.add("comparison", "entropy-change", column([](const PredictionFigures& f) {
                return f.changed_entropy - f.full_entropy;
              }));
    table.add("comparison", "divergence",
              column([](const PredictionFigures& f) { return f.divergence; }));
    table.add("comparison", "same-choice",
              column([](const PredictionFigures& f) { return f.same_top; }));
    return table;
  }

  // How surprising the token at the position was, where the window says.
  void add_past(FeatureTable& table, const std::vector<double>& losses) const {
    std::vector<double> surprise;
    std::vector<double> is_known;
    for (const Index loss : scored_places(c_.report->set).loss_of_input) {
      surprise.push_back(loss < 0 ? 0.0 : losses[static_cast<std::size_t>(loss)]);
      is_known.push_back(loss < 0 ? 0.0 : 1.0);
    }
    table.add("past", "surprise", std::move(surprise));
    table.add("past", "surprise-known", std::move(is_known));
  }

  const SweepContext<B>& c_;
  const FeaturesOptions& options_;
  const FeatureTable& tokens_;
  Index layer_;
  const CoMoments& moments_;
};

}  // namespace detail

/// For each layer: joint δ of its linear map at every scored position of the report split, and what
/// features of the position explain of it on documents held out. Frequencies are those of the fit
/// split. Memory: about forty numbers for each position of the report split. Throws what its parts
/// throw; ProtocolError ("stats/folds") for fewer report documents than folds.
template <class B>
FeaturesResult run_features(const StudyInput<B>& input, const FeaturesOptions& options = {},
                            const FeaturesCheckpoint& checkpoint = {}) {
  LayerStudy<B> study(input, {.gate = false, .select = input.options.rhos.size() > 1});
  FeaturesResult result{study.header(), options.folds, options.smallest_effect, {}};
  const SweepContext<B> context = study.context();
  const EvaluationSet& set = study.report().set;
  const TokenFrequencies frequencies(
      make_evaluation_set(input.corpus, input.splits.fit.documents, input.rule),
      input.model.config().vocabulary);
  FeatureTable tokens;
  add_token_features(tokens, "input", inputs_of_losses(set), frequencies, options.spellings);
  add_token_features(tokens, "target", targets_of_losses(set), frequencies, options.spellings);
  std::vector<double> positions;
  for (const double p : detail::scored_places(set).positions) positions.push_back(std::log1p(p));
  tokens.add("position", "log-position", std::move(positions));
  result.layers = study.for_each_layer("features", checkpoint, [&](Index layer) {
    return detail::LayerFeatures<B>(context, options, tokens, layer, study.moments(layer)).run();
  });
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
