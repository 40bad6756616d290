// The sign test: on how many documents is the variant worse, whatever the size of the difference?
#pragma once

#include <algorithm>
#include <span>

#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/distributions.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Counts of signs and the exact two-sided p-value for "worse and better are equally likely".
struct SignTest {
  Index worse = 0;   ///< positive differences
  Index better = 0;  ///< negative differences
  Index ties = 0;    ///< left out of the test
  double p_value = 1;
};

/// p = min(1, 2 P(X ≤ min(worse, better))), X binomial(worse + better, ½); 1 where all are ties
/// (Arbuthnot 1710; Conover 1999, section 3.4). Throws DataError ("stats/non-finite").
inline SignTest sign_test(std::span<const double> differences) {
  detail::check_finite(differences, "sign_test(differences)");
  SignTest test;
  for (const double difference : differences) {
    ++(difference > 0 ? test.worse : difference < 0 ? test.better : test.ties);
  }
  const Index informative = test.worse + test.better;
  const double tail = binomial_cdf(std::min(test.worse, test.better), informative, 0.5);
  test.p_value = std::min(1.0, 2 * tail);
  return test;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
