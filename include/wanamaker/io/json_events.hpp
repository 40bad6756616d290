// What every JSON reader here shares: nlohmann's event parser under bounds on size, depth and
// encoding, with faults that name the line and the byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/third_party/json.hpp"
#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Bounds on untrusted JSON.
struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;  ///< of text; a document in memory may take 40 × that
  int depth = 64;                             ///< nested arrays and objects
};

namespace detail {

/// A JSON text and how many of its bytes the parser has taken.
struct JsonText {
  std::string_view text;
  std::string where;  ///< file or origin, for messages
  std::size_t taken = 0;

  std::string place(std::size_t byte) const {
    byte = std::min(byte, text.size());
    const auto begin = text.begin();
    const auto line = 1 + std::count(begin, begin + static_cast<std::ptrdiff_t>(byte), '\n');
    return where + ", line " + std::to_string(line) + " (byte " + std::to_string(byte) + ")";
  }
};

/// Input iterator over a JsonText that leaves its position behind: nlohmann's events carry none.
class JsonTextIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  JsonTextIterator(JsonText& source, std::size_t position)
      : source_(&source), position_(position) {}
  reference operator*() const { return source_->text[position_]; }
  JsonTextIterator& operator++() {
    source_->taken = ++position_;
    return *this;
  }
  JsonTextIterator operator++(int) {
    JsonTextIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const JsonTextIterator& other) const { return position_ == other.position_; }
  bool operator!=(const JsonTextIterator& other) const { return position_ != other.position_; }

 private:
  JsonText* source_;
  std::size_t position_;
};

/// Base of event handlers: counts depth, and turns the parser's faults into FormatErrors. Virtual,
/// so that the parser is compiled once for all of them.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonEvents(JsonText& source, int depth_limit) : source_(source), depth_limit_(depth_limit) {}

  bool binary(nlohmann::json::binary_t&) override { return false; }  // never sent for text

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& fault) override {
    // "[name] parse error at line 1, column 2: reason": `where` has the place already.
    std::string_view text = fault.what();
    text.remove_prefix(std::min(text.size(), text.find("] ") + 2));
    if (text.starts_with("parse error at")) text.remove_prefix(text.find(": ") + 2);
    throw FormatError({.id = "json/syntax",
                       .where = source_.place(position == 0 ? 0 : position - 1),
                       .what = "invalid JSON",
                       .found = shortened(text, 200),
                       .mend = "correct the file, or write or download it again"});
  }

 protected:
  /// Throws a FormatError at the parser's present place.
  [[noreturn]] void fail(std::string_view id, std::string what, std::string expected,
                         std::string found) const {
    throw FormatError({.id = id,
                       .where = source_.place(source_.taken),
                       .what = std::move(what),
                       .expected = std::move(expected),
                       .found = std::move(found),
                       .mend = "correct the file, or write or download it again"});
  }
  [[noreturn]] void fail_duplicate(std::string_view key) const {
    fail("json/duplicate-key", "key twice in one object", "every key once", in_quotes(key));
  }

  void enter() {
    if (++depth_ <= depth_limit_) return;
    fail("json/too-deep", "too deeply nested",
         "at most " + std::to_string(depth_limit_) + " levels", "more");
  }
  void leave() { --depth_; }
  int depth() const { return depth_; }

 private:
  JsonText& source_;
  int depth_limit_;
  int depth_ = 0;
};

inline void check_json_text(const JsonText& source, const JsonLimits& limits) {
  if (source.text.size() > limits.bytes) {
    throw FormatError({.id = "json/too-large",
                       .where = source.where,
                       .what = "JSON text too large",
                       .expected = "at most " + std::to_string(limits.bytes) + " bytes",
                       .found = std::to_string(source.text.size()),
                       .mend = "check that this is the right file"});
  }
  // The parser would take a NUL for the end of the text.
  if (const std::size_t nul = source.text.find('\0'); nul != source.text.npos) {
    throw FormatError({.id = "json/syntax",
                       .where = source.place(nul),
                       .what = "invalid JSON",
                       .expected = "text",
                       .found = "a NUL byte",
                       .mend = "check that this is the right file"});
  }
  if (const auto byte = first_invalid_utf8(source.text)) {
    throw FormatError({.id = "json/invalid-utf8",
                       .where = source.place(*byte),
                       .what = "invalid UTF-8",
                       .expected = "UTF-8 text",
                       .mend = "save the file as UTF-8"});
  }
}

/// Sends the whole text to a handler. Throws FormatError.
inline void send_json_events(JsonText& source, const JsonLimits& limits, JsonEvents& handler) {
  check_json_text(source, limits);
  nlohmann::json_sax<nlohmann::json>* const sax = &handler;
  // json::sax_parse would do, but compiles the readers of four binary formats, too.
  auto input = nlohmann::detail::input_adapter(JsonTextIterator(source, 0),
                                               JsonTextIterator(source, source.text.size()));
  nlohmann::detail::parser<nlohmann::json, decltype(input)>(std::move(input)).sax_parse(sax);
}

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
