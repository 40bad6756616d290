// Points and lines over two axes.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "wanamaker/report/plot_scale.hpp"
#include "wanamaker/report/report_text.hpp"
#include "wanamaker/report/svg_canvas.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Points of one colour and mark.
struct PlotSeries {
  std::string name{};
  std::vector<double> x{};
  std::vector<double> y{};  ///< as many; points that are not finite are left out
  SeriesStyle style = 0;
  bool joined = true;               ///< by lines, in the order given
  bool marked = true;               ///< with a mark at every point
  std::vector<std::string> hints{}; /**< of points, shown by a pointer; may be fewer */
};

/// Axis labels name the unit.
struct PlotFrame {
  std::string title{};
  std::string x{};
  std::string y{};
  double width = 360;
  double height = 240;  ///< legend not included
  bool legend = true;
  bool has_zero = true;  ///< the y axis holds 0
  double even_to = 0;    ///< y runs evenly up to here and by its logarithm beyond; 0: as it spreads
};

namespace detail {

inline std::vector<double> plotted(const std::vector<PlotSeries>& series,
                                   std::vector<double> PlotSeries::*axis) {
  std::vector<double> values;
  for (const PlotSeries& s : series) {
    values.insert(values.end(), (s.*axis).begin(), (s.*axis).end());
  }
  return values;
}

inline void add_series(SvgCanvas& canvas, const PlotSeries& s, const PlotScale& x,
                       const PlotScale& y) {
  std::string steps;
  for (std::size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i) {
    if (!std::isfinite(s.x[i]) || !std::isfinite(s.y[i])) continue;
    steps += (steps.empty() ? "M" : "L") + SvgCanvas::at(x.place(s.x[i])) + " " +
             SvgCanvas::at(y.place(s.y[i]));
  }
  if (s.joined && !steps.empty()) canvas.path(steps, "curve s" + SvgCanvas::digit(s.style));
  for (std::size_t i = 0; s.marked && i < std::min(s.x.size(), s.y.size()); ++i) {
    if (!std::isfinite(s.x[i]) || !std::isfinite(s.y[i])) continue;
    canvas.mark(s.style, x.place(s.x[i]), y.place(s.y[i]), i < s.hints.size() ? s.hints[i] : "");
  }
}

}  // namespace detail

inline std::string line_plot_svg(const std::vector<PlotSeries>& series, const PlotFrame& frame) {
  const double legend = frame.legend ? 18 * static_cast<double>(series.size()) : 0;
  const double top = legend + 22, left = 52, right = frame.width - 10;
  const double bottom = legend + frame.height - 40;
  std::vector<double> heights = detail::plotted(series, &PlotSeries::y);
  if (frame.has_zero) heights.push_back(0);
  const PlotScale x(detail::plotted(series, &PlotSeries::x), left, right, 42);
  const double even_to = frame.even_to > 0 ? frame.even_to : spreads_widely(heights) ? 1 : 0;
  const PlotScale y(heights, bottom, top, 22, even_to);
  SvgCanvas canvas(frame.width, legend + frame.height, frame.title);
  for (std::size_t s = 0; frame.legend && s < series.size(); ++s) {
    detail::add_legend_entry(canvas, series[s].style, left, 10 + 18 * static_cast<double>(s),
                             series[s].name, series[s].joined, series[s].marked);
  }
  canvas.text(left, legend + 14, "start", frame.title, "title");
  for (const double tick : y.ticks()) {
    canvas.line(left, y.place(tick), right, y.place(tick), tick == 0 ? "zero" : "grid");
    canvas.text(left - 5, y.place(tick) + 4, "end", detail::tick_text(tick));
  }
  for (const double tick : x.ticks()) {
    canvas.text(x.place(tick), bottom + 15, "middle", detail::tick_text(tick));
  }
  canvas.text((left + right) / 2, bottom + 33, "middle", frame.x);
  canvas.side_text(12, (top + bottom) / 2, frame.y);
  for (const PlotSeries& s : series) detail::add_series(canvas, s, x, y);
  return std::move(canvas).finish();
}

/// The names of series and how they are drawn, as a picture of its own.
inline std::string legend_svg(const std::vector<PlotSeries>& series) {
  SvgCanvas canvas(360, 18 * static_cast<double>(series.size()) + 4, "legend");
  for (std::size_t s = 0; s < series.size(); ++s) {
    detail::add_legend_entry(canvas, series[s].style, 4, 10 + 18 * static_cast<double>(s),
                             series[s].name, series[s].joined, series[s].marked);
  }
  return std::move(canvas).finish();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
