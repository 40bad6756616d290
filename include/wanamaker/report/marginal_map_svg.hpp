// The map of marginal δ: a row for each layer, a column for each position, the token below it.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "wanamaker/report/routing_tables.hpp"
#include "wanamaker/report/svg_canvas.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Of a cell's colour: from a thousandth of a nat on, by the logarithm, full at one nat.
inline double delta_strength(double nats) {
  constexpr double least = 1e-3;
  return std::min(1.0, std::log1p(std::abs(nats) / least) / std::log1p(1 / least));
}

class MarginalMapPicture {
 public:
  MarginalMapPicture(const MarginalResult& result, std::span<const std::string> spellings)
      : result_(result), spellings_(spellings) {}

  std::string text() {
    const Index panels = (positions() + columns - 1) / columns;
    const double height = top + panel_height() * static_cast<double>(panels);
    svg_ = head(height);
    for (Index p = 0; p < panels; ++p) add_panel(p);
    return std::move(svg_) + "</svg>\n";
  }

 private:
  static constexpr Index columns = 60;
  static constexpr double left = 48, top = 62, cell = 11, labels = 66;

  Index positions() const { return static_cast<Index>(result_.map_positions.size()); }
  double panel_height() const { return cell * static_cast<double>(result_.layers.size()) + labels; }

  std::string head(double height) const {
    const std::string title =
        xml_text(result_.model.name + ": δ of single positions, to first order");
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 " + short_number(height) +
           "\" role=\"img\" aria-label=\"" + title + "\">\n<title>" + title +
           "</title>\n<style>\n"
           "svg { background: #fff; color: #222; font: 9px sans-serif }\n"
           "text { fill: currentColor } .big { font-size: 13px } .loss { fill: #d55e00 }\n"
           ".gain { fill: #0072b2 } .begin { stroke: currentColor; stroke-width: 1.2 }\n"
           "@media (prefers-color-scheme: dark) { svg { background: #161616; color: #ddd } }\n"
           "</style>\n<text class=\"big\" x=\"48\" y=\"22\" font-weight=\"bold\">" +
           title +
           "</text>\n<text class=\"big\" x=\"48\" y=\"42\">Orange: the linear map costs at this "
           "position alone; blue: it helps; full colour at 1 nat. Rows: layers.</text>\n";
  }

  void add_panel(Index panel) {
    const double y = top + panel_height() * static_cast<double>(panel);
    const Index first = panel * columns;
    const Index end = std::min(first + columns, positions());
    for (std::size_t l = 0; l < result_.layers.size(); ++l) {
      const double row = y + cell * static_cast<double>(l);
      svg_ += "<text x=\"42\" y=\"" + SvgCanvas::at(row + 9) + "\" text-anchor=\"end\">" +
              std::to_string(result_.layers[l].layer) + "</text>\n";
      for (Index i = first; i < end; ++i) add_cell(l, i, place_of(i), row);
    }
    const double below = y + cell * static_cast<double>(result_.layers.size());
    for (Index i = first; i < end; ++i) add_token(i, place_of(i), y, below);
  }

  static double place_of(Index i) { return left + cell * static_cast<double>(i % columns); }

  void add_cell(std::size_t l, Index i, double x, double y) {
    const MarginalLayer& layer = result_.layers[l];
    const double nats = layer.map[static_cast<std::size_t>(i)];
    svg_ += "<rect x=\"" + SvgCanvas::at(x) + "\" y=\"" + SvgCanvas::at(y) +
            "\" width=\"10\" height=\"10\" class=\"" + (nats > 0 ? "loss" : "gain") +
            "\" fill-opacity=\"" + short_number(std::round(100 * delta_strength(nats)) / 100) +
            "\"><title>layer " + std::to_string(layer.layer) + ", " + xml_text(token_of(i)) + ": " +
            signed_text(nats, 4) + " nats</title></rect>\n";
  }

  // Its token, upwards; a line where a window begins.
  void add_token(Index i, double x, double above, double below) {
    if (result_.map_positions[static_cast<std::size_t>(i)].place == 0) {
      svg_ += "<path class=\"begin\" d=\"M" + SvgCanvas::at(x - 0.5) + " " + SvgCanvas::at(above) +
              "V" + SvgCanvas::at(below + 4) + "\"/>\n";
    }
    svg_ += "<text transform=\"translate(" + SvgCanvas::at(x + 8) + " " + SvgCanvas::at(below + 4) +
            ") rotate(-90)\" text-anchor=\"end\">" + xml_text(token_of(i)) + "</text>\n";
  }

  std::string token_of(Index i) const {
    return token_label(result_.map_positions[static_cast<std::size_t>(i)].token, spellings_);
  }

  const MarginalResult& result_;
  std::span<const std::string> spellings_;
  std::string svg_{};
};

}  // namespace detail

/// The positions that the result kept δ of, as an SVG document; pointing at a cell shows its δ.
/// Empty where none were kept. `spellings`: by token id; ids stand for what is missing.
inline std::string marginal_map_svg(const MarginalResult& result,
                                    std::span<const std::string> spellings) {
  if (result.map_positions.empty()) return "";
  return detail::MarginalMapPicture(result, spellings).text();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
