// Disjoint sets of documents, each a type of its own, so that what was fitted on one cannot be
// reported on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Numbers of documents that serve one purpose, ascending.
template <class Purpose>
struct Split {
  std::vector<Index> documents;
};

using TrainSplit = Split<struct ForTraining>;    ///< weights of models
using FitSplit = Split<struct ForFitting>;       ///< surrogates
using GateSplit = Split<struct ForGates>;        ///< gates
using SelectSplit = Split<struct ForSelection>;  ///< λ, thresholds, which gate
using ReportSplit = Split<struct ForReporting>;  ///< every number that is reported

/// Splits that are disjoint by document; `make_splits` and `Splits::checked` make them.
struct Splits {
  TrainSplit train;
  FitSplit fit;
  GateSplit gate;
  SelectSplit select;
  ReportSplit report;

  /// Throws ProtocolError where a document serves two purposes.
  static Splits checked(Splits splits) {
    std::vector<Index> all;
    for (const std::vector<Index>* part :
         {&splits.train.documents, &splits.fit.documents, &splits.gate.documents,
          &splits.select.documents, &splits.report.documents}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    std::sort(all.begin(), all.end());
    const auto twice = std::adjacent_find(all.begin(), all.end());
    if (twice == all.end()) return splits;
    throw ProtocolError({.id = "protocol/overlapping-splits",
                         .where = "Splits",
                         .what = "a document is in two splits",
                         .expected = "splits disjoint by document",
                         .found = "document " + std::to_string(*twice),
                         .mend = "give each document one purpose"});
  }
};

/// Tokens wanted for each purpose; 0: the purpose is not needed.
struct SplitBudgets {
  Index train = 0;
  Index fit = 0;
  Index gate = 0;
  Index select = 0;
  Index report = 0;
};

/// A document as the splitter sees it.
struct SplitCandidate {
  std::string content_hash;
  Index tokens = 0;
};

namespace detail {

/// Document numbers in an order that depends on contents and seed alone, not on file order.
inline std::vector<Index> hashed_order(std::span<const SplitCandidate> documents,
                                       std::uint64_t seed) {
  std::vector<std::pair<std::string, Index>> keyed;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    Sha256 hash;
    hash.update_number(seed).update(documents[i].content_hash);
    keyed.emplace_back(hash.hex(), static_cast<Index>(i));
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<Index> order;
  for (const auto& [key, number] : keyed) order.push_back(number);
  return order;
}

/// The purpose that lacks the largest part of its budget; -1 where all are served.
inline int neediest(const std::array<double, 5>& budgets, const std::array<double, 5>& given) {
  int chosen = -1;
  double largest = 0;
  for (std::size_t p = 0; p < budgets.size(); ++p) {
    if (budgets[p] <= 0) continue;
    const double lack = 1.0 - given[p] / budgets[p];
    if (lack > largest) {
      largest = lack;
      chosen = static_cast<int>(p);
    }
  }
  return chosen;
}

/// Documents that a purpose needs at least: two for the report (the last), else one; none where no
/// tokens are wanted.
inline std::size_t least_documents(std::size_t purpose, Index wanted) {
  if (wanted == 0) return 0;
  return purpose == 4 ? 2 : 1;
}

/// A purpose whose budget is served, but by too few documents; -1 where there is none.
inline int shortest_of_documents(const std::array<Index, 5>& wanted,
                                 const std::array<std::vector<Index>, 5>& dealt) {
  for (std::size_t p = 0; p < wanted.size(); ++p) {
    if (dealt[p].size() < least_documents(p, wanted[p])) return static_cast<int>(p);
  }
  return -1;
}

[[noreturn]] inline void throw_too_few(std::size_t needed, std::size_t found) {
  throw ProtocolError({.id = "protocol/too-few-documents",
                       .where = "make_splits",
                       .what = "too few documents for disjoint splits, or too uneven ones",
                       .expected = "at least " + std::to_string(needed) +
                                   " documents, none longer than a split's share of the text",
                       .found = std::to_string(found) + " documents",
                       .mend = "give more texts, or a file of many documents (wikitext headings, "
                               "JSON lines)"});
}

}  // namespace detail

/// Deals documents to purposes in proportion to the budgets; where the text is shorter than all
/// budgets together, each gets its share. The same documents give the same splits in any order.
/// Copies of one text go to one purpose only: the first is used. Throws ProtocolError where
/// documents are too few: one for each purpose, two for the report.
inline Splits make_splits(std::span<const SplitCandidate> documents, const SplitBudgets& budgets,
                          std::uint64_t seed) {
  const std::array<Index, 5> wanted{budgets.train, budgets.fit, budgets.gate, budgets.select,
                                    budgets.report};
  double total_wanted = 0;
  std::size_t purposes = budgets.report > 0 ? 1 : 0;
  for (const Index w : wanted) {
    total_wanted += static_cast<double>(w);
    purposes += w > 0 ? 1 : 0;
  }
  double available = 0;
  for (const SplitCandidate& d : documents) available += static_cast<double>(d.tokens);
  const double scale = std::min(1.0, available / std::max(1.0, total_wanted));
  std::array<double, 5> budget{};
  for (std::size_t p = 0; p < wanted.size(); ++p)
    budget[p] = scale * static_cast<double>(wanted[p]);

  std::array<std::vector<Index>, 5> dealt;
  std::array<double, 5> given{};
  const std::string* previous = nullptr;
  std::vector<Index> order = detail::hashed_order(documents, seed);
  std::size_t distinct = 0;
  for (const Index number : order) {
    const SplitCandidate& d = documents[static_cast<std::size_t>(number)];
    const bool copy = previous != nullptr && *previous == d.content_hash;
    previous = &d.content_hash;
    if (copy || d.tokens < 2) continue;
    ++distinct;
    int p = detail::neediest(budget, given);
    if (p < 0) p = detail::shortest_of_documents(wanted, dealt);
    if (p < 0) break;
    dealt[static_cast<std::size_t>(p)].push_back(number);
    given[static_cast<std::size_t>(p)] += static_cast<double>(d.tokens);
  }
  for (std::size_t p = 0; p < wanted.size(); ++p) {
    if (dealt[p].size() < detail::least_documents(p, wanted[p])) {
      detail::throw_too_few(purposes, distinct);
    }
    std::sort(dealt[p].begin(), dealt[p].end());
  }
  return Splits::checked({{dealt[0]}, {dealt[1]}, {dealt[2]}, {dealt[3]}, {dealt[4]}});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
