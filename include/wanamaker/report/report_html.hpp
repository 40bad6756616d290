// A report as one HTML page that needs nothing else: no network, no script. Light and dark by the
// reader's setting, readable on a telephone and on paper.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wanamaker/report/report_blocks.hpp"
#include "wanamaker/report/report_style.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A text inside HTML: markup replaced, control characters by spaces, marks that change the
/// direction of what follows left out.
inline std::string html_text(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view three = text.substr(i, 3);
    const bool turns =
        (three >= "\u202a" && three <= "\u202e") || (three >= "\u2066" && three <= "\u2069");
    if (turns) {
      i += 2;
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return result;
}

namespace detail {

inline bool is_figure_cell(std::string_view cell) {
  if (cell.starts_with("−")) return true;
  constexpr std::string_view begins = "0123456789+[";
  return !cell.empty() && cell.size() < 30 && begins.find(cell.front()) != begins.npos;
}

/// Figures stand at the right of their column, if it has nothing else but dashes.
inline bool is_figure_column(const ReportTable& table, std::size_t column) {
  bool has_figure = false;
  for (const auto& row : table.rows) {
    if (column >= row.size() || row[column] == "–" || row[column].empty()) continue;
    if (!is_figure_cell(row[column])) return false;
    has_figure = true;
  }
  return has_figure;
}

inline std::string cell_class(std::string_view cell) {
  if (cell == "holds") return " class=\"holds\"";
  if (cell == "does not hold") return " class=\"fails\"";
  if (cell == "cannot be decided here") return " class=\"open\"";
  return cell.size() > 40 ? " class=\"long\"" : "";
}

inline std::string html_of(const ReportTable& table) {
  std::vector<std::string> aligned;
  std::string html = "<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>";
  for (std::size_t c = 0; c < table.header.size(); ++c) {
    aligned.push_back(is_figure_column(table, c) ? " class=\"n\"" : "");
    html += "<th scope=\"col\"" + aligned[c] + ">" + html_text(table.header[c]) + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool figures = c < aligned.size() && !aligned[c].empty();
      html +=
          "<td" + (figures ? aligned[c] : cell_class(row[c])) + ">" + html_text(row[c]) + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

class HtmlPage {
 public:
  explicit HtmlPage(const ReportDocument& document) : document_(document) {}

  std::string text() {
    for (const ReportBlock& block : document_.blocks) {
      std::visit([this](const auto& b) { add(b); }, block);
    }
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
           "<meta name=\"color-scheme\" content=\"light dark\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
           "style-src 'unsafe-inline'\">\n<title>" +
           html_text(document_.title) + "</title>\n<style>\n" + std::string(report_style) +
           "</style>\n</head>\n<body>\n<header><h1>" + html_text(document_.title) +
           "</h1></header>\n<main>\n" + introduction_ + contents() + body_ +
           "</main>\n</body>\n</html>\n";
  }

 private:
  void add(const HeadingBlock& heading) {
    const std::string level = std::to_string(heading.level);
    std::string id;
    if (heading.level == 2) {
      ++sections_;
      id = " id=\"s" + std::to_string(sections_) + "\"";
      links_ += "<li><a href=\"#s" + std::to_string(sections_) + "\">" + html_text(heading.text) +
                "</a></li>\n";
    }
    place() += "<h" + level + id + ">" + html_text(heading.text) + "</h" + level + ">\n";
  }
  void add(const TextBlock& text) {
    const char* role = text.role == TextRole::lead   ? " class=\"lead\""
                       : text.role == TextRole::note ? " class=\"note\""
                                                     : "";
    place() += "<p" + std::string(role) + ">" + html_text(text.text) + "</p>\n";
  }
  void add(const TableBlock& block) { place() += html_of(block.table); }
  void add(const FigureBlock& figure) {
    place() += "<figure>\n<figcaption>" + html_text(figure.title) + "</figcaption>\n";
    if (!figure.legend.empty()) place() += "<div class=\"one\">" + figure.legend + "</div>\n";
    place() += figure.pictures.size() > 1 ? "<div class=\"grid\">\n" : "<div class=\"one\">\n";
    for (const std::string& picture : figure.pictures) place() += picture;
    place() += "</div>\n";
    if (!figure.caption.empty()) {
      place() += "<p class=\"note\">" + html_text(figure.caption) + "</p>\n";
    }
    if (!figure.table.rows.empty()) {
      place() += "<details><summary>The same as a table</summary>\n" + html_of(figure.table) +
                 "</details>\n";
    }
    place() += "</figure>\n";
  }

  // What comes before the first section stands above the contents.
  std::string& place() { return sections_ == 0 ? introduction_ : body_; }
  std::string contents() const {
    if (links_.empty()) return "";
    return "<nav aria-label=\"Contents\"><ul>\n" + links_ + "</ul></nav>\n";
  }

  const ReportDocument& document_;
  std::string introduction_, links_, body_;
  int sections_ = 0;
};

}  // namespace detail

/// The page; texts are escaped, pictures taken as they are.
inline std::string html_page(const ReportDocument& document) {
  return detail::HtmlPage(document).text();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
