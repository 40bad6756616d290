// A report as a list of blocks, before it is HTML or Markdown; both say the same.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Cells are plain text; rows have as many as the header.
struct ReportTable {
  std::vector<std::string> header{};
  std::vector<std::vector<std::string>> rows{};
};

/// A heading.
struct HeadingBlock {
  int level = 2;  ///< 2: a section, which the page's contents list; 3, 4 inside it
  std::string text{};
};

enum class TextRole { plain, lead, note };

/// A paragraph.
struct TextBlock {
  std::string text{};
  TextRole role = TextRole::plain;
};

/// A table.
struct TableBlock {
  ReportTable table{};
};

/// Pictures with their figures as a table, for those who cannot see them and for Markdown.
struct FigureBlock {
  std::string title{};
  std::string legend{};  ///< of all pictures together, the same as they; may be empty
  std::vector<std::string> pictures{};  ///< SVG elements, in which every text is escaped
  std::string caption{};
  ReportTable table{};
};

using ReportBlock = std::variant<HeadingBlock, TextBlock, TableBlock, FigureBlock>;

/// A report as a list of blocks, before it becomes HTML or Markdown.
struct ReportDocument {
  std::string title{};
  std::vector<ReportBlock> blocks{};

  void heading(int level, std::string text) {
    blocks.push_back(HeadingBlock{level, std::move(text)});
  }
  void text(std::string text, TextRole role = TextRole::plain) {
    blocks.push_back(TextBlock{std::move(text), role});
  }
  void table(ReportTable table) { blocks.push_back(TableBlock{std::move(table)}); }
  void figure(FigureBlock figure) { blocks.push_back(std::move(figure)); }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
