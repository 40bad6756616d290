// A forest plot: an estimate and its interval on a line of its own, rows below each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/report/plot_scale.hpp"
#include "wanamaker/report/report_text.hpp"
#include "wanamaker/report/svg_canvas.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A value with its interval, where it has one.
struct Estimate {
  std::optional<double> value{};
  std::optional<double> low{};
  std::optional<double> high{};
};

/// One colour and mark of a forest plot.
struct ForestSeries {
  std::string name{};
  SeriesStyle style = 0;
};

/// One line of a forest plot: estimates with their intervals.
struct ForestRow {
  std::string label{};
  std::vector<Estimate> estimates{};  ///< one for each series
};

namespace detail {

inline std::vector<double> forest_values(const std::vector<ForestRow>& rows) {
  std::vector<double> values{0};
  for (const ForestRow& row : rows) {
    for (const Estimate& e : row.estimates) {
      for (const std::optional<double> v : {e.value, e.low, e.high}) {
        if (v) values.push_back(*v);
      }
    }
  }
  return values;
}

inline void add_estimate(SvgCanvas& canvas, const PlotScale& scale, const ForestSeries& series,
                         const Estimate& e, double y) {
  if (!e.value) return;
  const std::string colour = "s" + SvgCanvas::digit(series.style);
  if (e.low && e.high) {
    canvas.line(scale.place(*e.low), y, scale.place(*e.high), y, "whisker " + colour);
  }
  canvas.mark(series.style, scale.place(*e.value), y,
              series.name + ": " + change_text(e.value) + " " + range_text(e.low, e.high));
}

}  // namespace detail

/// `label_width`: room for the rows' labels.
inline std::string forest_svg(const std::vector<ForestSeries>& series,
                              const std::vector<ForestRow>& rows, const std::string& title,
                              const std::string& unit, double label_width = 34) {
  constexpr double width = 360, line = 10, gap = 8, legend = 18;
  const double row_height = line * static_cast<double>(series.size()) + gap;
  const double top = 6 + legend * static_cast<double>(series.size());
  const double bottom = top + row_height * static_cast<double>(rows.size());
  const std::vector<double> values = detail::forest_values(rows);
  const PlotScale scale(values, label_width + 4, width - 18, 40, spreads_widely(values) ? 1 : 0);
  SvgCanvas canvas(width, bottom + 40, title);
  for (std::size_t s = 0; s < series.size(); ++s) {
    detail::add_legend_entry(canvas, series[s].style, label_width + 4,
                             8 + legend * static_cast<double>(s), series[s].name);
  }
  for (const double tick : scale.ticks()) {
    const double x = scale.place(tick);
    canvas.line(x, top, x, bottom, tick == 0 ? "zero" : "grid");
    canvas.text(x, bottom + 14, "middle", detail::tick_text(tick));
  }
  canvas.text((label_width + width) / 2, bottom + 32, "middle", unit);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double y = top + row_height * static_cast<double>(r);
    canvas.text(label_width - 2, y + row_height / 2 + 4, "end", rows[r].label);
    for (std::size_t s = 0; s < rows[r].estimates.size() && s < series.size(); ++s) {
      detail::add_estimate(canvas, scale, series[s], rows[r].estimates[s],
                           y + gap / 2 + line * (static_cast<double>(s) + 0.5));
    }
  }
  return std::move(canvas).finish();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
