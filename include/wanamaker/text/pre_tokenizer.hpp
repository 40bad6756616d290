// The split of a normalised text into words, inside which bytes may merge: the steps that
// `pre_tokenizer` of a tokenizer.json declares.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/text/byte_level_words.hpp"
#include "wanamaker/text/regex.hpp"
#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// `Split` with behaviour "Isolated": matches and what lies between them are pieces of their own.
struct IsolatingSplit {
  Regex pattern;

  template <class Visit>
  void split(std::string_view text, Visit&& visit) const {
    std::size_t done = 0;
    pattern.for_each_match(text, [&](std::size_t begin, std::size_t end) {
      if (begin > done) visit(text.substr(done, begin - done));
      if (end > begin) visit(text.substr(begin, end - begin));
      done = end;
    });
    if (done < text.size()) visit(text.substr(done));
  }
};

/// `Digits`: numbers (\p{N}) apart from the rest, in runs or one by one.
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

/// Steps, each splitting the pieces of the one before.
class PreTokenizer {
 public:
  using Step = std::variant<IsolatingSplit, DigitSplit, ByteLevelSplit>;

  /// No step: the whole text is one word.
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  const std::vector<Step>& steps() const { return steps_; }

  /// Calls `visit(word)` for the words of a valid UTF-8 text in order; none is empty. A word is
  /// valid during its call only.
  template <class Visit>
  void for_each_word(std::string_view text, Visit&& visit) const {
    if (!text.empty()) split_from(0, text, visit);
  }

 private:
  template <class Visit>
  void split_from(std::size_t step, std::string_view piece, Visit& visit) const {
    if (step == steps_.size()) {
      visit(piece);
      return;
    }
    const auto next = [&](std::string_view part) { split_from(step + 1, part, visit); };
    std::visit([&](const auto& s) { s.split(piece, next); }, steps_[step]);
  }

  std::vector<Step> steps_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
