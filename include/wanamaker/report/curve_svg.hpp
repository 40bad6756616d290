// Curves as an SVG picture: axes with units, colours and dashes that can be told apart without
// seeing colours, light and dark by the reader's setting.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Points joined by lines, in the order given; a point that is not finite breaks the line.
struct Curve {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;  ///< as many as x; what one has more is left out
};

/// What the picture says besides the curves. Axis labels name the unit.
struct CurveLabels {
  std::string title;
  std::string x;
  std::string y;
};

namespace detail {

/// A text inside XML: markup replaced, control characters by spaces.
inline std::string xml_text(std::string_view text) {
  constexpr std::string_view marks = "&<>\"";
  constexpr std::string_view names[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
  std::string result;
  for (const char c : text) {
    const std::size_t mark = marks.find(c);
    if (mark != marks.npos) {
      result += names[mark];
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

/// Six significant digits at most, without trailing zeros.
inline std::string short_number(double value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6);
  return std::string(digits, end.ptr);
}

/// What an axis shows: [low, high], with ticks at multiples of `step` = 1, 2 or 5 times a power of
/// ten.
struct Axis {
  double low = 0, high = 1, step = 0.2;
  double begin = 0, end = 1;  ///< places of low and high in the picture

  double place(double value) const { return begin + (value - low) / (high - low) * (end - begin); }
  std::vector<double> ticks() const {
    std::vector<double> values;
    const double first = std::ceil(low / step - 1e-9) + 0.0;  // no negative zero
    for (double n = first; n * step <= high + 1e-9 * step; n += 1) values.push_back(n * step);
    return values;
  }
};

/// About so many ticks as `intervals`.
inline Axis axis_of(double low, double high, double begin, double end, double intervals = 8) {
  if (!(low <= high)) low = 0, high = 1;
  if (low == high) low -= 0.5, high += 0.5;
  const double rough = (high - low) / intervals;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
  return {low, high, step, begin, end};
}

class CurvePicture {
 public:
  static constexpr double width = 720, height = 400;

  CurvePicture(const std::vector<Curve>& curves, const CurveLabels& labels)
      : curves_(curves), labels_(labels) {
    double x[] = {infinity, -infinity}, y[] = {infinity, -infinity};
    for_each_point([&](const Curve&, double a, double b) {
      x[0] = std::min(x[0], a), x[1] = std::max(x[1], a);
      y[0] = std::min(y[0], b), y[1] = std::max(y[1], b);
    });
    const double margin = y[0] < y[1] ? 0.05 * (y[1] - y[0]) : 0;
    x_ = axis_of(x[0], x[1], left, width - 20);
    if (is_counted_along_x()) x_.step = std::max(1.0, x_.step);
    y_ = axis_of(y[0] - margin, y[1] + margin, height - 60, top);
  }

  std::string text() const {
    std::string svg = head();
    for (const double tick : y_.ticks()) add_row(svg, tick);
    for (const double tick : x_.ticks()) {
      add_text(svg, x_.place(tick), height - 42, "middle", short_number(tick));
    }
    add_text(svg, (left + width - 20) / 2, height - 14, "middle", labels_.x);
    svg += "<text transform=\"translate(18 " + short_number((top + height - 60) / 2) +
           ") rotate(-90)\" text-anchor=\"middle\">" + xml_text(labels_.y) + "</text>\n";
    for (std::size_t i = 0; i < curves_.size(); ++i) add_curve(svg, i);
    if (curves_.size() > 1) add_legend(svg);
    return svg + "</svg>\n";
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr double left = 80, top = 44;
  // Okabe & Ito 2008: told apart with every kind of colour vision; then by dashes.
  static constexpr std::array<std::string_view, 6> colours = {"#0072b2", "#d55e00", "#009e73",
                                                              "#cc79a7", "#e69f00", "#56b4e9"};
  static constexpr std::array<std::string_view, 4> dashes = {"none", "8 4", "2 4", "12 4 2 4"};

  template <class F>
  void for_each_point(F&& f) const {
    for (const Curve& curve : curves_) {
      for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
        if (std::isfinite(curve.x[i]) && std::isfinite(curve.y[i]))
          f(curve, curve.x[i], curve.y[i]);
      }
    }
  }

  // Layers and steps have no halves.
  bool is_counted_along_x() const {
    bool all = true;
    for_each_point([&](const Curve&, double x, double) { all = all && x == std::floor(x); });
    return all;
  }

  // Below the picture, so that it hides no curve.
  double legend_height() const {
    constexpr double line = 18;
    return curves_.size() > 1 ? line * static_cast<double>((curves_.size() + 1) / 2) : 0;
  }

  std::string head() const {
    const std::string title = xml_text(labels_.title);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 " +
           short_number(height + legend_height()) + "\" role=\"img\" aria-label=\"" + title +
           "\">\n<title>" + title +
           "</title>\n<style>\n"
           "svg { background: #fff; color: #222; font: 13px sans-serif }\n"
           "text { fill: currentColor } .grid { stroke: currentColor; opacity: 0.15 }\n"
           ".curve { fill: none; stroke-width: 1.8 }\n"
           "@media (prefers-color-scheme: dark) { svg { background: #161616; color: #ddd } }\n"
           "</style>\n<text x=\"80\" y=\"26\" font-weight=\"bold\">" +
           title + "</text>\n";
  }

  static void add_text(std::string& svg, double x, double y, std::string_view anchor,
                       std::string_view text) {
    svg += "<text x=\"" + short_number(x) + "\" y=\"" + short_number(y) + "\" text-anchor=\"" +
           std::string(anchor) + "\">" + xml_text(text) + "</text>\n";
  }

  void add_row(std::string& svg, double tick) const {
    const std::string y = short_number(y_.place(tick));
    svg += "<line class=\"grid\" x1=\"80\" x2=\"700\" y1=\"" + y + "\" y2=\"" + y + "\"/>\n";
    add_text(svg, left - 8, y_.place(tick) + 4, "end", short_number(tick));
  }

  static std::string stroke(std::size_t i) {
    return "stroke=\"" + std::string(colours[i % colours.size()]) + "\" stroke-dasharray=\"" +
           std::string(dashes[i % dashes.size()]) + "\"";
  }

  void add_curve(std::string& svg, std::size_t i) const {
    const Curve& curve = curves_[i];
    std::string path;
    bool pen_down = false;
    for (std::size_t p = 0; p < std::min(curve.x.size(), curve.y.size()); ++p) {
      const bool shown = std::isfinite(curve.x[p]) && std::isfinite(curve.y[p]);
      if (shown) {
        path += (pen_down ? "L" : "M") + short_number(x_.place(curve.x[p])) + " " +
                short_number(y_.place(curve.y[p]));
      }
      pen_down = shown;
    }
    svg += "<path class=\"curve\" " + stroke(i) + " d=\"" + path + "\"><title>" +
           xml_text(curve.name) + "</title></path>\n";
    constexpr std::size_t few = 64;
    if (curve.x.size() <= few) add_points(svg, i);
  }

  void add_points(std::string& svg, std::size_t i) const {
    const Curve& curve = curves_[i];
    for (std::size_t p = 0; p < std::min(curve.x.size(), curve.y.size()); ++p) {
      if (!std::isfinite(curve.x[p]) || !std::isfinite(curve.y[p])) continue;
      svg += "<circle r=\"2.5\" cx=\"" + short_number(x_.place(curve.x[p])) + "\" cy=\"" +
             short_number(y_.place(curve.y[p])) + "\" fill=\"" +
             std::string(colours[i % colours.size()]) + "\"/>\n";
    }
  }

  void add_legend(std::string& svg) const {
    for (std::size_t i = 0; i < curves_.size(); ++i) {
      const double x = i % 2 == 0 ? left : left + 320;
      const double y = height + 4 + 18 * static_cast<double>(i / 2);
      svg += "<line x1=\"" + short_number(x) + "\" x2=\"" + short_number(x + 30) + "\" y1=\"" +
             short_number(y - 4) + "\" y2=\"" + short_number(y - 4) + "\" stroke-width=\"1.8\" " +
             stroke(i) + "/>\n";
      add_text(svg, x + 38, y, "start", curves_[i].name);
    }
  }

  const std::vector<Curve>& curves_;
  const CurveLabels& labels_;
  Axis x_;
  Axis y_;
};

}  // namespace detail

/// The picture as an SVG document; the same curves give the same bytes. Several curves get a
/// legend. Text that is not UTF-8 is the caller's fault.
inline std::string curve_svg(const std::vector<Curve>& curves, const CurveLabels& labels) {
  return detail::CurvePicture(curves, labels).text();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
