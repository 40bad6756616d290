// Tables for terminals and CSV files, from cells that are already text.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// value with `digits` decimals; "inf" never occurs in results.
inline std::string fixed_text(double value, int digits) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

/// The same with a sign, so that gains and losses are told apart at a glance.
inline std::string signed_text(double value, int digits) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%+.*f", digits, value);
  return buffer;
}

/// Shortest text that reads back as the same double.
inline std::string exact_text(double value) {
  char buffer[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    double back = 0;
    if (std::sscanf(buffer, "%lf", &back) == 1 && back == value) break;
  }
  return buffer;
}

/// Rows of cells under a header. First column left-aligned, the others right-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// No rows but the header.
  bool empty() const { return rows_.size() == 1; }

  /// Columns padded with spaces, a rule under the header.
  std::string aligned() const {
    const std::vector<std::size_t> widths = column_widths();
    std::string text;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::string line;
      for (std::size_t c = 0; c < rows_[r].size(); ++c) {
        const std::string pad(widths[c] - width_of(rows_[r][c]), ' ');
        if (c > 0) line += "  ";
        line += c == 0 ? rows_[r][c] + pad : pad + rows_[r][c];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
      if (r == 0) text += rule(widths) + "\n";
    }
    return text;
  }

  /// RFC 4180, with line feeds.
  std::string csv() const {
    std::string text;
    for (const std::vector<std::string>& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) text += (c > 0 ? "," : "") + quoted(row[c]);
      text += "\n";
    }
    return text;
  }

 private:
  // Characters, not bytes: titles may hold any script.
  static std::size_t width_of(std::string_view cell) {
    return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    }));
  }

  static std::string quoted(const std::string& cell) {
    if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
    std::string text = "\"";
    for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + "\"";
  }

  static std::string rule(const std::vector<std::size_t>& widths) {
    std::size_t total = 2 * (widths.size() - 1);
    for (const std::size_t w : widths) total += w;
    return std::string(total, '-');
  }

  std::vector<std::size_t> column_widths() const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const std::vector<std::string>& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        widths[c] = std::max(widths[c], width_of(row[c]));
      }
    }
    return widths;
  }

  std::vector<std::vector<std::string>> rows_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
