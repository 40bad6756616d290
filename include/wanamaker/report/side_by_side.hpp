// Two texts in columns beside each other, for terminals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A text (valid UTF-8) as a terminal may be shown it: control characters but line feeds, which
/// could move its cursor or change its settings, are U+FFFD; tabs are spaces.
inline std::string terminal_text(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const bool is_control = c.value < 0x20 || (c.value >= 0x7f && c.value < 0xa0);
    if (c.value == '\t') {
      shown += ' ';
    } else if (is_control && c.value != '\n') {
      shown += "\xef\xbf\xbd";
    } else {
      shown.append(text.substr(at, c.length));
    }
    at += c.length;
  }
  return shown;
}

namespace detail {

// Columns that valid UTF-8 takes on a terminal.
inline std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    columns += terminal_columns(c.value);
    at += c.length;
  }
  return columns;
}

// Bytes of the longest beginning that takes at most `width` columns, one character at least.
inline std::size_t fitting_bytes(std::string_view text, std::size_t width) {
  std::size_t columns = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = decode_utf8(text, at);
    columns += terminal_columns(c.value);
    if (columns > width && at > 0) break;
    at += c.length;
  }
  return at;
}

// One line of text, without line feeds, in lines of `width` columns, broken at spaces.
inline void wrap_line(std::string_view line, std::size_t width, std::vector<std::string>& lines) {
  while (columns_of(line) > width) {
    const std::size_t fits = fitting_bytes(line, width);
    if (fits == line.size()) break;  // one character, too wide
    const std::size_t space = line[fits] == ' ' ? fits : line.rfind(' ', fits - 1);
    const bool breaks = space != std::string_view::npos && space > 0;
    lines.emplace_back(line.substr(0, breaks ? space : fits));
    line.remove_prefix(breaks ? space + 1 : fits);
  }
  lines.emplace_back(line);
}

}  // namespace detail

/// A text (valid UTF-8) in lines of at most `width` columns, its own line breaks kept. A character
/// that is wider stands alone.
inline std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    detail::wrap_line(text.substr(0, end), width, lines);
    if (end == text.size()) return lines;
    text.remove_prefix(end + 1);
  }
}

/// A text with its title, for a column.
struct TitledText {
  std::string title;
  std::string text;
};

/// Both texts from their tops on, within `width` columns together (7 at least).
inline std::string side_by_side(const TitledText& left, const TitledText& right,
                                std::size_t width = 79) {
  const std::size_t column = (std::max<std::size_t>(width, 7) - 3) / 2;
  const auto lines_of = [column](const TitledText& t) {
    std::vector<std::string> lines = wrapped(terminal_text(t.title), column);
    lines.emplace_back(column, '-');
    for (std::string& line : wrapped(terminal_text(t.text), column)) {
      lines.push_back(std::move(line));
    }
    return lines;
  };
  const std::vector<std::string> a = lines_of(left);
  const std::vector<std::string> b = lines_of(right);
  std::string page;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    std::string line = i < a.size() ? a[i] : std::string();
    const std::size_t columns = detail::columns_of(line);
    line.append(column > columns ? column - columns : 0, ' ').append(" | ");
    if (i < b.size()) line += b[i];
    line.erase(line.find_last_not_of(' ') + 1);
    page += line + "\n";
  }
  return page;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
