// Perplexity of a model on a corpus, by token, word and byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/nn/perplexity.hpp"
#include "wanamaker/study/losses.hpp"
#include "wanamaker/study/protocol.hpp"
#include "wanamaker/text/last_word.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a result says about the model it belongs to.
struct ModelSummary {
  std::string name;
  std::string family;
  Index layers = 0;
  Index width = 0;
  double parameters = 0;
};

template <class B>
ModelSummary summarise_model(const AnyTransformer<B>& model) {
  const ModelConfig& c = model.config();
  return {c.name, family_name(c.family), c.layers, c.width, model.parameters()};
}

/// Losses of one document.
struct DocumentLoss {
  std::string name;
  Index tokens = 0;    ///< scored
  double nll_sum = 0;  ///< nats
};

/// How well the last words of passages are predicted, as LAMBADA asks (Paperno et al. 2016).
struct LastWordResult {
  Index passages = 0;
  double accuracy = 0;    ///< share of passages all of whose last word's tokens are greedy choices
  double perplexity = 0;  ///< exp of the mean over passages of the last word's summed NLL
};

/// perplexity = exp(nll_sum / tokens); bits per byte = nll_sum / ln 2 / bytes and word perplexity
/// = exp(nll_sum / words) count the bytes and words of the documents' whole texts, so they need
/// windows that score (nearly) all tokens. Missing for ready ids.
struct PerplexityResult {
  Protocol protocol{};
  ModelSummary model{};
  Index documents = 0;
  Index tokens = 0;          ///< scored
  Index context_tokens = 0;  ///< run but not scored
  double nll_sum = 0;
  double perplexity = 0;
  std::optional<double> bits_per_byte{};
  std::optional<double> word_perplexity{};
  std::vector<DocumentLoss> document_losses{};
  std::optional<LastWordResult> last_words{};  ///< where documents are such passages
};

namespace detail {

inline void add_text_measures(PerplexityResult& result, const TokenizedCorpus& corpus,
                              std::span<const Index> documents) {
  Index bytes = 0;
  Index words = 0;
  for (const Index d : documents) {
    const TokenizedDocument& document = corpus.documents[static_cast<std::size_t>(d)];
    if (document.byte_count == 0 && !document.ids.empty()) return;
    bytes += document.byte_count;
    words += document.word_count;
  }
  if (bytes > 0) {
    result.bits_per_byte = result.nll_sum / std::numbers::ln2 / static_cast<double>(bytes);
  }
  if (words > 0)
    result.word_perplexity = perplexity_of(result.nll_sum / static_cast<double>(words));
}

/// The result of the losses of a set.
inline PerplexityResult perplexity_result(std::span<const double> losses,
                                          const TokenizedCorpus& corpus, const EvaluationSet& set,
                                          const Protocol& protocol, const ModelSummary& model) {
  PerplexityResult result{.protocol = protocol, .model = model};
  result.documents = static_cast<Index>(set.documents.size());
  result.tokens = set.scored();
  result.context_tokens = set.tokens - set.scored();
  for (std::size_t i = 0; i < set.documents.size(); ++i) {
    const auto begin = static_cast<std::size_t>(set.document_offsets[i]);
    const auto end = static_cast<std::size_t>(set.document_offsets[i + 1]);
    const TokenizedDocument& document =
        corpus.documents[static_cast<std::size_t>(set.documents[i])];
    result.document_losses.push_back({document.name, static_cast<Index>(end - begin),
                                      sum_of(losses.subspan(begin, end - begin))});
    result.nll_sum += result.document_losses.back().nll_sum;
  }
  result.perplexity = perplexity_of(result.nll_sum / static_cast<double>(result.tokens));
  add_text_measures(result, corpus, set.documents);
  return result;
}

/// How one last word is predicted: all its tokens at once.
struct LastWordScore {
  bool is_hit = false;  ///< all of them are greedy choices
  double nll = 0;
};

/// `targets[i]`: tokens of the last word of document i of the set, whose losses are the document's
/// last.
inline LastWordScore last_word_score(const TokenScores& scores, const EvaluationSet& set,
                                     std::span<const Index> targets, std::size_t i) {
  const auto end = static_cast<std::size_t>(set.document_offsets[i + 1]);
  const auto count = static_cast<std::size_t>(targets[i]);
  const auto ranks = std::span(scores.ranks).subspan(end - count, count);
  return {std::all_of(ranks.begin(), ranks.end(), [](double rank) { return rank == 0; }),
          sum_of(std::span(scores.losses).subspan(end - count, count))};
}

inline LastWordResult last_word_result(const TokenScores& scores, const EvaluationSet& set,
                                       std::span<const Index> targets) {
  LastWordResult result{.passages = static_cast<Index>(set.documents.size())};
  double hits = 0, nll = 0;
  for (std::size_t i = 0; i < set.documents.size(); ++i) {
    const LastWordScore score = last_word_score(scores, set, targets, i);
    hits += score.is_hit ? 1 : 0;
    nll += score.nll;
  }
  const auto passages = static_cast<double>(result.passages);
  result.accuracy = hits / passages;
  result.perplexity = perplexity_of(nll / passages);
  return result;
}

/// Tokens of the last word of each document of the set, from those of all documents. Throws
/// ProtocolError where the set does not score all tokens of one.
inline std::vector<Index> scored_targets(const TokenizedCorpus& corpus,
                                         std::span<const Index> target_tokens,
                                         const EvaluationSet& set) {
  std::vector<Index> targets;
  for (std::size_t i = 0; i < set.documents.size(); ++i) {
    const auto document = static_cast<std::size_t>(set.documents[i]);
    targets.push_back(target_tokens[document]);
    if (targets[i] <= set.document_offsets[i + 1] - set.document_offsets[i]) continue;
    throw ProtocolError({.id = "protocol/last-word-not-scored",
                         .where = corpus.documents[document].source,
                         .what = "the window rule does not score the whole last word",
                         .expected = std::to_string(targets[i]) + " scored tokens",
                         .mend = "use windows as long as the passages"});
  }
  return targets;
}

}  // namespace detail

/// Measures the documents of `set` (made from `corpus` by the protocol's rule). Throws what
/// run_losses throws.
template <class B>
PerplexityResult measure_perplexity(B& backend, const AnyTransformer<B>& model,
                                    const TokenizedCorpus& corpus, const EvaluationSet& set,
                                    const Protocol& protocol, Workspace<B>& workspace,
                                    const Progress& progress = {}) {
  return detail::perplexity_result(
      run_losses(backend, model, set, workspace, progress, "perplexity"), corpus, set, protocol,
      summarise_model(model));
}

/// The same of passages (tokenize_passages), each of which must be one window of the set, with how
/// well their last words are predicted. Throws ProtocolError where the set does not score all
/// tokens of a last word.
template <class B>
PerplexityResult measure_last_words(B& backend, const AnyTransformer<B>& model,
                                    const TokenizedCorpus& corpus,
                                    std::span<const Index> target_tokens, const EvaluationSet& set,
                                    const Protocol& protocol, Workspace<B>& workspace,
                                    const Progress& progress = {}) {
  const std::vector<Index> targets = detail::scored_targets(corpus, target_tokens, set);
  const TokenScores scores =
      run_token_scores(backend, model, set, workspace, progress, "perplexity");
  PerplexityResult result =
      detail::perplexity_result(scores.losses, corpus, set, protocol, summarise_model(model));
  result.last_words = detail::last_word_result(scores, set, targets);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
