// p-values adjusted for a family of tests; the family is the set of p-values that are present.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A p-value, or nothing where a test could not be made.
using OptionalPValue = std::optional<double>;

namespace detail {

/// Places of the present p-values, ascending by p; equal ones keep their order. Throws DataError.
inline std::vector<std::size_t> family_by_p(std::span<const OptionalPValue> p_values,
                                            const char* where) {
  std::vector<std::size_t> family;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (!p_values[i]) continue;
    check_probability(*p_values[i], std::string(where) + ", element " + std::to_string(i));
    family.push_back(i);
  }
  std::stable_sort(family.begin(), family.end(), [p_values](std::size_t a, std::size_t b) {
    return *p_values[a] < *p_values[b];
  });
  return family;
}

}  // namespace detail

/// Holm's step-down adjustment, which controls the chance of any false finding under any
/// dependence: p̃_(i) = max over j ≤ i of min(1, (m − j + 1) p_(j)) (Holm 1979). Missing stays
/// missing and does not count in m. Throws DataError ("stats/probability") naming the element; NaN
/// is refused too.
inline std::vector<OptionalPValue> holm_adjusted(std::span<const OptionalPValue> p_values) {
  std::vector<OptionalPValue> adjusted(p_values.size());
  const std::vector<std::size_t> family = detail::family_by_p(p_values, "holm_adjusted(p_values)");
  double largest = 0;
  for (std::size_t j = 0; j < family.size(); ++j) {
    const double factor = static_cast<double>(family.size() - j);
    largest = std::max(largest, std::min(1.0, factor * *p_values[family[j]]));
    adjusted[family[j]] = largest;
  }
  return adjusted;
}

/// Benjamini and Hochberg's step-up adjustment, which controls the expected share of false findings
/// for independent or positively dependent tests: p̃_(i) = min over j ≥ i of min(1, m p_(j) / j)
/// (Benjamini and Hochberg 1995). Missing and throwing as holm_adjusted.
inline std::vector<OptionalPValue> benjamini_hochberg_adjusted(
    std::span<const OptionalPValue> p_values) {
  std::vector<OptionalPValue> adjusted(p_values.size());
  const std::vector<std::size_t> family =
      detail::family_by_p(p_values, "benjamini_hochberg_adjusted(p_values)");
  double smallest = 1;
  for (std::size_t j = family.size(); j > 0; --j) {
    const double factor = static_cast<double>(family.size()) / static_cast<double>(j);
    smallest = std::min(smallest, factor * *p_values[family[j - 1]]);
    adjusted[family[j - 1]] = smallest;
  }
  return adjusted;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
