// The thirteen claims of the published study: P. Balogh, "Half the Nonlinearity Is Wasted:
// Measuring and Reallocating the Transformer's MLP Budget", arXiv 2603.03459.
#pragma once

#include <array>
#include <string_view>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A claim of the published study (P. Balogh, arXiv 2603.03459).
struct PublishedClaim {
  int number = 0;
  std::string_view claim{};
  std::string_view figures{};    ///< as published
  std::string_view own_files{};  ///< what its result files show
  std::string_view test{};       ///< what decides here
};

inline constexpr std::array<PublishedClaim, 13> published_claims = {{
    {1, "Middle MLPs are nearly linear: replacing one costs 1–4 % of perplexity; the ends are not.",
     "GPT-2 Medium layers 2–15: 1.6–2.8 %, layer 23: 12.6 %; GPT-2 Large: 0.4–3.7 %; Pythia 2.8B: "
     "1.9 % at best, layer 0: 513 %",
     "GPT-2 Medium layer 0: +22,780 %; Pythia 410M layer 5: +262 %; Pythia 1B layer 3: +428 %",
     "More than half of the layers between first and last are shown to cost at most 4 % with the "
     "linear map, and less than with the MLP's mean output; an end is shown to cost more than 4 "
     "%."},
    {2, "δ is strongly skewed: over 90 % of positions need no nonlinearity, 5–10 % carry the cost.",
     "share with |δ| < 0.05 nats given as 90 %",
     "clusters that cover 95 % of tokens have 10th and 90th percentiles beyond ±0.05",
     "The median layer has |δ| < 0.05 nats at 90 % of positions or more, told from less with "
     "documents as the units, and at least half of the summed positive δ lies at a tenth of them."},
    {3,
     "A logistic gate of d + 1 parameters suffices; 25–56 % of positions go linear below 1 % cost.",
     "GPT-2 Medium: 4 of 23 layers beat the full model; Large: 11 of 36; Pythia 2.8B layer 3: "
     "−0.13 %",
     "no GPT-2 Medium layer beats it; the gate is worse than random at the same rate in layers 2–6",
     "More than half of the layers: the gate routes 25 % or more, is shown to cost less than 1 %, "
     "and less than random routing at its rate (intervals apart)."},
    {4, "It works although single decisions are poorly predictable.", "AUC 0.54–0.61", "–",
     "AUC of the logistic gate for δ ≤ 0 at most 0.65 in more than half of the layers, and claim 3 "
     "holds."},
    {5, "All gates at once keep the model, with 21 % of all FLOPs and 35 % of the MLPs' saved.",
     "104,659 gate parameters, 39.9 % linear",
     "perplexity at that point +272 % (Medium), +112 % (Pythia 1B, 14 layers)",
     "Gates on all layers at once, fitted alone or in sequence, are shown to stay within the loss "
     "that was allowed (non-inferiority, one-sided at 5 %) and save 35 % of the MLPs' FLOPs."},
    {6, "Routing is by context, not by token identity.",
     "AUC with context alone 0.605, with all 0.609, with the token alone 0.567; cosine of "
     "embedding "
     "and context −0.35",
     "the subtraction mixes a raw embedding with a normalised vector; the cosine is arithmetic",
     "More than half of the layers: the exact context part says more than the token's own table "
     "(interval of the difference in AUC above 0, whole documents held out)."},
    {7, "Lists of tokens that need the MLP do not transfer between corpora; signs flip.",
     "r = 0.04 and −0.06 at layer 12; 221 tokens, 40 flipped",
     "with those counts the attainable correlation is about 0",
     "More than half of the comparisons between corpora decide, against the correlation that lists "
     "of such reliability could reach."},
    {8, "Clusters and simple features explain nothing.",
     "k = 20 without a clean cluster; R² 0.002–0.013 with 13 features; function words r ≈ 0.05",
     "the features were the next token's; R² was in-sample",
     "Held-out R² of feature sets known in hindsight: above the smallest effect that would matter, "
     "or shown to be below it, in more than half of the layers."},
    {9, "Architecture matters more than routing: GPT-2 is easy, Pythia hard; larger is cheaper.",
     "median cost falls with size", "not monotone: 14.6, 5.9, 11.9, 5.1 % (160M, 410M, 1B, 2.8B)",
     "Twins that differ in their residual topology alone, several seeds each, and a ladder of "
     "sizes."},
    {10,
     "Linearising improves: progressive freezing with light tuning keeps or beats the baseline.",
     "−8.8 % (one layer), −10.2 %, −13.5 % (four layers, 5,000 steps)",
     "plain fine-tuning reaches −15 % in 200 steps and −20.6 % in 2,000",
     "The tuned model with frozen linear layers is better than plain fine-tuning on as many tokens "
     "and for as many FLOPs, over documents and seeds."},
    {11, "Two-phase gated training beats fine-tuning.",
     "−17.3 % against −14.8 %; 262K gate parameters, 64.4 % linear",
     "the control figure is its step 400; gates were soft, both paths always run",
     "With hard gates, better than every matched control on the same text."},
    {12, "The original MLPs overfit; linearising regularises.", "inferred from claims 10 and 11",
     "never tested",
     "Linear maps cost more on text that was trained on than on unseen text of the same domain, "
     "and "
     "nothing on the unseen."},
    {13, "Future models should give their middle layers less nonlinearity.", "outlook", "–",
     "Models of variable capacity, hybrid and routed, trained at equal parameters and equal "
     "FLOPs."},
}};

}  // namespace wanamaker::inline WANAMAKER_ABI
