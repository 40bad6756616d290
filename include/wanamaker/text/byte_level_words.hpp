// GPT-2's split of text into words, written out by hand: the same pieces as the pattern, found
// several times quicker. The tests compare it with the pattern.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The pattern (Radford et al. 2019, encoder.py). Its matches cover a text without gaps.
inline constexpr std::string_view byte_level_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace detail {

/// The pattern tells only these apart.
enum class CharacterKind : std::uint8_t { letter, number, space, other };

inline CharacterKind kind_of(char32_t c) {
  if (is_white_space(c)) return CharacterKind::space;
  const utf8proc_category_t k = category(c);
  if (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) return CharacterKind::letter;
  if (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) return CharacterKind::number;
  return CharacterKind::other;
}

constexpr std::array<CharacterKind, 128> ascii_kinds() {
  std::array<CharacterKind, 128> kinds{};
  for (unsigned c = 0; c < 128; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool number = c >= '0' && c <= '9';
    kinds[c] = letter              ? CharacterKind::letter
               : number            ? CharacterKind::number
               : is_white_space(c) ? CharacterKind::space
                                   : CharacterKind::other;
  }
  return kinds;
}

/// Walks over a valid UTF-8 text.
class ByteLevelScanner {
 public:
  explicit ByteLevelScanner(std::string_view text) : text_(text) {}

  /// End of the word that begins at `at` (< size).
  std::size_t word_end(std::size_t at) const {
    if (text_[at] == '\'') {
      if (const std::size_t length = contraction_length(at)) return at + length;
    }
    const Character first = character(at);
    if (first.kind != CharacterKind::space) return run_end(at + first.length, first.kind);
    if (text_[at] == ' ' && at + 1 < text_.size()) {
      const Character second = character(at + 1);
      if (second.kind != CharacterKind::space) {
        return run_end(at + 1 + second.length, second.kind);
      }
    }
    return spaces_end(at);
  }

 private:
  struct Character {
    CharacterKind kind;
    std::size_t length;
  };

  Character character(std::size_t at) const {
    static constexpr std::array<CharacterKind, 128> kinds = ascii_kinds();
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {kinds[byte], 1};
    const CodePoint c = decode_utf8(text_, at);
    return {kind_of(c.value), c.length};
  }

  std::size_t run_end(std::size_t at, CharacterKind kind) const {
    while (at < text_.size()) {
      const Character next = character(at);
      if (next.kind != kind) break;
      at += next.length;
    }
    return at;
  }

  /// `\s+(?!\S)|\s+`: all the spaces at the end of the text; elsewhere all but the last, which
  /// belongs to what follows, unless it is the only one.
  std::size_t spaces_end(std::size_t at) const {
    const std::size_t end = run_end(at, CharacterKind::space);
    if (end == text_.size()) return end;
    const std::size_t last = previous_code_point(text_, end);
    return last > at ? last : end;
  }

  /// Length of 's 't 'm 'd 're 've 'll at an apostrophe, or 0.
  std::size_t contraction_length(std::size_t at) const {
    const auto next = [&](std::size_t i) { return at + i < text_.size() ? text_[at + i] : '\0'; };
    switch (next(1)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return 2;
      case 'r':
      case 'v':
        return next(2) == 'e' ? 3 : 0;
      case 'l':
        return next(2) == 'l' ? 3 : 0;
      default:
        return 0;
    }
  }

  std::string_view text_;
};

}  // namespace detail

/// Calls `visit(word)` for each match of `byte_level_pattern` in a valid UTF-8 text, in order.
template <class Visit>
void for_each_byte_level_word(std::string_view text, Visit&& visit) {
  const detail::ByteLevelScanner scanner(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = scanner.word_end(at);
    visit(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
