// Gates that need no fit, the token table, random routing and the δ-sorted reference.
#include "wanamaker/gate/rule_gates.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/gate/preset_gate.hpp"
#include "wanamaker/gate/random_gate.hpp"
#include "wanamaker/gate/threshold.hpp"
#include "wanamaker/gate/token_table.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Reference = ReferenceBackend<double>;

/// Packed sequences with their context.
struct Sequences {
  std::vector<TokenId> tokens;
  std::vector<TokenId> positions;
  std::vector<Index> offsets{0};
  std::vector<double> x;

  void add(const std::vector<TokenId>& sequence) {
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      tokens.push_back(sequence[i]);
      positions.push_back(static_cast<TokenId>(i));
      x.push_back(0.5 * static_cast<double>(x.size()));
    }
    offsets.push_back(static_cast<Index>(tokens.size()));
  }
  Index rows() const { return static_cast<Index>(tokens.size()); }
  ConstMatrixView<double> view() const { return {x.data(), rows(), 1}; }
  template <class B>
  RowContext<B> context(Index layer = 0) const {
    return {layer, {tokens.data(), rows()}, {positions.data(), rows()}, offsets, {}};
  }
};

const std::vector<std::vector<TokenId>> some_documents = {
    {0, 5, 6, 7, 8}, {0, 9, 1}, {3, 3, 3, 3, 3, 3}, {0, 5, 6, 7, 9}, {4}};

std::vector<double> random_scores(const std::vector<std::size_t>& order, Index layer = 2,
                                  std::uint64_t seed = 7) {
  Sequences sequences;
  for (const std::size_t i : order) sequences.add(some_documents[i]);
  Reference backend;
  return scores_of(RandomGate(0.5, seed), backend, sequences.view(),
                   sequences.context<Reference>(layer));
}

}  // namespace

TEST_CASE("the first position of every sequence keeps its MLP") {
  Sequences sequences;
  for (const auto& document : some_documents) sequences.add(document);
  Reference backend;
  const std::vector<double> scores =
      scores_of(FirstPositionGate{}, backend, sequences.view(), sequences.context<Reference>());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    CHECK((scores[i] > FirstPositionGate{}.natural_threshold()) == (sequences.positions[i] > 0));
  }
  CHECK(error_id([&] { scores_of(FirstPositionGate{}, backend, sequences.view()); }) ==
        "shape/vector");
}

TEST_CASE("norms of the input or of the residual stream, large or small ones routed") {
  const std::vector<double> x{3, 4, 0, 0, 1, 0};
  const std::vector<double> residual{0, 2, 5, 12, 8, 6};
  Reference backend;
  RowContext<Reference> rows;
  rows.residual = view_of(residual, 2);
  const auto scores = [&](const NormGate& gate) {
    return scores_of(gate, backend, view_of(x, 2), rows);
  };
  CHECK(scores(NormGate(2, NormSource::mlp_input)) == std::vector<double>{5, 0, 1});
  CHECK(scores(NormGate(2, NormSource::residual)) == std::vector<double>{2, 13, 10});
  CHECK(scores(NormGate(2, NormSource::residual, false)) == std::vector<double>{-2, -13, -10});
  CHECK(error_id([&] { scores(NormGate(3, NormSource::mlp_input)); }) == "shape/matrix");
  CHECK_FALSE(natural_threshold(NormGate(2, NormSource::residual)).has_value());
}

TEST_CASE("random routing is the same for any batching and order") {
  const std::vector<double> together = random_scores({0, 1, 2, 3, 4});
  std::vector<double> apart;
  for (std::size_t i = 0; i < 5; ++i) {
    const std::vector<double> own = random_scores({i});
    apart.insert(apart.end(), own.begin(), own.end());
  }
  CHECK(apart == together);
  std::vector<double> reversed = random_scores({4, 3, 2, 1, 0});
  CHECK(std::vector<double>(reversed.end() - 5, reversed.end()) ==
        std::vector<double>(together.begin(), together.begin() + 5));
  FarBackend<double> far;
  Sequences sequences;
  for (const auto& document : some_documents) sequences.add(document);
  CHECK(scores_of(RandomGate(0.5, 7), far, sequences.view(),
                  sequences.context<FarBackend<double>>(2)) == together);
}

TEST_CASE("random routing differs by position, sequence, layer and seed") {
  const std::vector<double> scores = random_scores({0, 1, 2, 3, 4});
  const std::set<double> distinct(scores.begin(), scores.end());
  CHECK(distinct.size() == scores.size());  // sequences 0 and 3 share all tokens but the last
  CHECK(random_scores({0}, 3) != random_scores({0}, 2));
  CHECK(random_scores({0}, 2, 8) != random_scores({0}, 2, 7));
}

TEST_CASE("random routing hits its rate") {
  RandomStream stream(3);
  Sequences sequences;
  for (int s = 0; s < 100; ++s) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 100; ++i) tokens.push_back(static_cast<TokenId>(stream.below(1000)));
    sequences.add(tokens);
  }
  Reference backend;
  for (const double rate : {0.0, 0.1, 0.5, 0.93, 1.0}) {
    const RandomGate gate(rate, 11);
    const std::vector<double> scores =
        scores_of(gate, backend, sequences.view(), sequences.context<Reference>());
    const double share = threshold_at(scores, gate.natural_threshold()).fraction;
    // Five standard deviations of a binomial share of 10,000.
    CHECK(std::abs(share - rate) <= 5 * std::sqrt(rate * (1 - rate) / 10000));
  }
  CHECK(error_id([] { RandomGate(1.1, 0); }) == "stats/probability");
}

TEST_CASE("a token table is the shrunk mean of each token's δ") {
  const std::vector<TokenId> tokens{2, 2, 0, 2, 0, 1};
  const std::vector<double> delta{1, 2, -1, 3, -3, 4};
  const std::vector<Index> documents{0, 0, 1, 1, 2, 2};
  const TokenTable table = fit_token_table({tokens, delta, documents}, 5, {.shrinkage = 2});
  CHECK(table.overall == 1);
  CHECK(table.seen_tokens == 3);
  const std::vector<double> expected{(2 * -2.0 + 2 * 1) / 4, (1 * 4.0 + 2 * 1) / 3,
                                     (3 * 2.0 + 2 * 1) / 5, 1, 1};
  CHECK(all_close(table.expected_delta, expected, 1e-15, 1e-15));
  Reference backend;
  Sequences sequences;
  sequences.add({1, 4, 0});
  const std::vector<double> scores = scores_of(TokenTableGate<Reference>(backend, table), backend,
                                               sequences.view(), sequences.context<Reference>());
  CHECK(all_close(scores, std::vector{-expected[1], -1.0, -expected[0]}, 1e-15, 0));
  CHECK(TokenTableGate<Reference>(backend, table).cost(2).parameters == 5);
}

TEST_CASE("shrinkage is variance within over variance between, as the layout says") {
  // Token effects of variance 4, noise of variance 1: κ = 1/4.
  RandomStream stream(5);
  std::vector<TokenId> tokens;
  std::vector<double> delta;
  for (TokenId v = 0; v < 400; ++v) {
    const double effect = 2 * stream.normal();
    for (TokenId k = 0; k < 2 + v % 7; ++k) {
      tokens.push_back(v);
      delta.push_back(effect + stream.normal());
    }
  }
  const std::vector<Index> documents(tokens.size(), 0);
  const TokenTable table = fit_token_table({tokens, delta, documents}, 400);
  // The standard error of a variance of 400 effects is 7 % of it.
  CHECK(std::abs(table.shrinkage / 0.25 - 1) < 0.3);
  // Pure noise is shrunk away, whole or nearly so.
  for (double& value : delta) value = stream.normal();
  const TokenTable noise = fit_token_table({tokens, delta, documents}, 400);
  CHECK(noise.shrinkage > 10);
  for (const double value : noise.expected_delta) CHECK(std::isfinite(value));
  const std::vector<TokenId> once{0, 1, 2};
  const std::vector<double> alone{1, 2, 6};
  const TokenTable single = fit_token_table({once, alone, std::vector<Index>(3, 0)}, 4);
  CHECK(single.expected_delta == std::vector<double>(4, 3.0));
}

TEST_CASE("cross-fitted scores never see their own documents") {
  RandomStream stream(6);
  std::vector<TokenId> tokens;
  std::vector<double> delta;
  std::vector<Index> documents;
  for (Index d = 0; d < 12; ++d) {
    for (int i = 0; i < 30; ++i) {
      tokens.push_back(static_cast<TokenId>(stream.below(6)));
      delta.push_back(stream.normal());
      documents.push_back(10 * d + 3);  // numbers need not be dense
    }
  }
  const TokenObservations seen{tokens, delta, documents};
  const TokenTableOptions options{.shrinkage = 1.5, .folds = 4};
  const std::vector<double> scores = cross_fitted_token_scores(seen, 6, options);
  for (Index fold = 0; fold < 4; ++fold) {
    std::vector<TokenId> other_tokens;
    std::vector<double> other_delta;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if ((documents[i] - 3) / 10 % 4 == fold) continue;
      other_tokens.push_back(tokens[i]);
      other_delta.push_back(delta[i]);
    }
    const std::vector<Index> any(other_tokens.size(), 0);
    const TokenTable table = fit_token_table({other_tokens, other_delta, any}, 6, options);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if ((documents[i] - 3) / 10 % 4 != fold) continue;
      CHECK(scores[i] == -table.expected_delta[static_cast<std::size_t>(tokens[i])]);
    }
  }
  CHECK(error_id([&] { cross_fitted_token_scores(seen, 6, {.folds = 13}); }) == "stats/folds");
  CHECK(error_id([&] { cross_fitted_token_scores(seen, 6, {.folds = 1}); }) == "stats/folds");
  CHECK(error_id([&] { fit_token_table(seen, 5); }) == "data/token-outside-vocabulary");
  CHECK(error_id([&] {
          fit_token_table({tokens, std::vector{1.0}, documents}, 6);
        }) == "stats/length-mismatch");
  std::vector<double> broken = delta;
  broken[3] = std::nan("");
  CHECK(error_id([&] {
          fit_token_table({tokens, broken, documents}, 6);
        }) == "gate/non-finite-delta");
}

TEST_CASE("the reference routes the lowest δ first, exactly as many as asked") {
  RandomStream stream(8);
  std::vector<double> delta;
  for (int i = 0; i < 41; ++i) delta.push_back(std::round(4 * stream.normal()) / 4);
  for (const double fraction : {0.0, 0.1, 0.5, 0.99, 1.0}) {
    const OracleRouting oracle = oracle_at_fraction(delta, fraction);
    const auto count = std::count(oracle.routed.begin(), oracle.routed.end(), 1);
    CHECK(count == std::lround(fraction * 41));
    CHECK(oracle.fraction == static_cast<double>(count) / 41);
    double highest_routed = -HUGE_VAL;
    double lowest_kept = HUGE_VAL;
    double sum = 0;
    for (std::size_t i = 0; i < delta.size(); ++i) {
      if (oracle.routed[i] == 1) highest_routed = std::max(highest_routed, delta[i]);
      if (oracle.routed[i] == 0) lowest_kept = std::min(lowest_kept, delta[i]);
      sum += oracle.routed[i] * delta[i];
    }
    CHECK(highest_routed <= lowest_kept);
    CHECK(oracle.delta_sum == sum);  // quarters add exactly
  }
}

TEST_CASE("at its best fraction the reference's sum of δ is the least of all") {
  RandomStream stream(9);
  std::vector<double> delta;
  for (int i = 0; i < 30; ++i) delta.push_back(std::round(8 * stream.normal()) / 8);
  const OracleRouting best = oracle_at_best(delta);
  for (std::size_t i = 0; i < delta.size(); ++i) CHECK((best.routed[i] == 1) == (delta[i] < 0));
  for (int k = 0; k <= 30; ++k) {
    CHECK(best.delta_sum <= oracle_at_fraction(delta, k / 30.0).delta_sum);
  }
  CHECK(oracle_at_best(std::vector{0.5, 0.0}).fraction == 0);
  CHECK(error_id([] { oracle_at_best(std::vector{std::nan("")}); }) == "gate/non-finite-delta");
  CHECK(error_id([] { oracle_at_fraction(std::vector{1.0}, -0.1); }) == "stats/probability");
}

TEST_CASE("preset scores are for one batch") {
  Reference backend;
  const PresetGate<Reference> gate(backend, {0.25, 0.75, 0.5});
  const std::vector<double> x{1, 2, 3};
  CHECK(scores_of(gate, backend, view_of(x, 1)) == std::vector{0.25, 0.75, 0.5});
  CHECK(natural_threshold(gate) == 0.5);
  const std::vector<double> longer(4);
  CHECK(error_id([&] { scores_of(gate, backend, view_of(longer, 1)); }) == "shape/vector");
}
