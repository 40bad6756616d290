// What holds of the settings of a model, whatever file they come from.
#pragma once

#include <algorithm>
#include <cmath>

#include "fuzz/fuzzing.hpp"
#include "wanamaker/nn/config.hpp"

namespace wanamaker_test {

inline void must_hold_of_config(const wanamaker::ModelConfig& c) {
  using wanamaker::Index;
  const Index sizes[] = {c.vocabulary, c.width,  c.heads,    c.key_heads,
                         c.head_width, c.hidden, c.positions};
  for (const Index size : sizes) must_hold(size >= 1, "a size that is not positive");
  must_hold(c.layers >= 0 && c.heads % c.key_heads == 0, "impossible layers or heads");
  must_hold(c.rotary_width % 2 == 0 && c.rotary_width <= c.head_width, "impossible rotation");
  const auto is_positive = [](double x) { return x > 0 && std::isfinite(x); };
  must_hold(is_positive(c.rope_theta) && is_positive(c.norm_epsilon) &&
                is_positive(c.rope_scaling.magnitude),
            "a number that is not positive and finite");
  const auto& divisors = c.rope_scaling.divisors;
  must_hold(std::all_of(divisors.begin(), divisors.end(), is_positive), "an impossible divisor");
  const auto halves = static_cast<std::size_t>(c.rotary_width / 2);
  must_hold(divisors.empty() || divisors.size() == halves, "another number of divisors");
}

}  // namespace wanamaker_test
