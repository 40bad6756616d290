// WikiText's form: articles one after the other, each begun by a line " = Title = ".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// A line that begins an article.
struct WikitextHeading {
  std::string title{};
  std::size_t begin = 0;  ///< byte offset in the text
  Index line = 0;         ///< from 0
};

/// Finds the headings of a text whose rows come one after the other. Formulas give lines of prose a
/// heading's form (" = 1 henry and capacitance C = "), so that headings are only those between
/// blank lines, unless the text sets no heading apart in this way: then all are.
class WikitextHeadingFinder {
 public:
  /// Calls `visit(heading)` for each heading that this row makes certain. The first may come late:
  /// until one is set apart, any could turn out to be prose.
  template <class Visit>
  void add(const Row& row, Visit&& visit) {
    const bool blank = is_blank(row.text);
    if (pending_) resolve(blank, visit);
    if (const auto title = wikitext_title(row.text)) {
      pending_ = WikitextHeading{std::string(*title), row.begin, row.number};
      pending_after_blank_ = after_blank_;
    }
    after_blank_ = blank;
  }

  /// The text has ended.
  template <class Visit>
  void finish(Visit&& visit) {
    if (pending_) resolve(true, visit);
    for (const WikitextHeading& heading : doubtful_) visit(heading);
    doubtful_.clear();
  }

 private:
  template <class Visit>
  void resolve(bool before_blank, Visit&& visit) {
    if (pending_after_blank_ && before_blank) {
      sets_apart_ = true;
      doubtful_.clear();
      visit(static_cast<const WikitextHeading&>(*pending_));
    } else if (!sets_apart_) {
      doubtful_.push_back(*std::move(pending_));
    }
    pending_.reset();
  }

  bool after_blank_ = true;  // is the row before this one blank?
  bool sets_apart_ = false;  // was a heading between blank lines?
  bool pending_after_blank_ = false;
  std::optional<WikitextHeading> pending_;  // the last row, where it has a heading's form
  std::vector<WikitextHeading> doubtful_;   // not set apart, while none is
};

/// An article, or what stands before the first.
struct WikitextArticle {
  std::string title{};  ///< empty before the first heading
  std::string text{};   ///< heading and all, up to the next heading
  Index line = 0;       ///< of its first line, from 0
};

/// Cuts a text whose rows come one after the other into articles, holding one of them (all, until a
/// heading is certain). What stands before the first heading is an article without title unless
/// blank. The articles' texts follow each other without gaps.
template <class Visit>
class WikitextSplitter {
 public:
  /// `visit(article)` is called for each; more than `largest` bytes of one throw DataError.
  WikitextSplitter(std::string where, std::size_t largest, Visit visit)
      : where_(std::move(where)), largest_(largest), visit_(std::move(visit)) {}

  void add(const Row& row) {
    kept_ += row.text;
    finder_.add(row, [this](const WikitextHeading& heading) { cut_at(heading); });
    drop_given();
    if (kept_.size() <= largest_) return;
    detail::refuse_large_document(where_ + ", line " + std::to_string(article_.line + 1), largest_);
  }
  void finish() {
    finder_.finish([this](const WikitextHeading& heading) { cut_at(heading); });
    give(kept_.size() - given_);
    drop_given();
  }

 private:
  void cut_at(const WikitextHeading& heading) {
    give(heading.begin - kept_begin_);
    article_.title = heading.title;
    article_.line = heading.line;
    titled_ = true;
  }

  void give(std::size_t size) {
    article_.text = kept_.substr(given_, size);
    given_ += size;
    kept_begin_ += size;
    if (titled_ || !is_blank(article_.text)) visit_(std::move(article_));
  }

  /// Once for all articles that a row makes certain: they may be many.
  void drop_given() { kept_.erase(0, std::exchange(given_, 0)); }

  std::string where_;
  std::size_t largest_;
  Visit visit_;
  WikitextHeadingFinder finder_;
  WikitextArticle article_;
  bool titled_ = false;
  std::string kept_;            // what belonged to no article when the row came
  std::size_t given_ = 0;       // bytes of it that do by now
  std::size_t kept_begin_ = 0;  // of the rest in the text
};

/// The articles of a valid UTF-8 text, as WikitextSplitter has them.
inline std::vector<WikitextArticle> split_wikitext(std::string_view text) {
  std::vector<WikitextArticle> articles;
  WikitextSplitter splitter("text", std::string::npos, [&](WikitextArticle article) {
    articles.push_back(std::move(article));
  });
  for_each_row(text, [&](const Row& row) { splitter.add(row); });
  splitter.finish();
  return articles;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
