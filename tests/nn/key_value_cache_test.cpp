// Decoding with a cache is the same computation as running whole sequences, however the tokens are
// cut into calls.
#include <algorithm>
#include <numeric>

#include "counting_backend.hpp"
#include "nn/tiny_models.hpp"
#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/rule_gates.hpp"

namespace {

using namespace wanamaker_test;
using Reference = ReferenceBackend<double>;
using Sequences = std::vector<std::vector<int>>;
using Logits = naive::Rows<double>;

/// Positions of a tiny model; one sequence ends with the last of them, one has more than the 64
/// rows that attention takes at a time.
const std::vector<int> ragged_lengths{5, 1, 80, 13, 67};

std::vector<naive::Model> cached_families() {
  return {tiny_gpt2(),          tiny_neox(true),      tiny_neox(false),    tiny_llama(true, 0),
          tiny_llama(false, 1), tiny_llama(false, 3), tiny_llama(true, 64)};
}

/// The logits of every row of a batch.
template <class B>
Logits logits_of(B& backend, const AnyTransformer<B>& model, const PackedBatch<B>& batch,
                 Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const matrix_view_t<B> residual = workspace.matrix(batch.rows(), model.config().width);
  const matrix_view_t<B> logits = workspace.matrix(batch.rows(), model.logit_columns());
  model.forward(backend, batch, residual, workspace);
  model.logits(backend, residual, logits, workspace);
  Logits rows;
  for (Index i = 0; i < logits.rows; ++i) {
    rows.emplace_back(logits.row(i), logits.row(i) + logits.cols);
  }
  return rows;
}

/// The logits of each sequence, all in one batch without a cache.
template <class B>
std::vector<Logits> whole_logits(B& backend, const AnyTransformer<B>& model,
                                 const Sequences& sequences) {
  Workspace<B> workspace(backend);
  const Logits all = logits_of(backend, model, pack(backend, sequences), workspace);
  std::vector<Logits> parts;
  auto at = all.begin();
  for (const std::vector<int>& sequence : sequences) {
    const auto end = at + static_cast<std::ptrdiff_t>(sequence.size());
    parts.emplace_back(at, end);
    at = end;
  }
  return parts;
}

/// Feeds the sequences to a cache in pieces of 1 to `longest` tokens: in each call a random choice
/// of the sequences that are not at their end, in random order, each in a place of the cache that
/// was drawn for it.
template <class B>
class PieceByPiece {
 public:
  PieceByPiece(B& backend, const AnyTransformer<B>& model, const Sequences& sequences)
      : backend_(backend),
        model_(model),
        sequences_(sequences),
        workspace_(backend),
        cache_(backend, model.config(), static_cast<Index>(sequences.size()) + 1, 80) {}

  std::vector<Logits> run(std::uint64_t seed, std::uint64_t longest) {
    RandomStream random(seed);
    places_.resize(sequences_.size() + 1);
    std::iota(places_.begin(), places_.end(), Index{0});
    shuffle(places_, random);
    for (Index s = 0; s < cache_.sequences(); ++s) cache_.truncate(s, 0);
    std::vector<Logits> logits(sequences_.size());
    while (step(logits, random, longest)) continue;
    return logits;
  }

  const KeyValueCache<B>& cache() const { return cache_; }
  Index place(std::size_t s) const { return places_[s]; }

 private:
  bool step(std::vector<Logits>& logits, RandomStream& random, std::uint64_t longest) {
    std::vector<std::size_t> open;
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      if (logits[s].size() < sequences_[s].size()) open.push_back(s);
    }
    if (open.empty()) return false;
    shuffle(open, random);
    open.resize(1 + random.below(open.size()));
    std::vector<TokenId> tokens;
    std::vector<Index> offsets{0}, places;
    for (const std::size_t s : open) {
      const std::size_t done = logits[s].size();
      const std::size_t left = sequences_[s].size() - done;
      const auto first = sequences_[s].begin() + static_cast<std::ptrdiff_t>(done);
      const std::size_t count = 1 + random.below(std::min<std::uint64_t>(longest, left));
      tokens.insert(tokens.end(), first, first + static_cast<std::ptrdiff_t>(count));
      offsets.push_back(static_cast<Index>(tokens.size()));
      places.push_back(places_[s]);
    }
    const PackedBatch<B> batch(backend_, tokens, offsets, cache_, places);
    const Logits rows = logits_of(backend_, model_, batch, workspace_);
    for (std::size_t i = 0; i < open.size(); ++i) {
      logits[open[i]].insert(logits[open[i]].end(), rows.begin() + offsets[i],
                             rows.begin() + offsets[i + 1]);
    }
    return true;
  }

  B& backend_;
  const AnyTransformer<B>& model_;
  const Sequences& sequences_;
  Workspace<B> workspace_;
  KeyValueCache<B> cache_;
  std::vector<Index> places_;
};

/// Token by token, in small and in large pieces.
template <class B, class Check>
void check_pieces(B& backend, const AnyTransformer<B>& model, const Sequences& sequences,
                  Check&& check) {
  PieceByPiece<B> pieces(backend, model, sequences);
  for (const std::uint64_t longest : {1u, 2u, 7u, 30u, 80u}) {
    CAPTURE(longest);
    const std::vector<Logits> logits = pieces.run(100 + longest, longest);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      CAPTURE(s);
      CHECK(pieces.cache().length(pieces.place(s)) == static_cast<Index>(sequences[s].size()));
      check(s, logits[s]);
    }
  }
}

/// Within ten standard deviations of what rounding explains (see naive::Uncertain).
template <class B>
void check_pieces_against_formulas(B& backend, const naive::Model& formulas) {
  const AnyTransformer<B> model = ModelMaker<B>(backend, formulas).any();
  const Sequences sequences = random_sequences(formulas.settings.vocabulary, ragged_lengths);
  std::vector<naive::Rows<naive::Uncertain>> expected;
  for (const auto& sequence : sequences) {
    expected.push_back(naive::forward<naive::Uncertain>(formulas, sequence).logits);
  }
  check_pieces(backend, model, sequences, [&](std::size_t s, const Logits& logits) {
    double worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      for (std::size_t v = 0; v < logits[i].size(); ++v) {
        const naive::Uncertain& e = expected[s][i][v];
        const double error = std::abs(logits[i][v] - e.value) / (10 * std::sqrt(e.variance));
        worst = error <= worst ? worst : std::isnan(error) ? HUGE_VAL : error;
      }
    }
    CHECK(logits.size() == expected[s].size());
    CHECK(worst <= 1.0);
  });
}

}  // namespace

TEST_CASE("any way to cut sequences into calls gives the logits of whole sequences, bit by bit") {
  Reference backend;
  for (const naive::Model& formulas : cached_families()) {
    const auto model = ModelMaker<Reference>(backend, formulas).any();
    const Sequences sequences = random_sequences(formulas.settings.vocabulary, ragged_lengths);
    const std::vector<Logits> whole = whole_logits(backend, model, sequences);
    check_pieces(backend, model, sequences, [&](std::size_t s, const Logits& logits) {
      const bool equal = logits == whole[s];
      CHECK(equal);
    });
  }
}

TEST_CASE("decoding in float with weights in half equals the formulas up to rounding") {
  EigenBackend<float, half> backend;
  for (const naive::Model& formulas : cached_families()) {
    check_pieces_against_formulas(backend, formulas);
  }
}

// ---------------------------------------------------------------- policies

namespace {

/// What a policy was told about its rows.
struct SeenRows {
  std::vector<TokenId> tokens, positions;
  std::vector<Index> offsets;
};

/// Half of the input; writes down its context.
struct Witness {
  SeenRows* seen;

  template <class B>
  void forward(B&, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>&) const {
    seen->tokens.assign(rows.tokens.data, rows.tokens.data + rows.tokens.size);
    seen->positions.assign(rows.positions.data, rows.positions.data + rows.positions.size);
    seen->offsets.assign(rows.offsets.begin(), rows.offsets.end());
    CHECK(rows.residual.rows == x.rows);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) y(i, j) = x(i, j) / 2;
    }
  }
  MlpCost cost(Index) const { return {}; }
};

}  // namespace

TEST_CASE("policies see where a decoded token stands in its sequence") {
  Reference backend;
  const naive::Model formulas = tiny_llama(false, 3);
  AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
  SeenRows seen;
  model.mlp(1) = Witness{&seen};
  Workspace<Reference> workspace(backend);
  KeyValueCache<Reference> cache(backend, model.config(), 3, 10);
  const auto feed = [&](std::vector<TokenId> tokens, std::vector<Index> offsets,
                        std::vector<Index> sequences) {
    logits_of(backend, model, PackedBatch<Reference>(backend, tokens, offsets, cache, sequences),
              workspace);
  };
  feed({4, 5, 6, 7}, {0, 3, 4}, {2, 0});
  CHECK(seen.positions == std::vector<TokenId>{0, 1, 2, 0});
  feed({8, 9, 1}, {0, 1, 3}, {0, 2});
  CHECK(seen.tokens == std::vector<TokenId>{8, 9, 1});
  CHECK(seen.positions == std::vector<TokenId>{1, 3, 4});
  CHECK(seen.offsets == std::vector<Index>{0, 1, 3});
  CHECK(cache.length(0) == 2);
  CHECK(cache.length(1) == 0);
  CHECK(cache.length(2) == 5);
}

namespace {

/// A map instead of the model's own MLP of a layer where the gate says so.
template <class Gate>
RoutingCounts put_gate(Reference& backend, const naive::Model& formulas,
                       AnyTransformer<Reference>& model, Index layer, Gate gate, double threshold) {
  RandomStream random(3);
  const int d = formulas.settings.width;
  AffineMlp<Reference> map(ModelMaker<Reference>(backend, formulas)
                               .linear(random_dense(random, d, d, true), WeightLayout::in_out));
  auto policy = GatedMlp<Gate, AffineMlp<Reference>, AnyMlp<Reference>>::hard(
      std::move(gate), std::move(map), std::move(model.mlp(layer)), threshold);
  const RoutingCounts counts = policy.counts();
  model.mlp(layer) = AnyMlp<Reference>(std::move(policy));
  return counts;
}

}  // namespace

TEST_CASE("decoding with hard gates in the MLPs' places equals whole sequences") {
  Reference backend;
  for (const naive::Model& formulas : cached_families()) {
    AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
    const RoutingCounts by_rule = put_gate(backend, formulas, model, 0, FirstPositionGate{}, 0.5);
    const NormGate norm(model.config().width, NormSource::residual);
    const RoutingCounts by_norm = put_gate(backend, formulas, model, 1, norm, 4.0);
    const Sequences sequences = random_sequences(formulas.settings.vocabulary, ragged_lengths);
    const std::vector<Logits> whole = whole_logits(backend, model, sequences);
    CHECK(by_rule.rows(0) == static_cast<Index>(sequences.size()));
    CHECK(by_norm.rows(0) > 0);
    CHECK(by_norm.rows(1) > 0);
    check_pieces(backend, model, sequences, [&](std::size_t s, const Logits& logits) {
      const bool equal = logits == whole[s];
      CHECK(equal);
    });
  }
}

// ---------------------------------------------------------------- truncation, memory

TEST_CASE("a truncated sequence goes on as if the rest had not been run, a batch may run again") {
  Reference backend;
  for (const naive::Model& formulas : cached_families()) {
    const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
    const Sequences sequences = random_sequences(formulas.settings.vocabulary, {9, 12});
    Sequences joined{sequences[0]};
    joined[0].resize(4);
    joined[0].insert(joined[0].end(), sequences[1].begin(), sequences[1].end());
    const Logits whole = whole_logits(backend, model, joined).front();
    Workspace<Reference> workspace(backend);
    KeyValueCache<Reference> cache(backend, model.config(), 1, 16);
    const std::vector<TokenId> first(sequences[0].begin(), sequences[0].end());
    const std::vector<TokenId> second(sequences[1].begin(), sequences[1].end());
    logits_of(backend, model, PackedBatch<Reference>(backend, first, cache), workspace);
    cache.truncate(0, 4);
    const PackedBatch<Reference> batch(backend, second, cache);
    CHECK(batch.longest() == 16);
    const Logits expected(whole.begin() + 4, whole.end());
    for (int run = 0; run < 2; ++run) {
      const bool equal = logits_of(backend, model, batch, workspace) == expected;
      CHECK(equal);
      CHECK(cache.length(0) == 16);
    }
  }
}

TEST_CASE("a decoded token allocates nothing in the backend's memory") {
  int allocations = 0;
  CountingBackend backend(allocations);
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_llama(true, 3)}) {
    const auto model = ModelMaker<CountingBackend>(backend, formulas).any();
    Workspace<CountingBackend> workspace(backend);
    KeyValueCache<CountingBackend> cache(backend, model.config(), 1, 80);
    const std::vector<TokenId> prompt{1, 2, 3};
    const std::vector<TokenId> next{4};
    PackedBatch<CountingBackend> batch(backend, prompt, cache);
    logits_of(backend, model, batch, workspace);
    allocations = 0;
    while (cache.length(0) < cache.capacity()) {
      batch.assign(backend, next, cache);
      logits_of(backend, model, batch, workspace);
    }
    CHECK(allocations == 0);
  }
}

TEST_CASE("a cache says how many bytes it takes") {
  Reference backend;
  const auto model = ModelMaker<Reference>(backend, tiny_llama(true, 0)).any();
  const KeyValueCache<Reference> cache(backend, model.config(), 5, 7);
  CHECK(cache.bytes() == std::size_t{2 * 3 * 5 * 7 * (2 * 6) * 8});
  CHECK(cache.sequences() == 5);
  CHECK(cache.capacity() == 7);
}

// ---------------------------------------------------------------- bad input

TEST_CASE("what neither cache nor model has room for is refused, by id") {
  Reference backend;
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_llama(false, 3)}) {
    const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
    Workspace<Reference> workspace(backend);
    KeyValueCache<Reference> exact(backend, model.config(), 1, 80),
        wide(backend, model.config(), 1, 100);
    const std::vector<TokenId> most(79, 1), one{1}, two{1, 2};
    const auto feed = [&](KeyValueCache<Reference>& cache, const std::vector<TokenId>& tokens) {
      return error_id([&] {
        logits_of(backend, model, PackedBatch<Reference>(backend, tokens, cache), workspace);
      });
    };
    CHECK(feed(exact, most) == "");
    CHECK(feed(exact, two) == "protocol/cache-full");
    CHECK(feed(exact, one) == "");
    CHECK(feed(exact, one) == "protocol/cache-full");
    CHECK(feed(wide, most) == "");
    CHECK(feed(wide, two) == "protocol/window-too-long");
    CHECK(feed(wide, one) == "");
    CHECK(feed(wide, one) == "protocol/window-too-long");
    CHECK(wide.length(0) == 80);
  }
}

TEST_CASE("caches that cannot be, or that are another model's, are refused, by id") {
  Reference backend;
  const naive::Model formulas = tiny_gpt2();
  const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
  const auto make = [&](Index sequences, Index capacity) {
    return error_id([&] { KeyValueCache<Reference>(backend, ModelConfig{}, sequences, capacity); });
  };
  CHECK(make(1, 1) == "");
  CHECK(make(2, 0x3fffffff) == "");
  CHECK(make(0, 1) == "shape/cache");
  CHECK(make(1, 0) == "shape/cache");
  CHECK(make(-1, -1) == "shape/cache");
  CHECK(make(2, 0x40000000) == "shape/cache");
  CHECK(make(Index{1} << 40, Index{1} << 40) == "shape/cache");
  Workspace<Reference> workspace(backend);
  const auto run_with = [&](ModelConfig config) {
    KeyValueCache<Reference> cache(backend, config, 1, 8);
    const std::vector<TokenId> tokens{1, 2};
    return error_id([&] {
      logits_of(backend, model, PackedBatch<Reference>(backend, tokens, cache), workspace);
    });
  };
  ModelConfig config = model.config();
  CHECK(run_with(config) == "");
  config.layers = 1;
  CHECK(run_with(config) == "shape/layer");
  config = model.config();
  config.key_heads = 1;
  CHECK(run_with(config) == "shape/matrix");
}

TEST_CASE("sequences, lengths and orders that a cache cannot serve are refused, by id") {
  Reference backend;
  const naive::Model formulas = tiny_neox(true);
  const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
  KeyValueCache<Reference> cache(backend, model.config(), 2, 8);
  Workspace<Reference> workspace(backend);
  const std::vector<TokenId> tokens{1, 2, 3};
  const auto with = [&](std::vector<Index> sequences) {
    const std::vector<Index> offsets{0, 1, 3};
    return error_id([&] { PackedBatch<Reference>(backend, tokens, offsets, cache, sequences); });
  };
  CHECK(with({0, 1}) == "");
  CHECK(with({1, 0}) == "");
  CHECK(with({0, 2}) == "shape/cache-sequence");
  CHECK(with({-1, 0}) == "shape/cache-sequence");
  CHECK(with({1, 1}) == "shape/cache-sequence");
  CHECK(with({0}) == "shape/cache-sequence");
  const PackedBatch<Reference> first(backend, tokens, cache);
  logits_of(backend, model, first, workspace);
  const PackedBatch<Reference> second(backend, tokens, cache);
  CHECK(error_id([&] { cache.truncate(0, 4); }) == "shape/cache-length");
  CHECK(error_id([&] { cache.truncate(0, -1); }) == "shape/cache-length");
  CHECK(error_id([&] { cache.truncate(2, 0); }) == "shape/cache-sequence");
  cache.truncate(0, 2);
  CHECK(error_id([&] { logits_of(backend, model, second, workspace); }) == "protocol/cache-gap");
  CHECK(cache.length(0) == 2);
  // A batch that was refused is as it was.
  PackedBatch<Reference> batch(backend, tokens, cache);
  const std::vector<TokenId> too_many(7, 1);
  CHECK(error_id([&] { batch.assign(backend, too_many, cache); }) == "protocol/cache-full");
  CHECK(batch.rows() == 3);
  CHECK(batch.longest() == 5);
}
