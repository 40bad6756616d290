// Lists of token types by their mean δ ("No-Fly lists": tokens that are said to need the MLP), and
// whether one list says anything about another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/stats/correlation_interval.hpp"
#include "wanamaker/stats/variance_components.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Which types are listed, and how lists are compared.
struct TokenListOptions {
  Index least_count = 5;      ///< observations of a type, in each list, for it to count
  double listed_share = 0.1;  ///< share of the types with the largest mean δ that are "listed"
  DocumentBootstrapOptions intervals{};
};

/// A type with the mean of δ over its positions.
struct TypeMean {
  TokenId type = 0;
  Index count = 0;
  double mean = 0;  ///< nats
};

/// What a comparison of two lists shows: where the correlation's interval lies to 0 and to the
/// correlation that equal lists would show.
enum class TransferVerdict {
  transfers,       ///< above 0, and not below the attainable
  partly,          ///< above 0, and below the attainable: the lists have something in common
  reverses,        ///< below 0
  does_not,        ///< holds 0, and is below the attainable: equal lists would have shown more
  no_power,        ///< holds 0 and the attainable: nothing is decided
  not_comparable,  ///< fewer than four types in both lists, or one of them is constant
};

constexpr const char* name_of(TransferVerdict verdict) {
  switch (verdict) {
    case TransferVerdict::transfers:
      return "transfers";
    case TransferVerdict::partly:
      return "transfers in part";
    case TransferVerdict::reverses:
      return "reverses";
    case TransferVerdict::does_not:
      return "does not transfer";
    case TransferVerdict::no_power:
      return "no power";
    case TransferVerdict::not_comparable:
      return "not comparable";
  }
  return "";
}

/// One list held against another, over the types that are in both.
struct ListComparison {
  Index types = 0;
  double reliability_from = 0;  ///< share of the list's variance over these types that is true
  double reliability_to = 0;
  std::optional<double> pearson{};
  std::optional<double> spearman{};
  std::optional<Interval> pearson_interval{};  ///< 95 % where not set otherwise, types redrawn
  double attainable = 0;                       ///< what the same truth would show as pearson
  std::optional<double> disattenuated{};       ///< pearson/attainable
  double power = 0;                            ///< to find `attainable` different from 0
  Index listed = 0;                            ///< types of the top share of the first list
  std::optional<double> listed_positive{};  ///< share of them whose mean δ is above 0 in the second
  std::optional<double> base_positive{};    ///< the same share of all types
  std::optional<double> listed_flips{};     ///< share of the listed with opposite signs
  std::optional<double> base_flips{};       ///< share of all types with opposite signs
  double flips_by_chance = 0;               ///< of signs that have nothing to do with each other
  TransferVerdict verdict = TransferVerdict::not_comparable;
};

/// δ by type of one list's positions.
class TypeSample {
 public:
  /// Throws ShapeError ("stats/length-mismatch"), DataError ("stats/non-finite").
  TypeSample(std::span<const TokenId> types, std::span<const double> delta) {
    detail::check_same_length(delta.size(), types.size(), "TypeSample(types)");
    detail::check_finite(delta, "TypeSample(delta)");
    for (std::size_t i = 0; i < types.size(); ++i) by_type_[types[i]].push_back(delta[i]);
  }

  /// Types with at least so many positions, in ascending order of their ids.
  std::vector<TypeMean> means(Index least_count) const {
    std::vector<TypeMean> result;
    for (const auto& [type, values] : by_type_) {
      const Index count = static_cast<Index>(values.size());
      if (count >= least_count) result.push_back({type, count, detail::mean_of(values)});
    }
    return result;
  }
  /// Variance between and within the given types.
  std::optional<VarianceComponents> components(std::span<const TypeMean> types) const {
    std::vector<Index> groups;
    std::vector<double> values;
    for (std::size_t t = 0; t < types.size(); ++t) {
      const std::vector<double>& own = by_type_.at(types[t].type);
      groups.insert(groups.end(), own.size(), static_cast<Index>(t));
      values.insert(values.end(), own.begin(), own.end());
    }
    return variance_components(groups, values);
  }

 private:
  std::map<TokenId, std::vector<double>> by_type_;
};

namespace detail {

inline bool opposite_signs(double a, double b) {
  return (a > 0) != (b > 0);
}

/// Share of the chosen entries for which `holds(i)`; missing where none is chosen.
template <class Holds>
std::optional<double> share_where(std::span<const std::size_t> chosen, const Holds& holds) {
  if (chosen.empty()) return std::nullopt;
  const auto count = std::count_if(chosen.begin(), chosen.end(), holds);
  return static_cast<double>(count) / static_cast<double>(chosen.size());
}

/// Two lists over the types that both have, in the same order.
struct PairedLists {
  std::vector<TypeMean> from{};
  std::vector<TypeMean> to{};
};

inline PairedLists pair_lists(const std::vector<TypeMean>& from, const std::vector<TypeMean>& to) {
  PairedLists pairs;
  std::size_t next = 0;
  for (const TypeMean& own : from) {
    while (next < to.size() && to[next].type < own.type) ++next;
    if (next == to.size()) break;
    if (to[next].type != own.type) continue;
    pairs.from.push_back(own);
    pairs.to.push_back(to[next]);
  }
  return pairs;
}

inline std::vector<double> mean_values(std::span<const TypeMean> types) {
  std::vector<double> values;
  for (const TypeMean& type : types) values.push_back(type.mean);
  return values;
}

inline void compare_signs(std::span<const double> from, std::span<const double> to,
                          double listed_share, ListComparison& result) {
  std::vector<std::size_t> all(from.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::size_t> order = ascending_order(from);
  std::reverse(order.begin(), order.end());
  const double wanted = std::ceil(listed_share * static_cast<double>(from.size()));
  const std::span<const std::size_t> listed(order.data(), static_cast<std::size_t>(wanted));
  const auto positive = [&](std::size_t i) { return to[i] > 0; };
  const auto flips = [&](std::size_t i) { return opposite_signs(from[i], to[i]); };
  result.listed = static_cast<Index>(listed.size());
  result.listed_positive = share_where(listed, positive);
  result.base_positive = share_where(all, positive);
  result.listed_flips = share_where(listed, flips);
  result.base_flips = share_where(all, flips);
  const double a = share_where(all, [&](std::size_t i) { return from[i] > 0; }).value_or(0);
  const double b = result.base_positive.value_or(0);
  result.flips_by_chance = a * (1 - b) + (1 - a) * b;
}

inline void correlate_lists(std::span<const double> from, std::span<const double> to,
                            const TokenListOptions& options, const ExecutorRef& executor,
                            ListComparison& result) {
  std::vector<Index> each(from.size());
  std::iota(each.begin(), each.end(), Index{0});
  const CorrelationEstimate pearson = correlation_with_interval(
      from, to, each, CorrelationKind::pearson, options.intervals, executor);
  result.pearson = pearson.r;
  result.pearson_interval = pearson.over_documents.interval;
  result.spearman = spearman_correlation(from, to);
  const Attenuation noise =
      attenuation(pearson.r.value_or(0), result.reliability_from, result.reliability_to);
  result.attainable = noise.attainable;
  if (pearson.r) result.disattenuated = noise.disattenuated;
  result.power = correlation_power(result.attainable, result.types);
}

inline TransferVerdict verdict_of(const ListComparison& c) {
  if (!c.pearson || !c.pearson_interval) return TransferVerdict::not_comparable;
  const Interval& interval = *c.pearson_interval;
  if (interval.high < 0) return TransferVerdict::reverses;
  const bool excludes_equal = interval.high < c.attainable;
  if (interval.low > 0)
    return excludes_equal ? TransferVerdict::partly : TransferVerdict::transfers;
  return excludes_equal ? TransferVerdict::does_not : TransferVerdict::no_power;
}

}  // namespace detail

/// Holds the list of `from` against that of `to`: over the types with enough positions in both, the
/// correlation of their mean δ, what the noise of the means lets it attain, and signs of the listed
/// types beside those of all. Positions are taken for independent within a type. Throws DataError
/// ("stats/probability"), ProtocolError ("stats/resamples").
inline ListComparison compare_token_lists(const TypeSample& from, const TypeSample& to,
                                          const TokenListOptions& options = {},
                                          const ExecutorRef& executor = {}) {
  detail::check_probability(options.listed_share, "compare_token_lists(listed_share)");
  const detail::PairedLists pairs =
      detail::pair_lists(from.means(options.least_count), to.means(options.least_count));
  ListComparison result{.types = static_cast<Index>(pairs.from.size())};
  if (result.types < 4) return result;
  const auto reliability = [](const std::optional<VarianceComponents>& c) {
    return c ? c->list_reliability() : 0.0;
  };
  result.reliability_from = reliability(from.components(pairs.from));
  result.reliability_to = reliability(to.components(pairs.to));
  const std::vector<double> a = detail::mean_values(pairs.from);
  const std::vector<double> b = detail::mean_values(pairs.to);
  detail::correlate_lists(a, b, options, executor, result);
  detail::compare_signs(a, b, options.listed_share, result);
  result.verdict = detail::verdict_of(result);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
