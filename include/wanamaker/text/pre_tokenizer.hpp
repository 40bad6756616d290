// The split of a normalised text into words, inside which bytes may merge: the steps that
// `pre_tokenizer` of a tokenizer.json declares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/text/byte_level_words.hpp"
#include "wanamaker/text/normalizer_steps.hpp"
#include "wanamaker/text/regex.hpp"
#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What `Split` does with the pieces that match and those between them.
enum class SplitBehavior : std::uint8_t {
  isolated,              ///< all are pieces
  removed,               ///< matches are dropped
  contiguous,            ///< neighbouring matches are one piece
  merged_with_previous,  ///< a match belongs to what precedes it
  merged_with_next,      ///< a match belongs to what follows it
};

namespace detail {

struct SplitPiece {
  std::size_t begin = 0, end = 0;
  bool is_match = false;
};

/// Joins a piece to the one before it in a list where `joins(is_match, previous_is_match)`.
template <class Joins>
std::vector<SplitPiece> joined_pieces(const std::vector<SplitPiece>& pieces, Joins joins) {
  std::vector<SplitPiece> result;
  bool previous = false;
  for (const SplitPiece& piece : pieces) {
    if (joins(piece.is_match, previous) && !result.empty()) {
      result.back().begin = std::min(result.back().begin, piece.begin);
      result.back().end = std::max(result.back().end, piece.end);
    } else {
      result.push_back(piece);
    }
    previous = piece.is_match;
  }
  return result;
}

/// The pieces that a behaviour leaves. Of several matches in a row only the first joins a
/// neighbour, as in the reference.
inline std::vector<SplitPiece> pieces_left(std::vector<SplitPiece> pieces, SplitBehavior behavior) {
  const auto match_after_gap = [](bool match, bool previous) { return match && !previous; };
  switch (behavior) {
    case SplitBehavior::isolated:
      break;
    case SplitBehavior::removed:
      std::erase_if(pieces, [](const SplitPiece& piece) { return piece.is_match; });
      break;
    case SplitBehavior::contiguous:
      return joined_pieces(pieces, [](bool match, bool previous) { return match == previous; });
    case SplitBehavior::merged_with_previous:
      return joined_pieces(pieces, match_after_gap);
    case SplitBehavior::merged_with_next:
      std::reverse(pieces.begin(), pieces.end());
      pieces = joined_pieces(pieces, match_after_gap);
      std::reverse(pieces.begin(), pieces.end());
      break;
  }
  return pieces;
}

}  // namespace detail

/// `Split` by a pattern.
struct PatternSplit {
  Regex pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  ///< gaps count as matches, and matches as gaps

  template <class Visit>
  void split(std::string_view text, Visit&& visit) const {
    if (behavior != SplitBehavior::isolated) {
      for (const auto& piece : detail::pieces_left(pieces_of(text), behavior)) {
        if (piece.end > piece.begin) visit(text.substr(piece.begin, piece.end - piece.begin));
      }
      return;
    }
    std::size_t done = 0;
    pattern.for_each_match(text, [&](std::size_t begin, std::size_t end) {
      if (begin > done) visit(text.substr(done, begin - done));
      if (end > begin) visit(text.substr(begin, end - begin));
      done = end;
    });
    if (done < text.size()) visit(text.substr(done));
  }

 private:
  std::vector<detail::SplitPiece> pieces_of(std::string_view text) const {
    std::vector<detail::SplitPiece> pieces;
    std::size_t done = 0;
    pattern.for_each_match(text, [&](std::size_t begin, std::size_t end) {
      if (begin > done) pieces.push_back({done, begin, invert});
      pieces.push_back({begin, end, !invert});
      done = end;
    });
    if (done < text.size()) pieces.push_back({done, text.size(), invert});
    return pieces;
  }
};

/// `Metaspace`: spaces become a mark, one is put in front where asked for, and each mark begins a
/// piece (unless nothing is to be split).
struct MetaspaceSplit {
  enum class Prepend : std::uint8_t { always, first, never };

  std::string mark = "\u2581";
  Prepend prepend = Prepend::always;
  bool splits = true;

  /// `at_start`: the piece begins the whole text.
  template <class Visit>
  void split(std::string_view text, bool at_start, Visit&& visit) const {
    std::string marked = ReplaceTextStep{" ", mark}.apply(text);
    const bool asks = prepend == Prepend::always || (prepend == Prepend::first && at_start);
    if (asks && !marked.starts_with(mark)) marked.insert(0, mark);
    const std::string_view all = marked;
    std::size_t begin = 0;
    while (splits && begin < all.size()) {
      const std::size_t next = std::min(all.find(mark, begin + 1), all.size());
      visit(all.substr(begin, next - begin));
      begin = next;
    }
    if (begin < all.size()) visit(all.substr(begin));
  }
};

/// `Digits`: numbers (`\p{N}`) apart from the rest, in runs or one by one.
struct DigitSplit {
  bool individual = false;

  template <class Visit>
  void split(std::string_view text, Visit&& visit) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = piece_end(text, begin);
      visit(text.substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  std::size_t piece_end(std::string_view text, std::size_t begin) const {
    const CodePoint first = decode_utf8(text, begin);
    const bool number = is_number(first.value);
    std::size_t end = begin + first.length;
    while (end < text.size() && !(number && individual)) {
      const CodePoint next = decode_utf8(text, end);
      if (is_number(next.value) != number) break;
      end += next.length;
    }
    return end;
  }
};

/// `ByteLevel`: a space before a piece that has none (where asked for), then GPT-2's words (where
/// asked for).
struct ByteLevelSplit {
  bool add_prefix_space = false;
  bool use_regex = true;

  template <class Visit>
  void split(std::string_view text, Visit&& visit) const {
    std::string prefixed;
    if (add_prefix_space && !text.starts_with(' ')) {
      prefixed.append(" ").append(text);
      text = prefixed;
    }
    if (use_regex) {
      for_each_byte_level_word(text, visit);
    } else {
      visit(text);
    }
  }
};

/// The pattern by which Llama 3 and Qwen2 split a text into words; `numbers` matches digits that
/// stay together, `\p{N}{1,3}` and `\p{N}`.
inline std::string contraction_word_pattern(std::string_view numbers) {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + std::string(numbers) +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

/// Steps, each splitting the pieces of the one before.
class PreTokenizer {
 public:
  using Step = std::variant<PatternSplit, DigitSplit, ByteLevelSplit, MetaspaceSplit>;

  /// No step: the whole text is one word.
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  const std::vector<Step>& steps() const { return steps_; }

  /// Calls `visit(word)` for the words of a valid UTF-8 text in order; none is empty. A word is
  /// valid during its call only. `at_start`: this is the beginning of a text, not a later part.
  template <class Visit>
  void for_each_word(std::string_view text, Visit&& visit, bool at_start = true) const {
    if (!text.empty()) split_from(0, text, at_start, visit);
  }

 private:
  template <class Visit>
  void split_from(std::size_t step, std::string_view piece, bool at_start, Visit& visit) const {
    if (step == steps_.size()) {
      visit(piece);
      return;
    }
    const auto next = [&](std::string_view part) { split_from(step + 1, part, false, visit); };
    if (const auto* metaspace = std::get_if<MetaspaceSplit>(&steps_[step])) {
      metaspace->split(piece, at_start, next);
      return;
    }
    std::visit(
        [&](const auto& s) {
          if constexpr (requires { s.split(piece, next); }) s.split(piece, next);
        },
        steps_[step]);
  }

  std::vector<Step> steps_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
