// A report as Markdown: what the HTML page says, with tables in the place of pictures.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "wanamaker/report/report_blocks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A text whose marks mean nothing to Markdown or HTML, on one line.
inline std::string markdown_text(std::string_view text) {
  constexpr std::string_view marks = "\\`*_[]|~#";
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += ' ';
    } else {
      if (marks.find(c) != marks.npos) result += '\\';
      result += c;
    }
  }
  return result;
}

namespace detail {

inline std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + markdown_text(cell) + " |";
  return line + "\n";
}

inline std::string markdown_of(const ReportTable& table) {
  std::string text = markdown_row(table.header) + "|";
  for (std::size_t c = 0; c < table.header.size(); ++c) text += " --- |";
  text += "\n";
  for (const auto& row : table.rows) text += markdown_row(row);
  return text + "\n";
}

inline std::string markdown_of(const HeadingBlock& heading) {
  return std::string(static_cast<std::size_t>(heading.level), '#') + " " +
         markdown_text(heading.text) + "\n\n";
}
inline std::string markdown_of(const TextBlock& block) {
  return markdown_text(block.text) + "\n\n";
}
inline std::string markdown_of(const TableBlock& block) {
  return markdown_of(block.table);
}
inline std::string markdown_of(const FigureBlock& figure) {
  std::string text = "**" + markdown_text(figure.title) + "**\n\n";
  if (!figure.table.rows.empty()) text += markdown_of(figure.table);
  if (!figure.caption.empty()) text += markdown_text(figure.caption) + "\n\n";
  return text;
}

}  // namespace detail

inline std::string markdown_page(const ReportDocument& document) {
  std::string text = "# " + markdown_text(document.title) + "\n\n";
  for (const ReportBlock& block : document.blocks) {
    text += std::visit([](const auto& b) { return detail::markdown_of(b); }, block);
  }
  text.pop_back();
  return text;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
