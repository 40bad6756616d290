// The residual stream taken apart: sums to round-off on every family, golden and trained models,
// heads against models with the other heads cut off, statistics by hand.
#include "wanamaker/residual/decomposition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "nn/tiny_models.hpp"
#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/residual/part_collection.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

/// Passes a forward pass on to a decomposition and keeps what it must add up to.
template <class B>
struct Witness {
  ResidualDecomposition<B>& decomposition;
  std::vector<std::vector<double>> streams{};
  std::vector<std::vector<double>> attention{};
  std::vector<std::vector<double>> inputs{};
  std::vector<std::vector<double>> heads{};

  static std::vector<double> copy_of(const_matrix_view_t<B> m) {
    std::vector<double> values;
    for (Index i = 0; i < m.rows; ++i) values.insert(values.end(), m.row(i), m.row(i) + m.cols);
    return values;
  }
  void on_residual(Index layer, const_matrix_view_t<B> r) {
    streams.push_back(copy_of(r));
    decomposition.on_residual(layer, r);
  }
  void on_attention_heads(Index layer, const_matrix_view_t<B> h) {
    heads.push_back(copy_of(h));
    decomposition.on_attention_heads(layer, h);
  }
  void on_attention_output(Index layer, const_matrix_view_t<B> a) {
    attention.push_back(copy_of(a));
    decomposition.on_attention_output(layer, a);
  }
  void on_mlp_input(Index, const_matrix_view_t<B> x) { inputs.push_back(copy_of(x)); }
  void on_mlp_output(Index layer, const_matrix_view_t<B> y) {
    decomposition.on_mlp_output(layer, y);
  }
};

/// Numbers of one stage beside what each of them may be off by.
class Allowance {
 public:
  void add(double actual, double expected, double allowed) {
    const double error = std::abs(actual - expected);
    ++count_;
    if (!(error <= allowed)) ++failures_;
    if (allowed > 0) worst_ = std::max(worst_, error / allowed);
  }
  bool holds() const { return count_ > 0 && failures_ == 0; }
  double worst() const { return worst_; }

 private:
  Index count_ = 0;
  Index failures_ = 0;
  double worst_ = 0;
};

/// f(model) with the model's own type.
template <class Model, class F>
decltype(auto) with_own_type(const Model& model, F&& f) {
  if constexpr (requires { model.visit(f); }) {
    return model.visit(f);
  } else {
    return f(model);
  }
}

template <class B, class Model>
class IdentityChecker {
 public:
  using T = scalar_t<B>;
  /// Unit round-off of the backend's arithmetic.
  static constexpr double u = std::numeric_limits<T>::epsilon() / 2.0;

  IdentityChecker(B& backend, const Model& model, const PackedBatch<B>& batch)
      : backend_(backend),
        model_(model),
        workspace_(backend),
        batch_(batch),
        decomposition_(backend, model, {.heads = true}),
        witness_{decomposition_} {
    decomposition_.begin(batch);
    matrix_t<B> residual = make_matrix(backend, batch.rows(), model.config().width);
    model.forward(backend, batch, residual.view(), workspace_, witness_);
  }

  void check() {
    const Index layers = decomposition_.layers();
    for (Index layer = 0; layer <= layers; ++layer) check_stream(layer);
    for (Index layer = 0; layer < layers; ++layer) {
      check_mlp_input(layer);
      check_heads(layer);
    }
  }

 private:
  std::vector<double> values(const_matrix_view_t<B> m) const { return Witness<B>::copy_of(m); }

  /// |part 0| + … of the first `count` parts, entry by entry.
  std::vector<double> magnitudes(Index count) const {
    std::vector<double> sums(static_cast<std::size_t>(batch_.rows() * decomposition_.width()));
    for (Index p = 0; p < count; ++p) {
      const std::vector<double> part = values(decomposition_.part(p));
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += std::abs(part[i]);
    }
    return sums;
  }

  // In the model's order and arithmetic the sum is the stream itself. In any other order, here in
  // double, n − 1 roundings of the model remain: γ_{n−1}·Σ|part| (Higham 2002, section 4.2), γ_n =
  // n·u/(1 − n·u); the double sum has its own.
  void check_stream(Index layer) {
    const Index count = decomposition_.stream_parts(layer);
    const std::vector<double>& stream = witness_.streams[static_cast<std::size_t>(layer)];
    matrix_t<B> sum = make_matrix(backend_, batch_.rows(), decomposition_.width());
    decomposition_.sum_first(count, sum.view());
    CHECK(values(sum.view()) == stream);
    const std::vector<double> sizes = magnitudes(count);
    std::vector<double> exact(stream.size());
    for (Index p = count - 1; p >= 0; --p) {
      const std::vector<double> part = values(decomposition_.part(p));
      for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += part[i];
    }
    const double n = static_cast<double>(count);
    Allowance allowance;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      allowance.add(exact[i], stream[i], 1.001 * (n - 1) * (u + 0x1p-53) * sizes[i]);
    }
    CHECK_MESSAGE(allowance.holds(), "stream of layer " << layer << ": " << allowance.worst());
  }

  // With A = Σ|part|, Ā its mean over the entries, s the scale and g the gain: the stream that the
  // norm reads is off from Σ parts by n·u·A, which the norm's linear map makes n·u·s|g|(A + Ā); the
  // model's norm rounds mean, scale, difference, two products and the sum with the bias, at most
  // 5u·s|g|(A + Ā) + u|x|; each contribution is rounded once, u·s|g|(|c| + mean|c|), together
  // u·s|g|(A + Ā). Sums of d terms in double are good to d·2^-53. Second orders: the factor 1.01.
  void check_mlp_input(Index layer) {
    const Index d = decomposition_.width();
    const Index count = decomposition_.mlp_parts(layer);
    const std::vector<double> sizes = magnitudes(count);
    const std::vector<double>& input = witness_.inputs[static_cast<std::size_t>(layer)];
    std::vector<double> sum(input.size());
    matrix_t<B> y = make_matrix(backend_, batch_.rows(), d);
    for (Index p = 0; p < count; ++p) {
      decomposition_.contribution(layer, decomposition_.part(p), y.view());
      const std::vector<double> part = values(y.view());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    const ConstVectorView<T> bias = decomposition_.norm_bias(layer);
    const ConstVectorView<double> scale = decomposition_.scale(layer);
    const std::vector<double> gain = gains(layer);
    Allowance allowance;
    for (Index i = 0; i < batch_.rows(); ++i) {
      const double* row = sizes.data() + i * d;
      double mean = 0;
      for (Index j = 0; j < d; ++j) mean += row[j] / static_cast<double>(d);
      for (Index j = 0; j < d; ++j) {
        const std::size_t at = static_cast<std::size_t>(i * d + j);
        const double own_bias = bias.empty() ? 0.0 : static_cast<double>(bias[j]);
        const double reach =
            scale[i] * std::abs(gain[static_cast<std::size_t>(j)]) * (row[j] + mean);
        const double roundings =
            u * static_cast<double>(count + 6) + 0x1p-53 * static_cast<double>(2 * d + count);
        allowance.add(sum[at] + own_bias, input[at],
                      1.01 * (roundings * reach + u * std::abs(input[at])));
      }
    }
    CHECK_MESSAGE(allowance.holds(), "MLP input of layer " << layer << ": " << allowance.worst());
  }

  std::vector<double> gains(Index layer) const {
    return with_own_type(model_, [&](const auto& m) {
      const ConstVectorView<T> gain = m.block(layer).mlp_norm().gain().vector();
      return std::vector<double>(gain.data, gain.data + gain.size);
    });
  }

  // Σ_k |mixture_k·weight_kj| + |bias_j| of every position, the size that roundings scale with.
  std::vector<double> projection_sizes(Index layer) const {
    const std::vector<double>& mixed = witness_.heads[static_cast<std::size_t>(layer)];
    const Index d = decomposition_.width();
    const Index inner = static_cast<Index>(mixed.size()) / batch_.rows();
    const ConstVectorView<T> bias = decomposition_.attention_bias(layer);
    std::vector<double> sizes;
    with_own_type(model_, [&](const auto& m) {
      const auto weight = m.block(layer).attention().output().factor();
      for (Index i = 0; i < batch_.rows(); ++i) {
        for (Index j = 0; j < d; ++j) {
          double size = bias.empty() ? 0.0 : std::abs(static_cast<double>(bias[j]));
          for (Index k = 0; k < inner; ++k) {
            size += std::abs(mixed[static_cast<std::size_t>(i * inner + k)] *
                             static_cast<double>(weight(k, j)));
          }
          sizes.push_back(size);
        }
      }
    });
    return sizes;
  }

  // The model's sum of H·w products and a bias is off by at most γ_{H·w + 1} of the sum of
  // magnitudes, that of each head by γ_w, in any order of summation (Higham 2002, section 3.1).
  void check_heads(Index layer) {
    const Index d = decomposition_.width();
    std::vector<double> sum(static_cast<std::size_t>(batch_.rows() * d));
    matrix_t<B> y = make_matrix(backend_, batch_.rows(), d);
    for (Index head = 0; head < decomposition_.heads(); ++head) {
      decomposition_.head_output(layer, head, y.view());
      const std::vector<double> own = values(y.view());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
    }
    const ConstVectorView<T> bias = decomposition_.attention_bias(layer);
    const std::vector<double> sizes = projection_sizes(layer);
    const std::vector<double>& whole = witness_.attention[static_cast<std::size_t>(layer)];
    const Index inner = static_cast<Index>(witness_.heads[0].size()) / batch_.rows();
    const double terms = static_cast<double>(inner + 1 + inner / decomposition_.heads());
    Allowance allowance;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const Index j = static_cast<Index>(i) % d;
      const double own_bias = bias.empty() ? 0.0 : static_cast<double>(bias[j]);
      allowance.add(sum[i] + own_bias, whole[i], 1.01 * terms * u * sizes[i]);
    }
    CHECK_MESSAGE(allowance.holds(), "heads of layer " << layer << ": " << allowance.worst());
  }

  B& backend_;
  const Model& model_;
  Workspace<B> workspace_;
  const PackedBatch<B>& batch_;
  ResidualDecomposition<B> decomposition_;
  Witness<B> witness_;
};

std::vector<naive::Model> decomposed_families() {
  return {tiny_gpt2(), tiny_neox(true), tiny_neox(false), tiny_llama(true, 0),
          tiny_llama(false, 3)};
}

using Double = EigenBackend<double>;

void check_identities(Double& backend, const AnyTransformer<Double>& model,
                      const PackedBatch<Double>& batch) {
  IdentityChecker<Double, AnyTransformer<Double>>(backend, model, batch).check();
}

TEST_CASE("parts add up to the stream and to the MLP's input, heads to attention: every family") {
  Double backend;
  for (const naive::Model& tiny : decomposed_families()) {
    CAPTURE(tiny.settings.rotary_width);
    CAPTURE(tiny.settings.parallel);
    CAPTURE(tiny.settings.root_mean_square);
    const AnyTransformer<Double> model = ModelMaker(backend, tiny).any();
    for (const std::vector<int>& lengths : {std::vector<int>{5, 1, 17, 2}, {1}}) {
      check_identities(backend, model,
                       pack(backend, random_sequences(tiny.settings.vocabulary, lengths)));
    }
  }
}

TEST_CASE("the same in float, of a model of a known type") {
  using B = EigenBackend<float>;
  using Model = Transformer<B, Gpt2Block<B, AnyMlp<B>>>;
  B backend;
  const naive::Model tiny = tiny_gpt2();
  const ModelMaker<B> maker(backend, tiny);
  const Model model = maker.transformer<Model, LearnedPositions>(
      WeightLayout::in_out,
      [&](const naive::Block& b, WeightLayout layout) { return maker.mlp(b, layout); });
  const auto batch = pack(backend, random_sequences(31, {3, 20}));
  IdentityChecker<B, Model>(backend, model, batch).check();
}

void check_file(const std::filesystem::path& folder,
                const std::vector<std::vector<TokenId>>& sequences) {
  Double backend;
  const AnyTransformer<Double> model = load_model(backend, folder);
  std::vector<TokenId> tokens;
  std::vector<Index> offsets{0};
  for (const std::vector<TokenId>& own : sequences) {
    tokens.insert(tokens.end(), own.begin(), own.end());
    offsets.push_back(static_cast<Index>(tokens.size()));
  }
  check_identities(backend, model, PackedBatch<Double>(backend, tokens, offsets));
}

TEST_CASE("the same of the golden models") {
  for (const char* name : {"tiny-gpt2", "tiny-neox", "tiny-neox-sequential", "tiny-llama"}) {
    const auto folder = shared_data("golden/" + std::string(name));
    if (!folder) return;
    CAPTURE(name);
    const auto ids = parse_json_file(*folder / "ids.json").get<std::vector<std::vector<TokenId>>>();
    check_file(*folder, ids);
  }
}

TEST_CASE("the same of the trained models that come with the program") {
  for (const char* name : {"books-gpt2", "books-neox"}) {
    CAPTURE(name);
    check_file(std::string(WANAMAKER_EXAMPLES_DATA) + "/models/" + name,
               {{17, 300, 4000, 5, 5, 1234, 42}, {2048}, {77, 1000, 3, 999}});
  }
}

TEST_CASE("parts are in the order of their sum, and named") {
  EigenBackend<double> backend;
  const auto names = [&](const naive::Model& tiny, Index layer) {
    const auto model = ModelMaker(backend, tiny).any();
    const ResidualDecomposition decomposition(backend, model);
    std::string all;
    for (const ResidualPart& p : decomposition.parts_before_mlp(layer)) all += p.name() + " ";
    return all;
  };
  CHECK(names(tiny_gpt2(), 1) == "token position attention-0 mlp-0 attention-1 ");
  CHECK(names(tiny_gpt2(), 0) == "token position attention-0 ");
  CHECK(names(tiny_neox(false), 1) == "token attention-0 mlp-0 attention-1 ");
  // The parallel MLP does not see the attention beside it.
  CHECK(names(tiny_neox(true), 1) == "token attention-0 mlp-0 ");
  CHECK(names(tiny_neox(true), 0) == "token ");
  CHECK(names(tiny_llama(true, 0), 0) == "token attention-0 ");
}

TEST_CASE("groups by kind, token against the rest, and each alone") {
  const std::vector<ResidualPart> parts{{PartKind::token},
                                        {PartKind::position},
                                        {PartKind::attention, 0},
                                        {PartKind::mlp, 0},
                                        {PartKind::attention, 1}};
  const std::vector<PartGroup> kinds = parts_by_kind(parts);
  REQUIRE(kinds.size() == 4);
  CHECK(kinds[2].name == "attention");
  CHECK(kinds[2].parts == std::vector<Index>{2, 4});
  CHECK(parts_by_kind(std::span(parts).first(1)).size() == 1);
  const std::vector<PartGroup> two = token_and_context(parts);
  CHECK(two[0].parts == std::vector<Index>{0});
  CHECK(two[1].parts == std::vector<Index>{1, 2, 3, 4});
  CHECK(single_parts(parts)[3].name == "mlp-0");
}

// The naive model with every head but one cut off from the output projection, its bias too.
naive::Model with_one_head(naive::Model model, int head) {
  naive::Dense& output = model.blocks[0].output;
  for (std::size_t k = 0; k < output.weight.size(); ++k) {
    const bool own = static_cast<int>(k) / model.settings.head_width == head;
    for (double& w : output.weight[k]) w = own ? w : 0.0;
  }
  output.bias.assign(output.bias.size(), 0.0);
  return model;
}

TEST_CASE("a head's output is what the first layer's attention adds with the others cut off") {
  EigenBackend<double> backend;
  for (const naive::Model& tiny : {tiny_gpt2(), tiny_llama(true, 0)}) {
    const auto model = ModelMaker(backend, tiny).any();
    const auto batch = pack(backend, random_sequences(tiny.settings.vocabulary, {9, 4}));
    Workspace<EigenBackend<double>> workspace(backend);
    ResidualDecomposition decomposition(backend, model, {.heads = true});
    auto stream = make_matrix(backend, batch.rows(), tiny.settings.width);
    decomposition.begin(batch);
    model.forward(backend, batch, stream.view(), workspace, decomposition);
    for (int head = 0; head < tiny.settings.heads; ++head) {
      const auto cut = ModelMaker(backend, with_one_head(tiny, head)).any();
      ResidualDecomposition alone(backend, cut);
      alone.begin(batch);
      cut.forward(backend, batch, stream.view(), workspace, alone);
      auto own = make_matrix(backend, batch.rows(), tiny.settings.width);
      decomposition.head_output(0, head, own.view());
      const auto expected = alone.part(alone.attention_part(0));
      // Sums of 4 or so products of numbers of order 1, in double.
      CHECK(all_close(Witness<EigenBackend<double>>::copy_of(own.view()),
                      Witness<EigenBackend<double>>::copy_of(expected), 0, 1e-13));
    }
  }
}

TEST_CASE("what was not collected, and passes that were not prepared, are refused") {
  EigenBackend<double> backend;
  using B = EigenBackend<double>;
  const auto model = ModelMaker(backend, tiny_gpt2()).any();
  const auto batch = pack(backend, random_sequences(31, {4, 3}));
  Workspace<B> workspace(backend);
  ResidualDecomposition<B> decomposition(backend, model);
  auto stream = make_matrix(backend, batch.rows(), 12);
  const auto run = [&](const PackedBatch<B>& own) {
    return error_id([&] {
      auto r = make_matrix(backend, own.rows(), 12);
      model.forward(backend, own, r.view(), workspace, decomposition);
    });
  };
  CHECK(run(batch) == "shape/observer-order");
  CHECK(error_id([&] { decomposition.part(0); }) == "shape/residual-part");
  decomposition.begin(batch);
  CHECK(error_id([&] { decomposition.part(0); }) == "shape/residual-part");
  CHECK(run(batch) == "");
  CHECK(decomposition.part(5).rows == 7);
  CHECK(run(batch) == "shape/observer-order");
  decomposition.begin(batch);
  CHECK(run(pack(backend, random_sequences(31, {4}))) == "shape/observer-order");
  decomposition.begin(batch);
  CHECK(error_id([&] {
          model.forward_from(backend, 1, batch, stream.view(), workspace, decomposition);
        }) == "shape/observer-order");
  CHECK(run(batch) == "");
  CHECK(error_id([&] { decomposition.part(6); }) == "shape/residual-part");
  CHECK(error_id([&] { decomposition.part(-1); }) == "shape/residual-part");
  CHECK(error_id([&] { decomposition.mlp_parts(2); }) == "shape/layer");
  CHECK(error_id([&] { decomposition.stream_parts(3); }) == "shape/layer");
  CHECK(error_id([&] { decomposition.head_output(0, 0, stream.view()); }) == "shape/head");
  auto narrow = make_matrix(backend, batch.rows(), 11);
  CHECK(error_id([&] { decomposition.contribution(0, narrow.view(), narrow.view()); }) ==
        "shape/matrix");
}

TEST_CASE("ids and lengths that the model refuses are refused before parts are taken") {
  EigenBackend<double> backend;
  using B = EigenBackend<double>;
  const auto model = ModelMaker(backend, tiny_gpt2()).any();
  Workspace<B> workspace(backend);
  ResidualDecomposition<B> decomposition(backend, model);
  const auto run = [&](const std::vector<TokenId>& ids) {
    return error_id([&] {
      const PackedBatch<B> batch(backend, ids);
      auto r = make_matrix(backend, batch.rows(), 12);
      decomposition.begin(batch);
      model.forward(backend, batch, r.view(), workspace, decomposition);
    });
  };
  CHECK(run({1, 31}) == "data/token-outside-vocabulary");
  CHECK(run(std::vector<TokenId>(81, 1)) == "protocol/window-too-long");
}

TEST_CASE("part statistics by hand") {
  PartStatistics statistics(2, {{1, 0}, {0, 2}});
  const std::vector<double> first{3, 4, 0, 5};  // parts (3, 4) and (0, 5)
  const std::vector<double> second{1, 0, 0, 0};
  const std::vector<double> third{-1, 2, 2, 1};
  for (const std::vector<double>* position : {&first, &second, &third}) {
    statistics.add({position->data(), 2, 2});
  }
  CHECK(statistics.positions() == 3);
  CHECK(*statistics.norm(0).mean() == doctest::Approx((5 + 1 + std::sqrt(5)) / 3).epsilon(1e-14));
  // 20/25 at the first position, none at the second, 0 at the third.
  CHECK(statistics.cosine(0, 1).count() == 2);
  CHECK(*statistics.cosine(1, 0).mean() == doctest::Approx(0.4).epsilon(1e-14));
  CHECK(std::abs(*statistics.cosine(0, 0).mean() - 1) < 4e-16);
  // Σ⟨a, b⟩ = 20 + 0 + 0; Σ‖a‖² = 25 + 1 + 5, Σ‖b‖² = 25 + 0 + 5.
  CHECK(*statistics.pooled_cosine(0, 1) ==
        doctest::Approx(20 / std::sqrt(31.0 * 30.0)).epsilon(1e-14));
  CHECK(*statistics.length_share(0) == doctest::Approx(51.0 / 101).epsilon(1e-14));
  // Along (1, 0): a 3, 1, −1, b 0, 0, 2, total 3, 1, 1: means 1, 2/3, 5/3.
  // cov(a, total)·2 = 2·4/3 + 0 + (−2)(−2/3) = 4; var(total)·2 = 16/9 + 4/9 + 4/9 = 24/9.
  CHECK(*statistics.projection_share(0, 0) == doctest::Approx(1.5).epsilon(1e-14));
  CHECK(*statistics.projection_share(0, 1) == doctest::Approx(-0.5).epsilon(1e-14));
  // Along (0, 2): total 18, 0, 6.
  CHECK(*statistics.total_projection(1).mean() == 8);
  CHECK(*statistics.projection(1, 1).mean() == 4);
}

TEST_CASE("part statistics of nothing, and of nothing but zeros, are missing") {
  PartStatistics statistics(2, {{1, 1}});
  CHECK(!statistics.norm(0).mean());
  CHECK(!statistics.pooled_cosine(0, 1));
  CHECK(!statistics.length_share(0));
  CHECK(!statistics.projection_share(0, 0));
  const std::vector<double> zeros(4);
  statistics.add({zeros.data(), 2, 2});
  statistics.add({zeros.data(), 2, 2});
  CHECK(!statistics.cosine(0, 1).mean());
  CHECK(!statistics.pooled_cosine(0, 1));
  CHECK(!statistics.projection_share(0, 0));
  CHECK(error_id([&] { statistics.add({zeros.data(), 1, 4}); }) == "shape/matrix");
  CHECK(error_id([&] { statistics.add({zeros.data(), 2, 1}); }) == "shape/vector");
  CHECK(error_id([&] { statistics.merge(PartStatistics(3)); }) == "shape/part-statistics");
}

TEST_CASE(
    "statistics of a text do not depend on how it is cut into batches, nor where they merge") {
  EigenBackend<double> backend;
  using B = EigenBackend<double>;
  const auto tiny = tiny_neox(false);
  const auto model = ModelMaker(backend, tiny).any();
  Workspace<B> workspace(backend);
  ResidualDecomposition<B> decomposition(backend, model);
  const auto groups = parts_by_kind(decomposition.parts_before_mlp(1));
  const auto sequences = random_sequences(tiny.settings.vocabulary, {7, 3, 12, 1});
  const std::vector<std::vector<double>> directions{std::vector(12, 0.25)};
  const auto add = [&](PartStatistics& to, const std::vector<std::vector<int>>& some) {
    const auto batch = pack(backend, some);
    auto r = make_matrix(backend, batch.rows(), 12);
    decomposition.begin(batch);
    model.forward(backend, batch, r.view(), workspace, decomposition);
    add_to(to, backend, decomposition, 1, groups, PartView::mlp_input, workspace);
  };
  PartStatistics whole(3, directions);
  add(whole, sequences);
  PartStatistics pieces(3, directions);
  for (const auto& sequence : sequences) add(pieces, {sequence});
  PartStatistics merged(3, directions);
  for (const auto& sequence : sequences) {
    PartStatistics own(3, directions);
    add(own, {sequence});
    merged.merge(own);
  }
  CHECK(whole.positions() == 23);
  const auto figures = [](const PartStatistics& s) {
    std::vector<double> all;
    for (Index p = 0; p < 3; ++p) {
      all.push_back(*s.norm(p).mean());
      all.push_back(*s.norm(p).variance());
      all.push_back(*s.length_share(p));
      all.push_back(*s.projection_share(0, p));
      for (Index q = 0; q < 3; ++q) {
        all.push_back(*s.cosine(p, q).mean());
        all.push_back(*s.pooled_cosine(p, q));
      }
    }
    return all;
  };
  // Of 23 positions, sums of terms of order 1 to 100 that partly cancel.
  CHECK(all_close(figures(pieces), figures(whole), 1e-11, 1e-12));
  CHECK(all_close(figures(merged), figures(whole), 1e-11, 1e-12));
  double lengths = 0;
  double projections = 0;
  for (Index p = 0; p < 3; ++p) {
    lengths += *whole.length_share(p);
    projections += *whole.projection_share(0, p);
  }
  CHECK(std::abs(lengths - 1) < 1e-12);
  CHECK(std::abs(projections - 1) < 1e-12);
}

TEST_CASE("statistics of chosen positions, of the stream, and of parts that the MLP does not see") {
  EigenBackend<double> backend;
  using B = EigenBackend<double>;
  const auto model = ModelMaker(backend, tiny_neox(true)).any();
  Workspace<B> workspace(backend);
  ResidualDecomposition<B> decomposition(backend, model);
  const auto batch = pack(backend, random_sequences(29, {5, 2}));
  auto r = make_matrix(backend, batch.rows(), 12);
  decomposition.begin(batch);
  model.forward(backend, batch, r.view(), workspace, decomposition);
  const auto groups = single_parts(decomposition.parts_before_mlp(1));
  PartStatistics first(3);
  std::vector<std::uint8_t> chosen{1, 0, 0, 0, 0, 1, 0};
  add_to(first, backend, decomposition, 1, groups, PartView::stream, workspace, chosen);
  CHECK(first.positions() == 2);
  RunningMoments by_hand;
  for (const Index row : {Index{0}, Index{5}}) {
    double square = 0;
    for (Index j = 0; j < 12; ++j) square += std::pow(decomposition.part(0)(row, j), 2);
    by_hand.add(std::sqrt(square));
  }
  CHECK(all_close(std::vector{*first.norm(0).mean()}, std::vector{*by_hand.mean()}, 1e-14, 0));
  const auto all = single_parts(decomposition.parts());
  PartStatistics five(5);
  CHECK(error_id([&] {
          add_to(five, backend, decomposition, 1, all, PartView::stream, workspace);
        }) == "shape/residual-part");
  chosen.pop_back();
  CHECK(error_id([&] {
          add_to(first, backend, decomposition, 1, groups, PartView::stream, workspace, chosen);
        }) == "shape/vector");
}

}  // namespace
