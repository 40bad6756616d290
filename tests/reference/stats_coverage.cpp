// Prints the coverage table of docs/statistics.md, in some minutes; not part of the tests. From the
// root: c++ -std=c++20 -O2 -pthread -Iinclude -Itests tests/reference/stats_coverage.cpp
#include <array>
#include <cstdio>

#include "stats/simulated_documents.hpp"
#include "wanamaker/stats/paired_bootstrap.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

constexpr int trials = 4000;
constexpr double delta = 0.02;

/// How often an end of the interval misses Δ, in per cent.
struct Misses {
  double low_above = 0;
  double high_below = 0;

  void count(const Interval& percent) {
    low_above += (percent.low > percent_of_nats(delta)) * 100.0 / trials;
    high_below += (percent.high < percent_of_nats(delta)) * 100.0 / trials;
  }
};

void print_row(const char* name, CostShape shape, Index documents) {
  std::array<Misses, 5> misses;  // percentile, BCa, cluster-t, then the first two not expanded
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    RandomStream random(81, trial);
    const PairedSums sums = simulated_documents(random, documents, delta, shape);
    PairedOptions options{
        .resamples = 999, .seed = trial, .method = IntervalMethod::percentile, .expand = true};
    const PairedComparison expanded = compare_paired(sums, options);
    options.expand = false;
    const PairedComparison plain = compare_paired(sums, options);
    if (!expanded.bca_percent) continue;
    misses[0].count(*expanded.percentile_percent);
    misses[1].count(*expanded.bca_percent);
    misses[2].count(*expanded.cluster_t_percent);
    misses[3].count(*plain.percentile_percent);
    misses[4].count(*plain.bca_percent);
  }
  std::printf("| %s | %td |", name, documents);
  for (const Misses& m : misses) {
    std::printf(" %.1f (%.1f, %.1f) |", 100 - m.low_above - m.high_below, m.low_above,
                m.high_below);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main() {
  for (const Index documents : {Index{10}, Index{20}, Index{50}, Index{100}, Index{200}}) {
    print_row("normal", CostShape::normal, documents);
    print_row("exponential", CostShape::exponential, documents);
    print_row("log-normal", CostShape::log_normal, documents);
  }
}
