// What a transfer run asks and what it finds: do lists of tokens carry over to other texts?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/study/sweep_result.hpp"
#include "wanamaker/study/token_lists.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_transfer.
struct TransferOptions {
  TokenListOptions lists{};
  Index shown = 20;  ///< types of the list that are named in the result
};

/// Which token a position is filed under.
enum class TokenRole { input, target };

/// "input": the token at the position whose MLP is replaced. "target": the token that it predicts.
constexpr const char* name_of(TokenRole role) {
  return role == TokenRole::input ? "input" : "target";
}

/// One pair of lists.
struct ListPair {
  TokenRole role = TokenRole::input;
  std::string from{};       ///< "half 0", or the first corpus
  std::string to{};         ///< "half 1", or another corpus
  std::string surrogate{};  ///< on the second list: "same", or "refitted" on the other corpus
  ListComparison comparison{};
};

/// Types against positions, of one role on the whole report split.
struct RoleVariance {
  TokenRole role = TokenRole::input;
  Index types = 0;                     ///< with enough positions
  Index positions = 0;                 ///< of these types
  std::optional<double> intraclass{};  ///< share of one position's variance that its type explains
  std::optional<double> p_value{};     ///< of no variance between types
  std::optional<double> list_reliability{};
  std::vector<TypeMean> largest{};  ///< the types of largest mean δ
};

/// One layer: whether lists of types by mean δ carry over.
struct TransferLayer {
  Index layer = 0;
  double r2 = 0;
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  std::vector<RoleVariance> variances{};
  std::vector<ListPair> pairs{};
};

/// What run_transfer found.
struct TransferResult : StudyHeader {
  std::vector<std::string> corpora{};  ///< names, the first that of the surrogate's texts
  std::vector<TransferLayer> layers{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
