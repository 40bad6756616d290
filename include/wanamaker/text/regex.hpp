// Regular expressions of tokenizer files, by PCRE2.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/third_party/pcre2.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Ranges of Unicode's White_Space, in a pattern's spelling.
inline constexpr std::string_view white_space_ranges =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

inline std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

[[noreturn]] inline void refuse_pattern(const std::string& where, std::string_view pattern,
                                        const std::string& what, const std::string& found) {
  throw FormatError({.id = "tokenizer/pattern",
                     .where = where,
                     .what = what,
                     .expected = "a pattern that PCRE2 reads as the reference does",
                     .found = found + " in " + in_quotes(pattern),
                     .mend = "this tokenizer is not supported yet"});
}

/// Rewrites a pattern so that PCRE2 reads it as the reference implementation (Oniguruma, Ruby's
/// syntax) does: `\s` and `\S` mean White_Space. Whatever else the two read differently is refused.
class PatternTranslator {
 public:
  PatternTranslator(std::string_view pattern, const std::string& where)
      : pattern_(pattern), where_(where) {}

  std::string translate() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\') {
        escape();
      } else if (in_class_) {
        class_character();
      } else {
        outer_character();
      }
    }
    return result_;
  }

 private:
  bool follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  void copy(std::size_t count) {
    result_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void outer_character() {
    // Anchors of lines, verbs, and quantifiers that are possessive in one syntax only.
    for (const char* construct : {"(*", "{,", "}+", "^", "$"}) refuse_if(construct);
    if (follows("(?")) check_group();
    if (follows("[")) {
      in_class_ = true;
      copy(follows("[^") ? 2 : 1);
      refuse_if("]");
    } else {
      copy(1);
    }
  }

  void class_character() {
    for (const char* construct : {"[", "&&"}) refuse_if(construct);
    if (follows("]")) in_class_ = false;
    copy(1);
  }

  void check_group() const {
    for (const char* group : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (follows(group)) return;
    }
    refuse(std::string(pattern_.substr(at_, 3)));
  }

  void escape() {
    const std::string_view pair = pattern_.substr(at_, 2);
    if (pair == "\\s") {
      result_ += in_class_ ? std::string(white_space_ranges) : bracketed("[");
    } else if (pair == "\\S" && !in_class_) {
      result_ += bracketed("[^");
    } else {
      for (const char* meaning : {"\\S", "\\w", "\\W", "\\b", "\\B", "\\h", "\\H", "\\R", "\\X",
                                  "\\K", "\\G", "\\Q", "\\E", "\\C", "\\Z", "\\g", "\\k"}) {
        refuse_if(meaning);
      }
      copy_escape(pair);
      return;
    }
    at_ += pair.size();
  }

  /// With the braces of `\p{L}` and `\x{20}`, so that they are not taken for a quantifier.
  void copy_escape(std::string_view pair) {
    const bool may_have_braces = pair == "\\p" || pair == "\\P" || pair == "\\x";
    copy(pair.size());
    if (!may_have_braces || !follows("{")) return;
    copy(std::min(pattern_.find('}', at_), pattern_.size() - 1) + 1 - at_);
  }

  static std::string bracketed(const char* opening) {
    return opening + std::string(white_space_ranges) + "]";
  }

  void refuse_if(std::string_view construct) const {
    if (follows(construct)) refuse(std::string(construct));
  }

  [[noreturn]] void refuse(const std::string& found) const {
    refuse_pattern(where_, pattern_, "unsupported construct", found);
  }

  std::string_view pattern_;
  const std::string& where_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  std::string result_;
};

}  // namespace detail

/// A compiled pattern. Copies share it; matching from several threads is safe.
class Regex {
 public:
  /// `pattern` in the reference's syntax. Throws FormatError for what does not compile or would be
  /// read differently; `where` names its place in a file.
  Regex(std::string_view pattern, const std::string& where) : pattern_(pattern) {
    const std::string translated = detail::PatternTranslator(pattern, where).translate();
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* compiled =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr);
    if (compiled == nullptr) {
      detail::refuse_pattern(where, pattern, "invalid pattern", detail::pcre2_message(code));
    }
    code_.reset(compiled, pcre2_code_free);
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);  // without it the interpreter is used
  }

  const std::string& pattern() const { return pattern_; }

  /// Calls `visit(begin, end)` for each match, left to right, without overlap; an empty match
  /// directly after another is passed over. The text must be valid UTF-8. Throws DataError where
  /// the pattern needs more work or memory than PCRE2 allows.
  template <class Visit>
  void for_each_match(std::string_view text, Visit&& visit) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
        pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
    if (!data) throw std::bad_alloc();
    constexpr std::size_t nowhere = std::string_view::npos;
    std::size_t previous = nowhere;
    for (std::size_t at = 0; at <= text.size() && find(text, at, data.get());) {
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
      const std::size_t begin = ends[0], end = ends[1];
      if (end > begin || begin != previous) visit(begin, end);
      previous = end;
      at = end > begin ? end : end + (end < text.size() ? decode_utf8(text, end).length : 1);
    }
  }

 private:
  bool find(std::string_view text, std::size_t at, pcre2_match_data* data) const {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                         PCRE2_NO_UTF_CHECK | options, data, nullptr);
    };
    int code = match(0);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) code = match(PCRE2_NO_JIT);  // which uses the heap
    if (code == PCRE2_ERROR_NOMATCH) return false;
    if (code >= 0) return true;
    throw DataError({.id = "text/pattern-limit",
                     .where = "byte " + std::to_string(at),
                     .what = "the tokenizer's pattern cannot be matched",
                     .found = detail::pcre2_message(code),
                     .mend = "shorten the text"});
  }

  std::string pattern_;
  std::shared_ptr<pcre2_code> code_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
