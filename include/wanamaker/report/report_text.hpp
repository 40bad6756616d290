// Figures as a report writes them: as many digits as can be read at a glance, a true minus sign, a
// dash where there is nothing.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "wanamaker/report/text_table.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

inline constexpr const char* nothing_text = "–";

namespace detail {

/// U+2212 for a leading hyphen.
inline std::string with_minus(std::string text) {
  if (!text.empty() && text.front() == '-') text.replace(0, 1, "−");
  return text;
}

// Decimals that leave about four significant digits.
inline int decimals_of(double value, int most) {
  const double size = std::abs(value);
  if (size >= 1000) return 0;
  if (size >= 100) return most < 1 ? most : 1;
  return most;
}

// 1.2e+15 beyond what anyone reads in full.
inline std::string huge_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.2g", value);
  return buffer;
}

}  // namespace detail

/// A change: with its sign.
inline std::string change_text(std::optional<double> value, int decimals = 2) {
  if (!value) return nothing_text;
  if (std::abs(*value) >= 1e9) return detail::with_minus(detail::huge_text(*value));
  return detail::with_minus(signed_text(*value, detail::decimals_of(*value, decimals)));
}

/// A figure.
inline std::string figure_text(std::optional<double> value, int decimals = 2) {
  if (!value) return nothing_text;
  if (std::abs(*value) >= 1e15) return detail::with_minus(detail::huge_text(*value));
  return detail::with_minus(fixed_text(*value, detail::decimals_of(*value, decimals)));
}

/// A whole number, in groups of three digits.
inline std::string count_text(std::optional<double> value) {
  if (!value) return nothing_text;
  if (std::abs(*value) >= 1e15) return detail::huge_text(*value);
  std::string digits = fixed_text(std::round(*value), 0);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return detail::with_minus(digits);
}

/// 0.25 as "25 %".
inline std::string share_text(std::optional<double> value, int decimals = 0) {
  if (!value) return nothing_text;
  return figure_text(100 * *value, decimals) + " %";
}

/// "[low, high]".
inline std::string range_text(std::optional<double> low, std::optional<double> high,
                              int decimals = 2) {
  if (!low || !high) return nothing_text;
  return "[" + change_text(low, decimals) + ", " + change_text(high, decimals) + "]";
}

/// What is not there is a dash.
inline std::string text_or_dash(const std::string& text) {
  return text.empty() ? nothing_text : text;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
