// What a run over examples asks and what it finds: single positions of a text with what the linear
// map costs there and where a gate sends them, and the direction that the gate reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_forensics.
struct ForensicsOptions {
  Index passages = 3;     ///< documents of the report split that are shown, from its begin
  Index positions = 200;  ///< of each, at most
  Index shown = 12;       ///< token types at either end of the gate's direction
  Index least_count = 5;  ///< positions of a type that counts
  double C = 1;           ///< inverse penalty of the logistic regression
  /// Spellings of the vocabulary's tokens by id, as Tokenizer::token_bytes gives them; empty:
  /// function words are not told apart.
  std::vector<std::string> spellings{};
};

/// The scored positions at the begin of one document.
struct Passage {
  Index document = 0;              ///< its number among the report split's
  std::vector<TokenId> tokens{};   ///< at the positions, whose MLP is looked at
  std::vector<TokenId> targets{};  ///< that are predicted there
};

/// A type of token and how it lies along the gate's direction.
struct TypeScore {
  TokenId type = 0;
  Index count = 0;
  double logit = 0;  ///< mean over its positions: above 0 the gate sends them to the linear map
  double delta = 0;  ///< mean, nats
};

/// One layer: δ and route of the passages, and the direction of the gate.
struct ForensicsLayer {
  Index layer = 0;
  double r2 = 0;  ///< of the linear map
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  double fraction_linear = 0;   ///< of report positions that the gate sends to the linear map
  std::optional<double> auc{};  ///< of the gate, for δ ≤ 0
  /// The gate in coordinates of the MLP's input: logit = ⟨direction, x⟩ + bias.
  std::vector<double> direction{};
  double bias = 0;
  Index types = 0;                          ///< with `least_count` positions or more
  std::optional<double> type_spearman{};    ///< of mean logit and mean δ over these types
  std::optional<double> function_words{};   ///< mean logit of function words less that of others
  std::optional<double> logit_deviation{};  ///< standard deviation of the logit over positions
  std::vector<TypeScore> top{};             ///< types of largest mean logit, the largest first
  std::vector<TypeScore> bottom{};          ///< of smallest, the smallest first
  std::vector<double> delta{};        ///< nats, of the passages' positions one after the other
  std::vector<double> probability{};  ///< of the gate there; routed to the map above 0.5
};

/// What run_forensics found.
struct ForensicsResult : StudyHeader {
  std::vector<Passage> passages{};
  std::vector<ForensicsLayer> layers{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
