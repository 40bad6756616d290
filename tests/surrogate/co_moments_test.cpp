// Streaming co-moments against their definition, over backends, precisions, weights, splits,
// orders, offsets and faults.
#include "wanamaker/surrogate/co_moments.hpp"

#include "surrogate_data.hpp"
#include "wanamaker/core/thread_pool.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

constexpr double eps_float = 0x1p-24;

/// Shifted values are at most (1 + 4) standard deviations about in the mean square (ChooseShift),
/// so products are up to 17 times the co-moments; n terms summed, and a few roundings more.
double exact_tolerance(Index n) {
  return 17.0 * static_cast<double>(n + 16) * eps;
}

template <class B>
void check_against_definition(B backend, double offset, double roundoff) {
  const std::vector<std::array<Index, 3>> shapes{{1, 3, 2}, {37, 5, 3}, {700, 4, 7}};
  for (const std::array<Index, 3>& shape : shapes) {
    const Index n = shape[0];
    CAPTURE(n);
    const Data data = mixed_data(static_cast<std::uint64_t>(n), n, shape[1], shape[2], offset);
    const CoMomentState expected = oracle_moments(data);
    CHECK(moments_close(moments_of(backend, data), expected, exact_tolerance(n) + roundoff));
  }
}

}  // namespace

TEST_CASE("co-moments equal their definition on every backend") {
  for (const double offset : {0.0, 3.0, 1e6}) {
    CAPTURE(offset);
    check_against_definition(ReferenceBackend<double>(), offset, 0);
    check_against_definition(ForeignBackend<double>(), offset, 0);
    check_against_definition(PlainBackend<double>(), offset, 0);
    // Differences to the shift that are not exact are rounded once, in each factor.
    check_against_definition(PlainBackend<float>(), offset, 2.0 * eps_float);
  }
}

TEST_CASE("products of floats are exact where no shift is needed") {
  const Data data = mixed_data(5, 900, 6, 3);
  PlainBackend<float> backend;
  CHECK(moments_close(moments_of(backend, data), oracle_moments(data), exact_tolerance(900)));
}

TEST_CASE("blocked products lose the roundings of a float and no more") {
  const Data data = mixed_data(6, 900, 6, 3, 1e4);
  PlainBackend<float> backend;
  const CoMoments blocked = moments_of(backend, data, GramPrecision::blocked);
  const double tolerance = exact_tolerance(900) + 17.0 * (256 + 3) * eps_float;
  CHECK(moments_close(blocked, oracle_moments(data), tolerance));
  CHECK(blocked.precision() == GramPrecision::blocked);
  // It is another computation: the option is not ignored.
  CHECK_FALSE(same_bits(blocked, moments_of(backend, data)));
}

TEST_CASE("merged statistics equal those of the whole, for any split and order") {
  const Data data = mixed_data(7, 500, 4, 3, 50.0);
  const CoMomentState expected = oracle_moments(data);
  RandomStream random(8);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<Index> order(500);
    std::iota(order.begin(), order.end(), 0);
    shuffle(order, random);
    std::vector<CoMoments> parts;
    for (std::size_t first = 0; first < order.size();) {
      const std::size_t count =
          std::min(order.size() - first, static_cast<std::size_t>(1 + random.below(120)));
      parts.push_back(moments_of(data.rows(std::span(order).subspan(first, count))));
      first += count;
    }
    shuffle(parts, random);
    CoMoments all(4, 3);
    for (const CoMoments& part : parts) all.merge(part);
    CHECK(moments_close(all, expected, exact_tolerance(500)));
  }
}

TEST_CASE("merging as a tree equals merging as a list") {
  const Data data = mixed_data(9, 256, 3, 2, -7.0);
  std::vector<CoMoments> level;
  for (Index first = 0; first < 256; first += 8) level.push_back(moments_of(data.middle(first, 8)));
  while (level.size() > 1) {
    std::vector<CoMoments> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      next.push_back(level[i]);
      next.back().merge(level[i + 1]);
    }
    level = next;
  }
  CHECK(moments_close(level.front(), oracle_moments(data), exact_tolerance(256)));
}

TEST_CASE("a sorted input, whose blocks have nothing in common, costs no digits") {
  Data data = mixed_data(10, 3000, 2, 2);
  for (Index t = 0; t < data.n; ++t) data.x_at(t, 0) = static_cast<double>(t);
  const CoMomentState expected = oracle_moments(data);
  PlainBackend<double> backend;
  Workspace<PlainBackend<double>> workspace(backend);
  CoMoments moments(2, 2);
  for (Index first = 0; first < data.n; first += 10) {
    const auto part = upload(backend, data.middle(first, 10));
    moments.add(backend, part.x.view(), part.y.view(), workspace);
  }
  CHECK(moments_close(moments, expected, exact_tolerance(3000)));
}

TEST_CASE("adding a block equals merging its co-moments, to the bit") {
  const Data first = mixed_data(11, 40, 5, 3, 2.0);
  const Data second = mixed_data(12, 70, 5, 3, -1.0);
  PlainBackend<float> backend;
  Workspace<PlainBackend<float>> workspace(backend);
  CoMoments added = moments_of(backend, first);
  const auto more = upload(backend, second);
  added.add(backend, more.x.view(), more.y.view(), workspace);
  CoMoments merged = moments_of(backend, first);
  merged.merge(moments_of(backend, second));
  CHECK(same_bits(added, merged));
  CoMoments from_nothing(5, 3);
  from_nothing.merge(merged);
  CHECK(same_bits(from_nothing, merged));
  merged.merge(CoMoments(5, 3));
  CHECK(same_bits(from_nothing, merged));
}

TEST_CASE("an input longer than one block equals its definition") {
  const Data data = mixed_data(13, 9000, 2, 1, 10.0);
  CHECK(moments_close(moments_of(data), oracle_moments(data), exact_tolerance(9000)));
}

TEST_CASE("any number of threads gives the same bits") {
  const Data data = mixed_data(14, 600, 210, 200, 1.0);
  std::vector<CoMoments> results;
  for (const Index threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    PlainBackend<float> backend{ExecutorRef(pool)};
    results.push_back(moments_of(backend, data));
  }
  CHECK(same_bits(results[0], results[1]));
  CHECK(same_bits(results[0], results[2]));
}

TEST_CASE("constant columns have no variance at all, wherever they lie") {
  for (const double value : {0.0, 0.1, 1e6 + 0.1, -3e-7}) {
    CAPTURE(value);
    Data data = mixed_data(15, 333, 3, 2);
    for (Index t = 0; t < data.n; ++t) {
      data.x_at(t, 1) = value;
      data.y_at(t, 0) = value;
    }
    CoMoments moments(3, 2);
    for (const Index first : {0, 100, 222}) moments.merge(moments_of(data.middle(first, 111)));
    PlainBackend<float> backend;
    const CoMoments whole = moments_of(backend, data);
    CHECK(moments.yy()[0] == 0.0);
    CHECK(whole.yy()[0] == 0.0);
    for (Index i = 0; i < 3; ++i) {
      CHECK(moments.xx()(1, i) == 0.0);
      CHECK(whole.xx()(1, i) == 0.0);
    }
    CHECK(moments.mean_x()[1] == value);
  }
}

TEST_CASE("integer weights equal repeated rows") {
  const Data data = mixed_data(16, 60, 4, 2, 5.0);
  RandomStream random(17);
  std::vector<double> weights;
  std::vector<Index> repeated;
  for (Index t = 0; t < data.n; ++t) {
    const auto times = static_cast<Index>(random.below(4));
    weights.push_back(static_cast<double>(times));
    for (Index k = 0; k < times; ++k) repeated.push_back(t);
  }
  PlainBackend<double> backend;
  const CoMoments weighted = moments_of(backend, data, GramPrecision::exact, weights);
  CoMomentState expected = oracle_moments(data.rows(repeated));
  expected.rows = static_cast<Index>(
      std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; }));
  // A rounding of √w more in each factor.
  CHECK(moments_close(weighted, expected, exact_tolerance(200) + 17.0 * 4.0 * eps));
}

TEST_CASE("real weights equal their definition; weights of 1 change no bit") {
  const Data data = mixed_data(18, 90, 4, 2, 5.0);
  RandomStream random(19);
  std::vector<double> weights;
  for (Index t = 0; t < data.n; ++t) weights.push_back(random.uniform());
  weights[0] = 0;
  PlainBackend<float> in_float;
  CHECK(moments_close(moments_of(in_float, data, GramPrecision::exact, weights),
                      oracle_moments(data, weights), exact_tolerance(90) + 17.0 * 6.0 * eps_float));
  const std::vector<double> ones(90, 1.0);
  CHECK(same_bits(moments_of(in_float, data, GramPrecision::exact, ones),
                  moments_of(in_float, data)));
  const std::vector<double> zeros(90, 0.0);
  const CoMoments nothing = moments_of(in_float, data, GramPrecision::exact, zeros);
  CHECK(same_bits(nothing, CoMoments(4, 2)));
}

TEST_CASE("rows of weight 0 cost no digits, however far out they lie") {
  Data data = mixed_data(24, 200, 4, 2, 5.0);
  std::vector<double> weights(200, 1.0);
  std::vector<Index> kept;
  for (Index t = 0; t < data.n; ++t) {
    if (t % 64 == 0) {
      weights[static_cast<std::size_t>(t)] = 0;
    } else {
      kept.push_back(t);
    }
  }
  const CoMomentState expected = oracle_moments(data.rows(kept));
  for (Index t = 0; t < data.n; t += 64) {
    for (Index j = 0; j < data.d; ++j) data.x[static_cast<std::size_t>(t * data.d + j)] = 1e9;
    for (Index j = 0; j < data.e; ++j) data.y[static_cast<std::size_t>(t * data.e + j)] = -1e9;
  }
  PlainBackend<double> backend;
  CHECK(moments_close(moments_of(backend, data, GramPrecision::exact, weights), expected,
                      exact_tolerance(200)));
}

TEST_CASE("values that are not finite are refused, and nothing is added") {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    for (const bool in_output : {false, true}) {
      Data data = mixed_data(20, 30, 3, 2);
      PlainBackend<double> backend;
      Workspace<PlainBackend<double>> workspace(backend);
      CoMoments moments = moments_of(backend, data);
      const CoMoments before = moments;
      (in_output ? data.y_at(17, 1) : data.x_at(17, 1)) = bad;
      const auto there = upload(backend, data);
      CHECK(error_id([&] { moments.add(backend, there.x.view(), there.y.view(), workspace); }) ==
            "data/non-finite-activation");
      CHECK(same_bits(moments, before));
    }
  }
}

TEST_CASE("a product that overflows float is refused where it is blocked, and exact in double") {
  Data data = mixed_data(21, 30, 2, 2);
  for (double& v : data.x) v *= 1e25;
  data.round_to_float();
  PlainBackend<float> backend;
  CHECK(error_id([&] { moments_of(backend, data, GramPrecision::blocked); }) ==
        "numeric/gram-overflow");
  CHECK(moments_close(moments_of(backend, data), oracle_moments(data), exact_tolerance(30)));
}

TEST_CASE("shapes and weights that do not fit are refused") {
  PlainBackend<double> backend;
  Workspace<PlainBackend<double>> workspace(backend);
  const auto there = upload(backend, mixed_data(22, 10, 3, 2));
  CoMoments wrong(2, 3);
  CHECK(error_id([&] { wrong.add(backend, there.x.view(), there.y.view(), workspace); }) ==
        "shape/co-moments");
  CHECK(error_id([&] { wrong.merge(CoMoments(3, 2)); }) == "shape/co-moments");
  CoMoments right(3, 2);
  CHECK(error_id([&] {
          right.add(backend, there.x.view().middle_rows(0, 9), there.y.view(), workspace);
        }) == "shape/co-moments");
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    std::vector<double> weights(10, 1.0);
    weights[9] = bad;
    CHECK(error_id([&] {
            right.add(backend, there.x.view(), there.y.view(), weights, workspace);
          }) == "data/bad-weight");
  }
  const std::vector<double> short_weights(9, 1.0);
  CHECK(error_id([&] {
          right.add(backend, there.x.view(), there.y.view(), short_weights, workspace);
        }) == "shape/vector");
  CHECK(right.rows() == 0);
}

TEST_CASE("stored numbers that cannot be co-moments are refused") {
  const CoMomentState good = moments_of(mixed_data(23, 10, 3, 2)).state();
  CHECK(same_bits(CoMoments(good), moments_of(mixed_data(23, 10, 3, 2))));
  const auto refused = [&](auto change) {
    CoMomentState bad = good;
    change(bad);
    return error_id([&] { CoMoments{bad}; }) == "data/bad-co-moments";
  };
  CHECK(refused([](CoMomentState& s) { s.xx.pop_back(); }));
  CHECK(refused([](CoMomentState& s) { s.xy.push_back(0); }));
  CHECK(refused([](CoMomentState& s) { s.yy.push_back(0); }));
  CHECK(refused([](CoMomentState& s) { s.rows = -1; }));
  CHECK(refused([](CoMomentState& s) { s.weight = -1; }));
  CHECK(refused([](CoMomentState& s) { s.weight = std::nan(""); }));
  CHECK(refused([](CoMomentState& s) { s.mean_x[0] = HUGE_VAL; }));
}
