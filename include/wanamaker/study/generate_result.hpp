// What a comparison of written texts asks and what it finds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "wanamaker/study/generate.hpp"
#include "wanamaker/study/mlp_replacement.hpp"
#include "wanamaker/study/perplexity.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_generate.
struct GenerateOptions {
  GenerationOptions generation{};
  MlpReplacement replacement{};
  bool beside = false;  ///< the model as it is writes too, with the same seed
};

/// How often a layer's stand-in ran.
struct ReplacedLayer {
  Index layer = 0;
  double fraction_linear = 1;  ///< of the positions that were read
};

/// A text that was written.
struct WrittenText {
  std::string name{};          ///< "original", or the replacement's
  Generation generation{};     ///< ids and why they end
  std::string text{};          ///< of the ids; left to whoever has the tokenizer
  std::vector<double> nats{};  ///< −log p of each id by the model as it is
  Index positions = 0;         ///< that were read: the prompt and all ids but the last
  std::vector<ReplacedLayer> replaced{};
  /// Share of all (layer, position) pairs of the model that had the stand-in.
  double fraction_linear = 0;
};

/// What run_generate wrote.
struct GenerateResult {
  Protocol protocol{};  ///< of the fit; token_ids_hash is that of the prompt
  ModelSummary model{};
  Index fit_documents = 0;
  Index fit_tokens = 0;
  Index gate_documents = 0;
  Index gate_tokens = 0;
  GenerateOptions options{};
  std::vector<TokenId> prompt{};
  std::string prompt_text{};  ///< left to whoever has the tokenizer
  std::vector<WrittenText> texts{};
};

/// Told of every token as it is drawn; `text` names the text that it belongs to.
using OnWritten = std::function<void(const std::string& text, TokenId id)>;

/// Ids that two texts have in common from their beginning.
inline Index common_ids(const WrittenText& a, const WrittenText& b) {
  const std::vector<TokenId>& x = a.generation.ids;
  const std::vector<TokenId>& y = b.generation.ids;
  const std::size_t shorter = std::min(x.size(), y.size());
  const auto end = x.begin() + static_cast<std::ptrdiff_t>(shorter);
  return std::mismatch(x.begin(), end, y.begin()).first - x.begin();
}

/// Nats per token by the model as it is.
inline double mean_nats(const WrittenText& text) {
  return text.nats.empty() ? 0.0 : sum_of(text.nats) / static_cast<double>(text.nats.size());
}

}  // namespace wanamaker::inline WANAMAKER_ABI
