// The published procedure, faults included and named: which text it fits, trains and evaluates on.
// P. Balogh, arXiv 2603.03459; figures as in its script.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/study/protocol.hpp"
#include "wanamaker/study/windows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A range of rows [first, last) of a text.
struct RowRange {
  Index first = 0;
  Index last = 0;
};

/// The figures of the published procedure.
struct PaperFigures {
  RowRange fit_rows{0, 500};
  RowRange gate_rows{1000, 3000};
  RowRange evaluation_rows{2000, 2500};
  Index fit_tokens = 10000;
  Index gate_tokens = 25000;
  Index evaluation_tokens = 12000;
  Index truncation = 512;  ///< of fit and evaluation rows
  Index gate_truncation = 256;
  double lambda = 0.01;  ///< absolute
  double C = 1;
  double largest_percent = 500;  ///< layers that cost more get no gates
};

/// Token counts of the published procedure's three passes, and the rows that give them.
struct PaperSets {
  EvaluationSet fit;
  EvaluationSet gate;
  EvaluationSet evaluation;
};

/// Rows that the procedure may look at: those after them change nothing.
inline Index rows_used(const PaperFigures& figures) {
  return std::max({figures.fit_rows.last, figures.gate_rows.last, figures.evaluation_rows.last});
}

namespace detail {

inline Index rows_needed(const PaperFigures& figures) {
  return std::max(figures.gate_rows.first + 1, figures.evaluation_rows.first + 1);
}

// Rows of a range in order until `enough` tokens are counted; a row of length T counts T − ignored.
// Rows without a token pair are skipped, as the script skips blank ones.
inline std::vector<Index> rows_until(const TokenizedCorpus& rows, RowRange range, Index truncation,
                                     Index ignored, Index enough) {
  std::vector<Index> chosen;
  Index counted = 0;
  const Index last = std::min(range.last, static_cast<Index>(rows.documents.size()));
  for (Index r = range.first; r < last && counted < enough; ++r) {
    const Index length = std::min(
        static_cast<Index>(rows.documents[static_cast<std::size_t>(r)].ids.size()), truncation);
    if (length < 2) continue;
    chosen.push_back(r);
    counted += length - ignored;
  }
  return chosen;
}

inline EvaluationSet rows_as_windows(const TokenizedCorpus& rows, const std::vector<Index>& chosen,
                                     Index truncation) {
  return make_evaluation_set(
      rows, chosen, {.window = truncation, .stride = truncation, .truncation = truncation});
}

}  // namespace detail

/// The procedure's three sets from rows (each with its line feed; blank rows hold no ids). Rows are
/// cut at the model's positions where those are fewer. Throws ProtocolError where the text has too
/// few rows.
inline PaperSets paper_row_sets(const TokenizedCorpus& rows, Index positions,
                                const PaperFigures& figures = {}) {
  const Index found = static_cast<Index>(rows.documents.size());
  if (found < detail::rows_needed(figures)) {
    throw ProtocolError(
        {.id = "protocol/too-few-rows",
         .where = "paper-rows",
         .what = "the published procedure needs a longer text",
         .expected = "more than " + std::to_string(detail::rows_needed(figures) - 1) + " rows",
         .found = std::to_string(found),
         .mend = "give WikiText rows, or use --protocol rigorous"});
  }
  const Index cut = std::min(figures.truncation, positions);
  const Index gate_cut = std::min(figures.gate_truncation, positions);
  const auto set = [&](RowRange range, Index truncation, Index ignored, Index enough) {
    return detail::rows_as_windows(
        rows, detail::rows_until(rows, range, truncation, ignored, enough), truncation);
  };
  return {set(figures.fit_rows, cut, 0, figures.fit_tokens),
          set(figures.gate_rows, gate_cut, 1, figures.gate_tokens),
          set(figures.evaluation_rows, cut, 1, figures.evaluation_tokens)};
}

/// The sets of the stream variant: the whole text as one document, cut into chunks of 512 tokens;
/// fit, gate and evaluation take chunks one after the other. Throws ProtocolError where the text is
/// too short.
inline PaperSets paper_stream_sets(const TokenizedCorpus& stream, Index positions,
                                   const PaperFigures& figures = {}) {
  const Index chunk = std::min(figures.truncation, positions);
  TokenizedCorpus chunks;
  for (const TokenizedDocument& document : stream.documents) {
    for (std::size_t at = 0; at < document.ids.size(); at += static_cast<std::size_t>(chunk)) {
      const std::size_t end = std::min(document.ids.size(), at + static_cast<std::size_t>(chunk));
      TokenizedDocument piece;
      piece.ids.assign(document.ids.begin() + static_cast<std::ptrdiff_t>(at),
                       document.ids.begin() + static_cast<std::ptrdiff_t>(end));
      chunks.documents.push_back(std::move(piece));
    }
  }
  const Index count = static_cast<Index>(chunks.documents.size());
  const std::vector<Index> fit =
      detail::rows_until(chunks, {0, count}, chunk, 0, figures.fit_tokens);
  const Index gate_first = fit.empty() ? count : fit.back() + 1;
  const std::vector<Index> gate =
      detail::rows_until(chunks, {gate_first, count}, chunk, 1, figures.gate_tokens);
  const Index evaluation_first = gate.empty() ? count : gate.back() + 1;
  const std::vector<Index> evaluation =
      detail::rows_until(chunks, {evaluation_first, count}, chunk, 1, figures.evaluation_tokens);
  if (evaluation.empty()) {
    throw ProtocolError(
        {.id = "protocol/too-short-stream",
         .where = "paper-stream",
         .what = "the published procedure needs a longer text",
         .expected =
             "more than " + std::to_string(figures.fit_tokens + figures.gate_tokens) + " tokens",
         .found = std::to_string(stream.token_count()),
         .mend = "give a longer text, or use --protocol rigorous"});
  }
  return {detail::rows_as_windows(chunks, fit, chunk), detail::rows_as_windows(chunks, gate, chunk),
          detail::rows_as_windows(chunks, evaluation, chunk)};
}

/// What is wrong with the published procedure; every result made with it says so.
inline std::vector<std::string> paper_faults(bool stream) {
  std::vector<std::string> faults{
      "the gate with the lowest evaluation perplexity is the one reported: choice and figure share "
      "the evaluation text",
      "gate rows and evaluation rows overlap as ranges (1000-2999 and 2000-2499)",
      "no baseline of random routing, mean or rank beside the gate",
      "labels are cut at the median of delta, so half of all positions count as linear whatever "
      "they cost",
      "the three trials of a gate are the same computation"};
  if (stream) {
    faults[1] =
        "documents are joined into one stream: windows cross their borders, and no "
        "interval can be paired by document";
  }
  return faults;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
