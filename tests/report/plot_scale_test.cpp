// Axes keep the order of values, hold all of them, and label without overlap.
#include "wanamaker/report/plot_scale.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "testing.hpp"
#include "wanamaker/report/line_plot_svg.hpp"

TEST_CASE("an axis is monotone, holds its values and labels with room between") {
  using wanamaker::PlotScale;
  const std::vector<double> values = {-0.4, 0, 0.02, 3, 17, 22780, std::nan("")};
  for (const double even_to : {0.0, 0.1, 1.0}) {
    const PlotScale scale(values, 20, 340, 40, even_to);
    double before = 0;
    for (const double v : {-0.4, 0.0, 0.02, 3.0, 17.0, 22780.0}) {
      CHECK(scale.place(v) > before);
      before = scale.place(v);
    }
    CHECK(before < 340);
    CHECK(scale.place(std::numeric_limits<double>::max()) <= 340);
    const std::vector<double> ticks = scale.ticks();
    REQUIRE(ticks.size() >= 2);
    for (std::size_t i = 1; i < ticks.size(); ++i) {
      CHECK(scale.place(ticks[i]) - scale.place(ticks[i - 1]) >= 0.5 * 40);
    }
  }
}

TEST_CASE("an axis without values, or with one, is an axis still") {
  for (const std::vector<double>& values : {std::vector<double>{}, {5.0}, {0.0, 0.0}}) {
    const wanamaker::PlotScale scale(values, 200, 20, 22, 1);
    CHECK(std::isfinite(scale.place(5)));
    CHECK(!wanamaker::PlotScale(values, 200, 20, 22).ticks().empty());
  }
}

TEST_CASE("points that are not finite are left out of a plot") {
  const double nan = std::nan("");
  const std::string svg = wanamaker::line_plot_svg(
      {{.name = "a <b>", .x = {1, nan, 3}, .y = {1, 2, nan}}}, {.title = "t", .x = "x", .y = "y"});
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("a &lt;b&gt;") != std::string::npos);
}
