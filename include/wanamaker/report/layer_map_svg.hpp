// The layer map: a row for each layer, a column for each thing in the MLP's place, the cost as a
// number on a colour.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/report/plot_scale.hpp"
#include "wanamaker/report/report_text.hpp"
#include "wanamaker/report/svg_canvas.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One layer of the map: a cell for each stand-in.
struct LayerMapRow {
  std::string label{};
  std::vector<std::optional<double>> percent{};  ///< of perplexity, one for each column
};

namespace detail {

/// Of a cell's colour: full from 100 % on, and never so much that its number cannot be read.
inline double colour_strength(std::optional<double> percent) {
  if (!percent) return 0;
  return 0.62 * std::min(1.0, std::abs(two_sided_log(*percent)) / two_sided_log(100));
}

}  // namespace detail

/// Losses of perplexity in one colour, gains in the other, by their logarithm up to 100 %.
inline std::string layer_map_svg(const std::vector<std::string>& columns,
                                 const std::vector<LayerMapRow>& rows, const std::string& title) {
  constexpr double left = 34, top = 24, height = 18, width = 360;
  const double column = (width - left) / std::max<double>(1, static_cast<double>(columns.size()));
  SvgCanvas canvas(width, top + height * static_cast<double>(rows.size()) + 4, title);
  canvas.text(left - 6, 15, "end", "layer");
  for (std::size_t c = 0; c < columns.size(); ++c) {
    canvas.text(left + column * (static_cast<double>(c) + 0.5), 15, "middle", columns[c]);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double y = top + height * static_cast<double>(r);
    canvas.text(left - 6, y + 13, "end", rows[r].label);
    for (std::size_t c = 0; c < std::min(columns.size(), rows[r].percent.size()); ++c) {
      const std::optional<double> v = rows[r].percent[c];
      const double x = left + column * static_cast<double>(c);
      canvas.cell(x + 1, y + 1, column - 2, height - 2, detail::colour_strength(v),
                  v && *v < 0 ? "gain" : "loss");
      canvas.text(x + column / 2, y + 13, "middle", change_text(v));
    }
  }
  return std::move(canvas).finish();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
