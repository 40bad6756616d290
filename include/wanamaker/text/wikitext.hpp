// WikiText's form: articles one after the other, each begun by a line " = Title = ".
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/text/document.hpp"
#include "wanamaker/text/rows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The title of a top-level heading " = Title = " (blanks at either end optional), or nothing: for
/// other lines and for headings of sections, " = = Section = = ".
inline std::optional<std::string_view> wikitext_title(std::string_view line) {
  const auto trim = [](std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return std::string_view();
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  };
  line = trim(line);
  if (line.size() < 5 || !line.starts_with("= ") || !line.ends_with(" =")) return std::nullopt;
  const std::string_view title = trim(line.substr(2, line.size() - 4));
  if (title.empty() || title.starts_with('=') || title.ends_with('=')) return std::nullopt;
  return title;
}

/// An article, or what stands before the first.
struct WikitextArticle {
  std::string_view title{};  ///< empty before the first heading
  std::string_view text{};   ///< heading and all, up to the next heading
  Index line = 0;            ///< of its first line, from 0
};

namespace detail {

struct WikitextHeading {
  std::string_view title;
  std::size_t begin;
  Index line;
  bool set_apart;  // between blank lines, or at an end of the text
};

/// Every line that has a heading's form.
inline std::vector<WikitextHeading> heading_candidates(std::string_view text) {
  std::vector<WikitextHeading> headings;
  bool after_blank = true;     // is the line before this one blank?
  bool after_heading = false;  // does it have a heading's form?
  for_each_row(text, [&](const Row& row) {
    const bool blank = is_blank(row.text);
    if (after_heading && !blank) headings.back().set_apart = false;
    const std::optional<std::string_view> title = wikitext_title(row.text);
    if (title) headings.push_back({*title, row.begin, row.number, after_blank});
    after_blank = blank;
    after_heading = title.has_value();
  });
  return headings;
}

}  // namespace detail

/// The articles of a valid UTF-8 text. Formulas give lines of prose a heading's form (" = 1 henry
/// and capacitance C = "), so that headings are only those between blank lines, unless the text
/// sets no heading apart in this way. What stands before the first heading is an article without
/// title unless blank. The articles' texts follow each other without gaps.
inline std::vector<WikitextArticle> split_wikitext(std::string_view text) {
  std::vector<detail::WikitextHeading> headings = detail::heading_candidates(text);
  const auto is_apart = [](const detail::WikitextHeading& h) { return h.set_apart; };
  if (std::any_of(headings.begin(), headings.end(), is_apart)) {
    headings.erase(std::remove_if(headings.begin(), headings.end(), std::not_fn(is_apart)),
                   headings.end());
  }
  std::vector<WikitextArticle> articles;
  const std::string_view before =
      text.substr(0, headings.empty() ? text.size() : headings[0].begin);
  if (!is_blank(before)) articles.push_back({.text = before});
  for (std::size_t i = 0; i < headings.size(); ++i) {
    const std::size_t end = i + 1 < headings.size() ? headings[i + 1].begin : text.size();
    articles.push_back({.title = headings[i].title,
                        .text = text.substr(headings[i].begin, end - headings[i].begin),
                        .line = headings[i].line});
  }
  return articles;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
