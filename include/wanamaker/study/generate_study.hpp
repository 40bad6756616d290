// What a model writes with its MLPs replaced, beside what it writes as it is.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/nn/surrogate_mlp.hpp"
#include "wanamaker/study/compound_fit.hpp"
#include "wanamaker/study/generate_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// SHA-256 of ids.
inline std::string hash_of_ids(std::span<const TokenId> ids) {
  Sha256 hash;
  hash.update_number(ids.size());
  for (const TokenId id : ids) hash.update_number(static_cast<std::uint64_t>(id));
  return hash.hex();
}

/// The stand-ins of the chosen layers, fitted in sequence as `sequential-…` of a compound run is.
template <class B>
class FittedReplacement {
 public:
  FittedReplacement(const StudyInput<B>& input, const MlpReplacement& replacement,
                    GenerateResult& result)
      : model_(input.model),
        replacement_(replacement),
        counts_(input.backend, input.model.layers()),
        layers_(replacement.is_none() ? std::vector<Index>{}
                                      : chosen_layers(input.options.layers, input.model.layers())) {
    if (replacement.kind == MlpReplacement::Kind::zero) {
      for (const Index layer : layers_) overrides_.set(layer, &zero_);
    }
    if (!replacement.is_fitted()) return;
    fit(input, result);
    for (const Index layer : layers_) overrides_.set(layer, &stand_ins_.at(layer)->policy(which()));
  }

  const MlpOverrides<B>& overrides() const { return overrides_; }
  /// Of a layer, where something was fitted.
  const LayerStandIns<B>& stand_ins(Index layer) const { return *stand_ins_.at(layer); }
  /// Those that have a stand-in, ascending.
  const std::vector<Index>& layers() const { return layers_; }
  void begin_counting() {
    counts_.reset();
    counts_.count_all();
  }

  /// Which layers had the stand-in how often since begin_counting, over `positions` positions.
  void describe(WrittenText& text, Index positions) const {
    double sum = 0;
    for (const Index layer : layers_) {
      const double routed = static_cast<double>(counts_.routed(layer));
      const double share = replacement_.is_gated() ? routed / static_cast<double>(positions) : 1.0;
      text.replaced.push_back({layer, share});
      sum += share;
    }
    text.fraction_linear = sum / static_cast<double>(model_.layers());
  }

 private:
  StandIn which() const {
    if (replacement_.kind == MlpReplacement::Kind::mean) return StandIn::mean;
    return replacement_.is_gated() ? StandIn::gate : StandIn::linear;
  }
  StandInRecipe recipe() const {
    StandInRecipe asked{.rank = replacement_.rank};
    if (replacement_.is_gated()) asked.gate = replacement_.gate;
    return asked;
  }

  void fit(const StudyInput<B>& input, GenerateResult& result) {
    StudyInput<B> own = input;
    const bool is_gated = replacement_.is_gated();
    if (which() == StandIn::mean) own.options.rhos.resize(1);  // which has none to choose
    const bool chooses = is_gated || own.options.rhos.size() > 1;
    LayerStudy<B> study(own, {.gate = is_gated, .select = chooses, .report = false});
    const bool at_once = layers_.size() == 1;
    stand_ins_ = fit_alone(study, at_once && is_gated, counts_, recipe());
    if (!at_once) {
      StandIns<B> sequential =
          SequentialFit<B>(study, stand_ins_, counts_, recipe()).run(layers_, which());
      stand_ins_ = std::move(sequential);
    }
    const StudyHeader header = study.header();
    result.fit_documents = header.fit_documents;
    result.fit_tokens = header.fit_tokens;
    result.gate_documents = header.gate_documents;
    result.gate_tokens = header.gate_tokens;
  }

  const AnyTransformer<B>& model_;
  MlpReplacement replacement_;
  RoutedCounts<B> counts_;
  std::vector<Index> layers_;
  AnyMlp<B> zero_{ZeroMlp<B>{}};
  StandIns<B> stand_ins_{};
  MlpOverrides<B> overrides_{};
};

template <class B>
WrittenText write_text(const StudyInput<B>& in, const GenerateResult& result,
                       const std::string& name, const MlpOverrides<B>& overrides,
                       const OnWritten& on_written) {
  WrittenText text{.name = name};
  text.generation = generate(in.backend, in.model, result.prompt, result.options.generation,
                             overrides, in.workspace, [&](TokenId id) {
                               in.progress.poll();
                               if (on_written) on_written(name, id);
                             });
  const std::vector<TokenId>& ids = text.generation.ids;
  text.positions = static_cast<Index>(result.prompt.size() + ids.size()) - 1;
  text.nats = continuation_losses(in.backend, in.model, result.prompt, ids, in.workspace);
  return text;
}

}  // namespace detail

/// Writes on from the prompt with the replacement in the chosen layers (all where none are named),
/// and with `beside` first with the model as it is, both with the same seed. Maps and gates are
/// fitted on the input's splits, each layer on what it sees with the earlier ones replaced; nothing
/// is fitted for none and zero. Throws as generate does, and what the fits throw.
template <class B>
GenerateResult run_generate(const StudyInput<B>& in, std::span<const TokenId> prompt,
                            const GenerateOptions& options, const OnWritten& on_written = {}) {
  check_generation(in.model.config(), prompt, options.generation);
  GenerateResult result{.protocol = in.protocol, .model = summarise_model(in.model)};
  result.options = options;
  result.prompt.assign(prompt.begin(), prompt.end());
  result.protocol.token_ids_hash = detail::hash_of_ids(prompt);
  detail::FittedReplacement<B> fitted(in, options.replacement, result);
  const bool replaces = !options.replacement.is_none();
  if (options.beside || !replaces) {
    result.texts.push_back(
        detail::write_text(in, result, "original", MlpOverrides<B>{}, on_written));
  }
  if (!replaces) return result;
  fitted.begin_counting();
  WrittenText text =
      detail::write_text(in, result, name_of(options.replacement), fitted.overrides(), on_written);
  fitted.describe(text, text.positions);
  result.texts.push_back(std::move(text));
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
