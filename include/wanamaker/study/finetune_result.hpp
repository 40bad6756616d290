// What a fine-tuning experiment asks and what it finds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/stats/non_inferiority.hpp"
#include "wanamaker/study/checkpoint.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/recipe.hpp"
#include "wanamaker/train/trainer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_finetune.
struct FinetuneOptions {
  RecipeOptions recipes{};
  std::vector<std::uint64_t> seeds{1, 2, 3};  ///< of the windows' order and of random routing
  Index window = 128;                         ///< tokens of a training sequence
  Index sequences = 4;                        ///< of a batch
  TokenId separator = 0;                      ///< begins each document in the training tokens
  bool recompute = false;                     ///< activations again on the way back
  /// Optimiser, clipping, accumulation, shape and floor of the schedule; steps and peaks are the
  /// recipes'.
  TrainerOptions training{};
  Index warm_up = 10;  ///< steps of the learning rate at the beginning of every stage, at most half
  double rho = 1e-6;   ///< of the maps' ridge, see SweepOptions::rhos
  /// The baseline counts as kept where the loss is at most so many per cent of perplexity.
  double margin_percent = 1;
  PairedOptions intervals{};

  Index tokens_of_a_step() const { return window * sequences * training.accumulation; }
};

/// What one model of an experiment goes through.
struct Arm {
  std::string name{};
  Recipe recipe{};
  std::string rates_of{};  ///< the arm whose hard gates say how much random routing routes
};

/// Where documents of an evaluation come from.
inline constexpr const char* unseen_text = "unseen";    ///< report split: the domain trained on
inline constexpr const char* trained_text = "trained";  ///< documents of the train split
inline constexpr const char* other_text = "other";      ///< another domain
/// Passages whose last words are predicted: each counts as one token, the word.
inline constexpr const char* last_words_text = "last-words";

/// Losses of one text by document.
struct TextLosses {
  std::string text{};
  std::vector<Index> tokens{};  ///< scored
  std::vector<double> nll{};    ///< nats
  /// Of last words, 1 where all tokens of the word are the model's first choices, else 0.
  std::vector<double> hits{};

  Index token_sum() const {
    Index sum = 0;
    for (const Index n : tokens) sum += n;
    return sum;
  }
  double nll_sum() const { return sum_of(nll); }
  double perplexity() const { return perplexity_of(nll_sum() / static_cast<double>(token_sum())); }
  /// Share of the last words that were hit.
  std::optional<double> accuracy() const {
    if (hits.empty()) return std::nullopt;
    return sum_of(hits) / static_cast<double>(hits.size());
  }
};

/// A layer that does not have its MLP alone, at an evaluation.
struct LayerState {
  Index layer = 0;
  LayerForm form = LayerForm::mlp;
  /// Share of the scored positions of the unseen text that have the map alone; missing for blends.
  std::optional<double> fraction_linear{};
  /// The same on the select split, which sets the rate of random routing; of hard gates only.
  std::optional<double> select_fraction{};
  std::optional<double> constant{};  ///< g of a constant gate
};

/// A model at the end of a stage.
struct FinetunePoint {
  std::string stage{};
  Index steps = 0;            ///< so far
  Index tokens = 0;           ///< seen in training so far: scored positions
  double training_flops = 0;  ///< so far, the fits of maps included
  /// Mean training loss, penalties not included, of the stage's first and last ten steps.
  std::optional<double> first_loss{};
  std::optional<double> last_loss{};
  std::vector<double> losses{};  ///< of the stage's steps, nats per token
  std::vector<LayerState> layers{};
  double fraction_linear = 0;  ///< over all layers; blends count as 0
  double flops_fraction_mlp = 1;
  double flops_fraction_total = 1;
  std::vector<TextLosses> texts{};
};

/// One arm with one seed.
struct ArmRun {
  std::string arm{};
  std::uint64_t seed = 0;
  std::vector<FinetunePoint> points{};
};

/// Which run a stored part is.
struct ArmKey {
  std::string arm{};
  std::uint64_t seed = 0;
};

/// Parts are arms with one seed. Whoever stores them keeps those of other settings apart.
using FinetuneCheckpoint = Checkpoint<ArmKey, ArmRun>;

/// What a point is compared with.
enum class ControlKind {
  untouched,         ///< the model as it was given
  equal_tokens,      ///< plain fine-tuning on as many tokens
  equal_flops,       ///< plain fine-tuning for as many FLOPs, or a model that runs on as many
  full,              ///< the MLPs put back, after the same training: g = 0
  constant_gate,     ///< the same g for all tokens
  random_routing,    ///< as many positions routed, drawn at random
  untuned,           ///< the same layers affine, nothing trained
  equal_parameters,  ///< a model from scratch with as many parameters
  other_budget       ///< a model from scratch that takes more or less
};

constexpr std::string_view name_of(ControlKind kind) {
  switch (kind) {
    case ControlKind::untouched:
      return "untouched";
    case ControlKind::equal_tokens:
      return "equal-tokens";
    case ControlKind::equal_flops:
      return "equal-flops";
    case ControlKind::full:
      return "full";
    case ControlKind::constant_gate:
      return "constant-gate";
    case ControlKind::random_routing:
      return "random-routing";
    case ControlKind::untuned:
      return "untuned";
    case ControlKind::equal_parameters:
      return "equal-parameters";
    case ControlKind::other_budget:
      return "other-budget";
  }
  return "";
}

/// A stage of an arm.
struct PointName {
  std::string arm{};
  std::string stage{};

  friend bool operator==(const PointName&, const PointName&) = default;
};

inline std::string text_of(const PointName& point) {
  return point.arm + "/" + point.stage;
}

/// A comparison that is asked for.
struct Contrast {
  PointName treated{};
  PointName control{};
  ControlKind kind = ControlKind::untouched;
};

/// Arms and what is compared. Plain fine-tuning for as many FLOPs is added when they are known.
struct FinetunePlan {
  std::string command{};
  std::vector<Arm> arms{};
  std::vector<PointName> treated{};  ///< what claims are made about
  std::vector<Contrast> contrasts{};
};

/// Is the treated point better than the control?
enum class ContrastVerdict {
  better,    ///< both intervals lie below 0
  worse,     ///< both lie above
  undecided  ///< anything else
};

constexpr std::string_view name_of(ContrastVerdict verdict) {
  switch (verdict) {
    case ContrastVerdict::better:
      return "better";
    case ContrastVerdict::worse:
      return "worse";
    case ContrastVerdict::undecided:
      return "undecided";
  }
  return "";
}

/// Share of last words that are hit, means over the seeds.
struct AccuracyDifference {
  double treated = 0;
  double control = 0;
  std::optional<Interval> interval{};  ///< of treated − control; Student's t over passages
};

/// Treated against control on one text. Differences are means over the seeds, document by document.
struct FinetuneComparison {
  Contrast contrast{};
  std::string text{};
  PairedComparison documents{};      ///< how Δ would vary over other documents
  std::vector<double> delta_nats{};  ///< of each seed
  std::optional<Interval> seeds{};   ///< per cent; Student's t over the seeds, from two on
  double flops_ratio = 0;            ///< training FLOPs, treated over control; 0: control has none
  double token_ratio = 0;            ///< tokens seen, the same
  std::optional<Index> documents_needed{};       ///< to show with probability 0.8 that it is better
  std::optional<AccuracyDifference> accuracy{};  ///< of last words
  ContrastVerdict verdict = ContrastVerdict::undecided;
};

/// Did training, or a form, do more for text that was trained on? Δ is against the untouched model.
struct TextGap {
  PointName point{};
  double trained_nats = 0;  ///< Δ on text that was trained on
  double unseen_nats = 0;   ///< Δ on unseen text of the same domain
  double gap_nats = 0;      ///< trained − unseen: below 0 where it helps more on text seen before
  std::optional<Interval> interval{};  ///< nats; Welch's t, documents as clusters
  std::optional<double> p_value{};     ///< two-sided, of no gap
};

/// What can be said of a claim.
enum class ClaimVerdict { holds, does_not_hold, cannot_be_decided };

constexpr std::string_view name_of(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::holds:
      return "holds";
    case ClaimVerdict::does_not_hold:
      return "does not hold";
    case ClaimVerdict::cannot_be_decided:
      return "cannot be decided here";
  }
  return "";
}

/// About one treated point, on unseen text.
struct TreatedVerdict {
  PointName point{};
  /// "Better than its controls": holds where it is better than each, does not where it is worse
  /// than one.
  ClaimVerdict gains = ClaimVerdict::cannot_be_decided;
  /// "The baseline is kept", within the margin: non-inferiority against the untouched model.
  NonInferiorityResult kept{};
};

/// A text that every point was evaluated on.
struct EvaluatedText {
  std::string name{};
  Index documents = 0;
  Index tokens = 0;  ///< scored; of last words the passages' tokens
  std::string token_ids_hash{};
};

/// What run_finetune found.
struct FinetuneResult {
  std::string command{};
  Protocol protocol{};
  ModelSummary model{};
  FinetuneOptions options{};
  Index train_documents = 0;
  Index train_tokens = 0;  ///< of the documents, separators included
  std::vector<EvaluatedText> texts{};
  std::vector<ArmRun> runs{};
  std::vector<FinetuneComparison> comparisons{};
  std::vector<TextGap> gaps{};
  std::vector<TreatedVerdict> verdicts{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
