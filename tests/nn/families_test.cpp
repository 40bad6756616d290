// Every family against its formulas, and what must hold of any forward pass.
#include <algorithm>

#include "counting_backend.hpp"
#include "nn/tiny_models.hpp"
#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/half.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using Reference = ReferenceBackend<double>;
using Rows = naive::Rows<double>;

std::vector<naive::Model> all_families() {
  return {tiny_gpt2(), tiny_neox(true), tiny_neox(false), tiny_llama(true, 0),
          tiny_llama(false, 3)};
}

template <class View>
Rows rows_of(View view) {
  Rows rows;
  for (Index i = 0; i < view.rows; ++i) rows.emplace_back(view.row(i), view.row(i) + view.cols);
  return rows;
}

/// Records all stages of a pass on a host backend.
struct Recorder {
  naive::Trace<double> trace;

  template <class View>
  void on_residual(Index layer, View r) {
    CHECK(layer == static_cast<Index>(trace.residual.size()));
    trace.residual.push_back(rows_of(r));
  }
  template <class View>
  void on_attention_output(Index layer, View a) {
    CHECK(layer == static_cast<Index>(trace.attention_output.size()));
    trace.attention_output.push_back(rows_of(a));
  }
  template <class View>
  void on_mlp_input(Index layer, View x) {
    CHECK(layer == static_cast<Index>(trace.mlp_input.size()));
    trace.mlp_input.push_back(rows_of(x));
  }
  template <class View>
  void on_mlp_output(Index layer, View y) {
    CHECK(layer == static_cast<Index>(trace.mlp_output.size()));
    trace.mlp_output.push_back(rows_of(y));
  }
};

template <class B>
naive::Trace<double> run(B& backend, const AnyTransformer<B>& model, const PackedBatch<B>& batch) {
  Workspace<B> workspace(backend);
  Recorder recorder;
  matrix_t<B> residual = make_matrix(backend, batch.rows(), model.config().width);
  model.forward(backend, batch, residual.view(), workspace, recorder);
  matrix_t<B> logits = make_matrix(backend, batch.rows(), model.logit_columns());
  model.logits(backend, residual.view(), logits.view(), workspace);
  recorder.trace.logits = rows_of(logits.view());
  recorder.trace.nll =
      model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
  return recorder.trace;
}

/// The largest |actual − expected| in units of what is allowed; infinite for NaN.
class Comparison {
 public:
  /// Allowed: `relative` of the largest magnitude of the stage.
  void add(const Rows& actual, const Rows& expected, double relative) {
    double largest = 0;
    for (const auto& row : expected) {
      for (const double v : row) largest = std::max(largest, std::abs(v));
    }
    each(actual, expected, [&](double a, double e) { add_value(a, e, relative * largest); });
  }
  /// Allowed: ten standard deviations.
  void add(const Rows& actual, const naive::Rows<naive::Uncertain>& expected, double) {
    each(actual, expected, [&](double a, const naive::Uncertain& e) {
      add_value(a, e.value, 10 * std::sqrt(e.variance));
    });
  }
  double worst() const { return worst_; }

 private:
  template <class T, class F>
  void each(const Rows& actual, const naive::Rows<T>& expected, F&& f) {
    REQUIRE(actual.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      REQUIRE(actual[i].size() == expected[i].size());
      for (std::size_t j = 0; j < actual[i].size(); ++j) f(actual[i][j], expected[i][j]);
    }
  }
  void add_value(double actual, double expected, double allowed) {
    if (actual == expected) return;
    const double error = std::abs(actual - expected) / allowed;
    worst_ = error <= worst_ ? worst_ : std::isnan(error) ? HUGE_VAL : error;
  }
  double worst_ = 0;
};

/// Rows of sequence s in a packed trace.
Rows part(const Rows& all, std::size_t begin, std::size_t length) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(begin + length)};
}

template <class T>
double worst_of(const naive::Trace<double>& actual, const naive::Trace<T>& expected,
                std::size_t begin, std::size_t loss_begin, double relative) {
  Comparison c;
  const std::size_t length = expected.logits.size();
  for (std::size_t l = 0; l < expected.residual.size(); ++l) {
    c.add(part(actual.residual[l], begin, length), expected.residual[l], relative);
  }
  for (std::size_t l = 0; l < expected.mlp_input.size(); ++l) {
    c.add(part(actual.attention_output[l], begin, length), expected.attention_output[l], relative);
    c.add(part(actual.mlp_input[l], begin, length), expected.mlp_input[l], relative);
    c.add(part(actual.mlp_output[l], begin, length), expected.mlp_output[l], relative);
  }
  c.add(part(actual.logits, begin, length), expected.logits, relative);
  const auto first_loss = actual.nll.begin() + static_cast<std::ptrdiff_t>(loss_begin);
  const auto losses = static_cast<std::ptrdiff_t>(expected.nll.size());
  c.add(Rows(1, {first_loss, first_loss + losses}), naive::Rows<T>(1, expected.nll), relative);
  return c.worst();
}

/// All sequences in one batch, each against the formulas alone.
template <class T, class B>
void check_against_formulas(B& backend, const naive::Model& formulas, double relative) {
  const AnyTransformer<B> model = ModelMaker<B>(backend, formulas).any();
  const auto sequences = random_sequences(formulas.settings.vocabulary, {5, 1, 70, 13});
  const naive::Trace<double> actual = run(backend, model, pack(backend, sequences));
  CHECK(actual.residual.size() == static_cast<std::size_t>(formulas.settings.layers) + 1);
  CHECK(actual.mlp_output.size() == static_cast<std::size_t>(formulas.settings.layers));
  std::size_t begin = 0, loss_begin = 0;
  for (const std::vector<int>& sequence : sequences) {
    CAPTURE(sequence.size());
    CHECK(worst_of(actual, naive::forward<T>(formulas, sequence), begin, loss_begin, relative) <=
          1.0);
    begin += sequence.size();
    loss_begin += sequence.size() - 1;
  }
}

}  // namespace

TEST_CASE("every family equals its formulas in double") {
  Reference backend;
  for (const naive::Model& formulas : all_families()) {
    check_against_formulas<double>(backend, formulas, 1e-11);
  }
}

TEST_CASE("every family equals its formulas in float with weights in half") {
  EigenBackend<float, half> backend;
  for (const naive::Model& formulas : all_families()) {
    check_against_formulas<naive::Uncertain>(backend, formulas, 0);
  }
}

TEST_CASE("the deviations that float is allowed are small, so that a mistake is seen") {
  const auto sequence = random_sequences(27, {20}).front();
  const auto trace = naive::forward<naive::Uncertain>(tiny_llama(true, 0), sequence);
  for (const naive::Uncertain& loss : trace.nll) CHECK(10 * std::sqrt(loss.variance) < 1e-2);
}

TEST_CASE("a batch gives each sequence what it gets alone, in any order") {
  Reference backend;
  for (const naive::Model& formulas : all_families()) {
    const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
    auto sequences = random_sequences(formulas.settings.vocabulary, {5, 1, 67, 13});
    for (const bool reversed : {false, true}) {
      if (reversed) std::reverse(sequences.begin(), sequences.end());
      const naive::Trace<double> packed = run(backend, model, pack(backend, sequences));
      std::size_t begin = 0, loss_begin = 0;
      for (const std::vector<int>& sequence : sequences) {
        const naive::Trace<double> alone = run(backend, model, pack(backend, {sequence}));
        CHECK(worst_of(packed, alone, begin, loss_begin, 0.0) == 0.0);
        begin += sequence.size();
        loss_begin += sequence.size() - 1;
      }
    }
  }
}

TEST_CASE("resuming in the middle gives what a whole pass gives") {
  Reference backend;
  for (const naive::Model& formulas : all_families()) {
    const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
    const auto batch = pack(backend, random_sequences(formulas.settings.vocabulary, {5, 1, 23}));
    const naive::Trace<double> whole = run(backend, model, batch);
    Workspace<Reference> workspace(backend);
    for (Index layer = 0; layer <= model.layers(); ++layer) {
      auto residual = make_matrix(backend, batch.rows(), model.config().width);
      const Rows& entering = whole.residual[static_cast<std::size_t>(layer)];
      for (Index i = 0; i < batch.rows(); ++i) {
        std::copy_n(entering[static_cast<std::size_t>(i)].data(), residual.cols(),
                    residual.view().row(i));
      }
      model.forward_from(backend, layer, batch, residual.view(), workspace);
      CHECK(rows_of(residual.view()) == whole.residual.back());
    }
  }
}

namespace {

void check_attend(Reference& backend, const naive::Model& formulas) {
  const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
  const auto batch = pack(backend, random_sequences(formulas.settings.vocabulary, {4, 9}));
  const naive::Trace<double> whole = run(backend, model, batch);
  Workspace<Reference> workspace(backend);
  const auto make = [&] { return make_matrix(backend, batch.rows(), model.config().width); };
  auto residual = make(), carry = make(), input = make(), output = make();
  model.embed(backend, batch, residual.view());
  for (Index l = 0; l < model.layers(); ++l) {
    model.attend(backend, l, batch, residual.view(), carry.view(), input.view(), workspace);
    CHECK(rows_of(input.view()) == whole.mlp_input[static_cast<std::size_t>(l)]);
    const auto context = model.row_context(l, batch, residual.view(), carry.view());
    CHECK(context.layer == l);
    CHECK(context.residual.data == (formulas.settings.parallel ? residual.data() : carry.data()));
    CHECK(context.tokens[3] == batch.host_tokens()[3]);
    CHECK(context.positions[4] == 0);
    CHECK(context.offsets.size() == 3);
    model.mlp(l).forward(backend, input.view(), context, output.view(), workspace);
    CHECK(rows_of(output.view()) == whole.mlp_output[static_cast<std::size_t>(l)]);
    ops::add<Reference>(backend, carry.view(), output.view(), residual.view());
  }
  CHECK(rows_of(residual.view()) == whole.residual.back());
}

}  // namespace

TEST_CASE("attending and then running the MLP gives what the block gives") {
  Reference backend;
  for (const naive::Model& formulas : all_families()) check_attend(backend, formulas);
}

TEST_CASE("a block runs with another policy in its MLP's place") {
  Reference backend;
  const naive::Model formulas = tiny_neox(true);
  using Model = Transformer<Reference, GptNeoXBlock<Reference>>;
  const ModelMaker<Reference> maker(backend, formulas);
  const Model model = maker.transformer<Model, RotaryPositions<Reference>>(
      WeightLayout::out_in, [&](const naive::Block& b, WeightLayout layout) {
        return DenseMlp<Reference, GeluErf>(maker.linear(b.up, layout),
                                            maker.linear(b.down, layout));
      });
  const auto batch = pack(backend, random_sequences(formulas.settings.vocabulary, {6}));
  Workspace<Reference> workspace(backend);
  auto residual = make_matrix(backend, 6, 12), carry = make_matrix(backend, 6, 12);
  auto input = make_matrix(backend, 6, 12), finished = make_matrix(backend, 6, 12);
  model.embed(backend, batch, residual.view());
  model.block(0).attend(backend, 0, batch, residual.view(), carry.view(), input.view(), workspace);
  model.block(0).finish(model.block(0).mlp(), backend, 0, batch, residual.view(), carry.view(),
                        input.view(), finished.view(), workspace);
  model.block(0).forward_with(ZeroMlp<Reference>{}, backend, 0, batch, residual.view(), workspace);
  CHECK(rows_of(residual.view()) == rows_of(carry.view()));
  model.embed(backend, batch, residual.view());
  model.block(0).forward(backend, 0, batch, residual.view(), workspace);
  CHECK(rows_of(residual.view()) == rows_of(finished.view()));
}

TEST_CASE("a model of known parts becomes one of any parts and computes the same") {
  Reference backend;
  const naive::Model formulas = tiny_neox(true);
  using Model = Transformer<Reference, GptNeoXBlock<Reference>>;
  const ModelMaker<Reference> maker(backend, formulas);
  Model known = maker.transformer<Model, RotaryPositions<Reference>>(
      WeightLayout::out_in, [&](const naive::Block& b, WeightLayout layout) {
        return DenseMlp<Reference, GeluErf>(maker.linear(b.up, layout),
                                            maker.linear(b.down, layout));
      });
  const auto batch = pack(backend, random_sequences(formulas.settings.vocabulary, {6, 2}));
  Workspace<Reference> workspace(backend);
  auto before = make_matrix(backend, 8, 12), after = make_matrix(backend, 8, 12);
  known.forward(backend, batch, before.view(), workspace);
  const AnyTransformer<Reference> any(std::move(known));
  any.forward(backend, batch, after.view(), workspace);
  CHECK(rows_of(before.view()) == rows_of(after.view()));
}

// ---------------------------------------------------------------- observers

namespace {

/// Only one member; the others' absence must compile away.
struct CountOutputs {
  std::vector<Index> layers;
  void on_mlp_output(Index layer, ConstMatrixView<double>) { layers.push_back(layer); }
};

/// What a pass calls, in order.
struct CallOrder {
  std::string calls;
  void on_residual(Index, ConstMatrixView<double>) { calls += 'r'; }
  void on_attention_output(Index, ConstMatrixView<double>) { calls += 'a'; }
  void on_mlp_input(Index, ConstMatrixView<double>) { calls += 'x'; }
  void on_mlp_output(Index, ConstMatrixView<double>) { calls += 'y'; }
};

}  // namespace

TEST_CASE("an observer sees each stage in order, and changes nothing") {
  static_assert(std::is_empty_v<NoObserver>);
  Reference backend;
  const naive::Model formulas = tiny_gpt2();
  const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
  const auto batch = pack(backend, random_sequences(formulas.settings.vocabulary, {6, 2}));
  Workspace<Reference> workspace(backend);
  auto residual = make_matrix(backend, 8, 12);
  CountOutputs outputs;
  model.forward(backend, batch, residual.view(), workspace, outputs);
  CHECK(outputs.layers == std::vector<Index>{0, 1});
  const Rows observed = rows_of(residual.view());
  CallOrder order;
  model.forward_from(backend, 1, batch, residual.view(), workspace, order);
  CHECK(order.calls == "raxyr");
  model.forward(backend, batch, residual.view(), workspace);
  CHECK(rows_of(residual.view()) == observed);
}

// ---------------------------------------------------------------- losses

TEST_CASE("losses are log-softmax of the logits, for any rows in any order") {
  Reference backend;
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_neox(true)}) {
    const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
    const int vocabulary = formulas.settings.vocabulary;
    CHECK(model.logit_columns() == (formulas.settings.tied ? vocabulary : vocabulary + 3));
    const auto batch = pack(backend, random_sequences(vocabulary, {40, 30}));
    const naive::Trace<double> trace = run(backend, model, batch);
    Workspace<Reference> workspace(backend);
    auto residual = make_matrix(backend, batch.rows(), model.config().width);
    model.forward(backend, batch, residual.view(), workspace);
    RandomStream random(7);
    ScoredPositions scored;  // more than two blocks of 128, rows repeated
    std::vector<double> expected;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t row = random.below(70);
      scored.rows.push_back(static_cast<TokenId>(row));
      scored.targets.push_back(
          static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary))));
      expected.push_back(naive::loss(formulas.settings, trace.logits[row], scored.targets.back()));
    }
    CHECK(all_close(model.token_losses(backend, residual.view(), scored, workspace), expected,
                    1e-12, 1e-12));
    CHECK(model.token_losses(backend, residual.view(), {}, workspace).empty());
  }
}

TEST_CASE("next tokens leave out the last of each sequence") {
  Reference backend;
  const PackedBatch<Reference> batch = pack(backend, {{3, 1, 4}, {1}, {5, 9}});
  const ScoredPositions scored = all_next_tokens(batch);
  CHECK(scored.rows == std::vector<TokenId>{0, 1, 4});
  CHECK(scored.targets == std::vector<TokenId>{1, 4, 9});
  CHECK(batch.longest() == 3);
  CHECK(batch.sequences() == 3);
  CHECK(batch.positions()[5] == 1);
}

TEST_CASE("parameters are counted once where the head is tied") {
  Reference backend;
  const naive::Model formulas = tiny_gpt2();
  const int d = 12, h = 20, v = 31, positions = 80;
  const double block = 4 * d * d + 4 * d + 2 * d * h + h + d + 4 * d;
  CHECK(ModelMaker<Reference>(backend, formulas).any().parameters() ==
        v * d + positions * d + 2 * block + 2 * d);
}

// ---------------------------------------------------------------- memory

TEST_CASE("a second pass allocates nothing, nor does a pass of a shorter batch") {
  int allocations = 0;
  CountingBackend backend(allocations);
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_llama(true, 0)}) {
    const AnyTransformer<CountingBackend> model =
        ModelMaker<CountingBackend>(backend, formulas).any();
    const auto longer = pack(backend, random_sequences(27, {80, 3, 80}));
    const auto shorter = pack(backend, random_sequences(27, {80, 7}));
    Workspace<CountingBackend> workspace(backend);
    auto residual = make_matrix(backend, longer.rows(), model.config().width);
    const auto pass = [&](const PackedBatch<CountingBackend>& batch) {
      allocations = 0;
      const auto view = residual.view().middle_rows(0, batch.rows());
      model.forward(backend, batch, view, workspace);
      model.token_losses(backend, view, all_next_tokens(batch), workspace);
      return allocations;
    };
    CHECK(pass(longer) > 0);
    const std::size_t capacity = workspace.capacity_bytes();
    CHECK(pass(longer) == 0);
    CHECK(pass(shorter) == 0);
    CHECK(pass(longer) == 0);
    CHECK(workspace.capacity_bytes() == capacity);
  }
}

// ---------------------------------------------------------------- bad input

TEST_CASE("what a model cannot run is refused, by id") {
  Reference backend;
  const naive::Model formulas = tiny_llama(false, 0);
  const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
  Workspace<Reference> workspace(backend);
  const auto run_with = [&](const PackedBatch<Reference>& batch, Index rows, Index cols) {
    return error_id([&] {
      auto residual = make_matrix(backend, rows, cols);
      model.forward(backend, batch, residual.view(), workspace);
    });
  };
  const auto good = pack(backend, {{1, 2, 3}});
  CHECK(run_with(good, 3, 10) == "");
  CHECK(run_with(good, 4, 10) == "shape/vector");
  CHECK(run_with(good, 3, 11) == "shape/matrix");
  CHECK(run_with(pack(backend, {{1, 27}}), 2, 10) == "data/token-outside-vocabulary");
  CHECK(run_with(pack(backend, {{-1, 2}}), 2, 10) == "data/token-outside-vocabulary");
  const auto longest = pack(backend, {std::vector<int>(80, 1)});
  const auto too_long = pack(backend, {{1}, std::vector<int>(81, 1)});
  CHECK(run_with(longest, 80, 10) == "");
  CHECK(run_with(too_long, 82, 10) == "protocol/window-too-long");
  auto residual = make_matrix(backend, 82, 10);
  const auto resume = [&](Index layer, const PackedBatch<Reference>& batch, Index rows) {
    return error_id([&] {
      model.forward_from(backend, layer, batch, residual.view().middle_rows(0, rows), workspace);
    });
  };
  CHECK(resume(3, good, 3) == "");
  CHECK(resume(4, good, 3) == "shape/layer");
  CHECK(resume(-1, good, 3) == "shape/layer");
  CHECK(resume(1, good, 4) == "shape/matrix");
  CHECK(resume(1, too_long, 82) == "protocol/window-too-long");
}

TEST_CASE("losses of rows and targets that are not there are refused, by id") {
  Reference backend;
  const naive::Model formulas = tiny_neox(false);
  const AnyTransformer<Reference> model = ModelMaker<Reference>(backend, formulas).any();
  Workspace<Reference> workspace(backend);
  const auto residual = make_matrix(backend, 3, 12);
  const auto score = [&](std::vector<TokenId> rows, std::vector<TokenId> targets) {
    return error_id([&] {
      model.token_losses(backend, residual.view(), {std::move(rows), std::move(targets)},
                         workspace);
    });
  };
  CHECK(score({0, 2}, {5, 28}) == "");
  CHECK(score({0, 3}, {5, 6}) == "shape/scored-rows");
  CHECK(score({-1, 2}, {5, 6}) == "shape/scored-rows");
  CHECK(score({0, 2}, {5}) == "shape/scored-rows");
  CHECK(score({0, 2}, {5, 29}) == "data/token-outside-vocabulary");  // a padded column
  CHECK(score({0, 2}, {-1, 5}) == "data/token-outside-vocabulary");
}

TEST_CASE("offsets that do not cover the tokens are refused") {
  Reference backend;
  const std::vector<TokenId> tokens{1, 2, 3};
  const auto with = [&](std::vector<Index> offsets) {
    return error_id([&] { PackedBatch<Reference>(backend, tokens, offsets); });
  };
  CHECK(with({0, 1, 3}) == "");
  CHECK(with({0, 1, 2}) == "shape/offsets");
  CHECK(with({0, 1, 4}) == "shape/offsets");
  CHECK(with({1, 3}) == "shape/offsets");
  CHECK(with({0, 2, 2, 3}) == "shape/offsets");
  CHECK(with({0, 2, 1, 3}) == "shape/offsets");
  CHECK(with({0}) == "shape/offsets");
  CHECK(with({}) == "shape/offsets");
  CHECK(error_id([&] { PackedBatch<Reference>(backend, std::span<const TokenId>{}); }) ==
        "shape/offsets");
}

TEST_CASE("parts that do not fit are refused when they are put together") {
  Reference backend;
  const naive::Model formulas = tiny_gpt2();
  const ModelMaker<Reference> maker(backend, formulas);
  const auto linear = [&](int inputs, int outputs) {
    RandomStream random(1);
    return maker.linear(random_dense(random, inputs, outputs, false), WeightLayout::in_out);
  };
  const auto attention = [&](int outputs, int inputs, AttentionShape shape) {
    return error_id([&] {
      CausalSelfAttention<Reference, LearnedPositions>(linear(12, outputs), linear(inputs, 12),
                                                       shape, {});
    });
  };
  CHECK(attention(24, 12, {4, 2, 3, 1, 0}) == "");
  CHECK(attention(36, 12, {4, 2, 3, 1, 0}) == "shape/attention");
  CHECK(attention(24, 9, {4, 2, 3, 1, 0}) == "shape/attention");
  CHECK(attention(30, 12, {4, 3, 3, 1, 0}) == "shape/attention");
  CHECK(attention(12, 12, {4, 0, 3, 1, 0}) == "shape/attention");
  CHECK(error_id([&] {
          Linear<Reference>(make_matrix(backend, 3, 4), WeightLayout::in_out,
                            make_matrix(backend, 1, 3));
        }) == "shape/vector");
  CHECK(error_id([&] {
          OwningMatrix<double, HostBuffer<double>>(backend.allocate<double>(5), 2, 3);
        }) == "shape/vector");
}
