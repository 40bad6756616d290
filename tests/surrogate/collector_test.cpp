// Collecting all layers in one pass: the same bits for any batches and threads.
#include "counting_backend.hpp"
#include "surrogate_data.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/nn/observer.hpp"
#include "wanamaker/surrogate/co_moment_collector.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

template <class S>
using Collector = CoMomentCollector<PlainBackend<S>>;

/// What a model's forward would do: every layer's input and output, layer by layer, with rows
/// [first, first + count) of each layer's data.
template <Backend B>
void forward(B& backend, CoMomentCollector<B>& collector, const std::vector<Data>& layers,
             Index first, Index count) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const auto rows = upload(backend, layers[layer].middle(first, count));
    detail::notify_mlp_input(collector, static_cast<Index>(layer),
                             const_matrix_view_t<B>(rows.x.view()));
    detail::notify_mlp_output(collector, static_cast<Index>(layer),
                              const_matrix_view_t<B>(rows.y.view()));
  }
}

std::vector<Data> three_layers(Index rows) {
  return {mixed_data(71, rows, 5, 5), mixed_data(72, rows, 5, 5, 1e4),
          mixed_data(73, rows, 5, 5, -3.0)};
}

/// As in co_moments_test; and means, rounded at the size of the offset, 1e4, enter the differences
/// of blocks, in units of standard deviations of at least 1/2.
double tolerance(Index n) {
  return 17.0 * static_cast<double>(n + 16) * eps + 2.0 * eps * 1e4 / 0.5;
}

}  // namespace

TEST_CASE("every layer's co-moments equal their definition") {
  const std::vector<Data> layers = three_layers(130);
  PlainBackend<double> backend;
  Collector<double> collector(backend, 3, 5, {.block_rows = 32});
  for (Index first = 0; first < 130; first += 26) forward(backend, collector, layers, first, 26);
  collector.finish();
  for (Index layer = 0; layer < 3; ++layer) {
    CHECK(collector.rows_seen(layer) == 130);
    CHECK(moments_close(collector.moments(layer),
                        oracle_moments(layers[static_cast<std::size_t>(layer)]), tolerance(130)));
  }
}

TEST_CASE("batches and threads do not change a bit") {
  const std::vector<Data> layers = three_layers(400);
  std::vector<std::vector<CoMoments>> results;
  RandomStream random(74);
  for (int trial = 0; trial < 6; ++trial) {
    ThreadPool pool(1 + trial % 3);
    PlainBackend<float> backend{ExecutorRef(pool)};
    Collector<float> collector(backend, 3, 5, {.block_rows = 64});
    for (Index first = 0; first < 400;) {
      const Index count =
          trial == 0 ? 400 : std::min(400 - first, 1 + static_cast<Index>(random.below(150)));
      forward(backend, collector, layers, first, count);
      first += count;
    }
    collector.finish();
    results.push_back({collector.moments(0), collector.moments(1), collector.moments(2)});
  }
  for (const auto& result : results) {
    for (std::size_t layer = 0; layer < 3; ++layer) {
      CHECK(result[layer].rows() == 400);
      CHECK(same_bits(result[layer], results[0][layer]));
    }
  }
}

TEST_CASE("more rows take no more memory") {
  int allocations = 0;
  CountingBackend backend(allocations);
  CoMomentCollector<CountingBackend> collector(backend, 1, 5, {.block_rows = 64});
  const auto rows = upload(backend, mixed_data(75, 26, 5, 5));
  const auto batch = [&] {
    detail::notify_mlp_input(collector, Index{0}, ConstMatrixView<double>(rows.x.view()));
    detail::notify_mlp_output(collector, Index{0}, ConstMatrixView<double>(rows.y.view()));
  };
  // Two blocks: by then all that is ever needed has been asked for.
  for (int i = 0; i < 5; ++i) batch();
  allocations = 0;
  for (int i = 0; i < 200; ++i) batch();
  collector.finish();
  CHECK(collector.rows_seen(0) == 205 * 26);
  CHECK(allocations == 0);
}

TEST_CASE("only chosen layers are collected, and no more rows than the limit") {
  const std::vector<Data> layers = three_layers(100);
  PlainBackend<double> backend;
  Collector<double> collector(backend, 3, 5, {.block_rows = 16, .layers = {2, 0}, .row_limit = 70});
  for (Index first = 0; first < 100; first += 20) {
    CHECK(collector.is_full() == (first >= 80));
    forward(backend, collector, layers, first, 20);
  }
  collector.finish();
  CHECK(collector.layers() == std::vector<Index>{2, 0});
  CHECK_FALSE(collector.collects(1));
  CHECK_FALSE(collector.collects(3));
  CHECK(collector.is_full());
  const Data expected = layers[2].middle(0, 70);
  CHECK(moments_close(collector.moments(2), oracle_moments(expected), tolerance(70)));
}

TEST_CASE("weights belong to the rows of one batch") {
  const std::vector<Data> layers = three_layers(90);
  std::vector<double> weights(90, 1.0);
  RandomStream random(75);
  for (std::size_t t = 30; t < 60; ++t) weights[t] = random.uniform();
  PlainBackend<double> backend;
  Collector<double> collector(backend, 3, 5, {.block_rows = 16});
  forward(backend, collector, layers, 0, 30);
  collector.weigh_next(std::span(weights).subspan(30, 30));
  forward(backend, collector, layers, 30, 30);
  collector.end_batch();
  forward(backend, collector, layers, 60, 30);
  collector.finish();
  for (Index layer = 0; layer < 3; ++layer) {
    CHECK(moments_close(collector.moments(layer),
                        oracle_moments(layers[static_cast<std::size_t>(layer)], weights),
                        tolerance(90)));
  }
}

TEST_CASE("collecting goes on from saved co-moments with the same bits") {
  const std::vector<Data> layers = three_layers(96);
  PlainBackend<float> backend;
  Collector<float> whole(backend, 3, 5, {.block_rows = 16});
  forward(backend, whole, layers, 0, 48);
  whole.finish();
  Collector<float> resumed(backend, 3, 5, {.block_rows = 16});
  for (Index layer = 0; layer < 3; ++layer) resumed.resume(layer, whole.moments(layer));
  for (auto* collector : {&whole, &resumed}) {
    forward(backend, *collector, layers, 48, 48);
    collector->finish();
  }
  for (Index layer = 0; layer < 3; ++layer) {
    CHECK(resumed.rows_seen(layer) == 96);
    CHECK(same_bits(resumed.moments(layer), whole.moments(layer)));
  }
}

TEST_CASE("what does not belong together is refused") {
  PlainBackend<double> backend;
  CHECK(error_id([&] { Collector<double>(backend, 3, 5, {.layers = {3}}); }) == "shape/layer");
  CHECK(error_id([&] { Collector<double>(backend, 3, 5, {.layers = {-1}}); }) == "shape/layer");
  Collector<double> collector(backend, 3, 5);
  const auto rows = upload(backend, mixed_data(76, 10, 5, 5));
  collector.on_mlp_input(1, rows.x.view());
  CHECK(error_id([&] { collector.on_mlp_output(2, rows.y.view()); }) == "shape/observer-order");
  const std::vector<double> weights(9, 1.0);
  collector.weigh_next(weights);
  CHECK(error_id([&] { collector.on_mlp_output(1, rows.y.view()); }) == "shape/vector");
}
