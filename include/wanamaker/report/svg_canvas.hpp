// Shapes and texts of a picture inside an HTML page, whose style sheet has the colours (classes s0
// to s5 for series, `grid`, `zero`, `faint`).
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "wanamaker/report/curve_svg.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How a series is drawn; of equal colours and marks there are six.
using SeriesStyle = int;

/// A picture that shapes are added to; every text is escaped.
class SvgCanvas {
 public:
  SvgCanvas(double width, double height, std::string_view title) {
    const std::string name = detail::xml_text(title);
    svg_ = "<svg class=\"plot\" viewBox=\"0 0 " + at(width) + " " + at(height) +
           "\" role=\"img\" aria-label=\"" + name + "\">\n";
  }

  void text(double x, double y, std::string_view anchor, std::string_view text,
            std::string_view css_class = "") {
    svg_ += "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\"";
    if (anchor != "start") svg_ += " text-anchor=\"" + std::string(anchor) + "\"";
    svg_ += classes(css_class) + ">" + detail::xml_text(text) + "</text>\n";
  }
  /// Upwards.
  void side_text(double x, double y, std::string_view text) {
    svg_ += "<text transform=\"translate(" + at(x) + " " + at(y) +
            ") rotate(-90)\" text-anchor=\"middle\">" + detail::xml_text(text) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, std::string_view css_class) {
    svg_ += "<path d=\"M" + at(x1) + " " + at(y1) + "L" + at(x2) + " " + at(y2) + "\"" +
            classes(css_class) + "/>\n";
  }
  void path(const std::string& steps, std::string_view css_class) {
    svg_ += "<path d=\"" + steps + "\"" + classes(css_class) + "/>\n";
  }
  /// A filled cell; `strength` from 0 to 1.
  void cell(double x, double y, double width, double height, double strength,
            std::string_view css_class) {
    svg_ += "<rect x=\"" + at(x) + "\" y=\"" + at(y) + "\" width=\"" + at(width) + "\" height=\"" +
            at(height) + "\" fill-opacity=\"" +
            detail::short_number(std::round(100 * strength) / 100) + "\"" + classes(css_class) +
            "/>\n";
  }
  /// A point of a series, its shape told apart without colours. `hint` is shown by a pointer.
  void mark(SeriesStyle style, double x, double y, std::string_view hint = "") {
    svg_ += "<path d=\"" + shape(style, x, y) + "\" class=\"mark s" + digit(style) + "\"";
    svg_ += hint.empty() ? "/>\n" : "><title>" + detail::xml_text(hint) + "</title></path>\n";
  }

  static std::string at(double value) {
    return detail::short_number(std::round(10 * value) / 10 + 0.0);
  }
  static std::string digit(SeriesStyle style) { return std::to_string(style % 6); }

  std::string finish() && { return std::move(svg_) + "</svg>\n"; }

 private:
  static std::string classes(std::string_view names) {
    return names.empty() ? "" : " class=\"" + std::string(names) + "\"";
  }

  static std::string shape(SeriesStyle style, double x, double y) {
    const std::string from = "M" + at(x) + " " + at(y);
    switch (style % 6) {
      case 0:  // circle
        return from + "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z";
      case 1:  // square
        return from + "m-3.2 -3.2h6.4v6.4h-6.4z";
      case 2:  // diamond
        return from + "m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z";
      case 3:  // triangle
        return from + "m0 -4.2l4.4 7.6h-8.8z";
      case 4:  // triangle, point down
        return from + "m0 4.2l4.4 -7.6h-8.8z";
      default:  // bar
        return from + "m-1.5 -4.5h3v9h-3z";
    }
  }

  std::string svg_;
};

namespace detail {

/// A row of the legend: mark, line and name.
inline void add_legend_entry(SvgCanvas& canvas, SeriesStyle style, double x, double y,
                             std::string_view name, bool joined = true, bool marked = true) {
  if (joined) canvas.line(x, y, x + 22, y, "curve s" + SvgCanvas::digit(style));
  if (marked) canvas.mark(style, x + 11, y);
  canvas.text(x + 28, y + 4, "start", name);
}

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
