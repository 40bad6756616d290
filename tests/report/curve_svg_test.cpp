// Curves as pictures: where the points are, the axes' ticks, and texts that look like markup.
#include "wanamaker/report/curve_svg.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "testing.hpp"

namespace {

using namespace wanamaker;

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

std::string path_of(const std::string& svg) {
  const std::size_t begin = svg.find(" d=\"") + 4;
  return svg.substr(begin, svg.find('"', begin) - begin);
}

}  // namespace

TEST_CASE("points lie where the axes say") {
  const std::string svg = curve_svg({{"loss", {0, 50, 100}, {2, 1, 0}}}, {"t", "step", "nats"});
  // x from 80 to 700; y from 340 (−0.1) to 44 (2.1).
  CHECK(path_of(svg) == "M80 57.4545L390 192L700 326.545");
  CHECK(count_of(svg, "<path") == 1);
  CHECK(svg.find(">nats<") != svg.npos);
  CHECK(svg.find(">step<") != svg.npos);
  CHECK(svg.find(">100<") != svg.npos);
  CHECK(svg.find(">0.5<") != svg.npos);
  CHECK(svg.find("prefers-color-scheme: dark") != svg.npos);
}

TEST_CASE("what is counted has no ticks between whole numbers, and a single point is seen") {
  const std::string layers = curve_svg({{"a", {3, 4}, {0, 1}}}, {"t", "layer", "y"});
  CHECK(layers.find(">3<") != layers.npos);
  CHECK(layers.find(">3.5<") == layers.npos);
  CHECK(layers.find(">3.2<") == layers.npos);
  CHECK(count_of(curve_svg({{"a", {3}, {1}}}, {"t", "layer", "y"}), "<circle") == 1);
}

TEST_CASE("ticks are round numbers inside the axis") {
  const auto ticks = [](double low, double high) {
    return detail::axis_of(low, high, 0, 1).ticks();
  };
  CHECK(ticks(0, 6) == std::vector<double>{0, 1, 2, 3, 4, 5, 6});
  CHECK(ticks(-0.4, 0.9).size() >= 4);
  CHECK(ticks(3, 3).size() >= 3);
  for (const double tick : ticks(1234, 56789)) CHECK(std::fmod(tick, 10000) == 0);
}

TEST_CASE("the tick at zero has no sign") {
  const std::vector<double> ticks = detail::axis_of(-0.1, 2.1, 0, 1).ticks();
  REQUIRE(ticks.front() == 0);
  CHECK(!std::signbit(ticks.front()));
}

TEST_CASE("points that are not finite break a line; no points give an empty picture") {
  const std::string svg = curve_svg({{"a", {0, 1, 2, 3}, {0, NAN, 1, 1}}}, {"t", "x", "y"});
  CHECK(count_of(path_of(svg), "M") == 2);
  CHECK(count_of(path_of(svg), "L") == 1);
  CHECK(curve_svg({}, {"t", "x", "y"}).find("</svg>") != std::string::npos);
  CHECK(path_of(curve_svg({{"a", {}, {}}}, {"t", "x", "y"})).empty());
}

TEST_CASE("texts stay texts, and several curves are named and look different") {
  const std::string svg =
      curve_svg({{"<b>&\"", {0, 1}, {0, 1}}, {"other", {0, 1}, {1, 2}}}, {"a < b", "x", "y\n"});
  CHECK(svg.find("<b>") == svg.npos);
  CHECK(count_of(svg, "&lt;b&gt;&amp;&quot;") == 2);  // at the curve and in the legend
  CHECK(svg.find("a &lt; b") != svg.npos);
  CHECK(count_of(svg, "stroke=\"#0072b2\"") == 2);
  CHECK(count_of(svg, "stroke=\"#d55e00\"") == 2);
  CHECK(count_of(svg, "<circle") == 4);
  CHECK(svg.find("viewBox=\"0 0 720 418\"") != svg.npos);  // with a line for the legend
  CHECK(count_of(svg, "stroke-dasharray=\"8 4\"") == 2);
}
