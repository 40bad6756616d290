// The report in a headless browser, at a telephone's and a desk's width, light and dark. Skipped,
// with a message, where no browser is installed.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "planted_results.hpp"
#include "testing.hpp"
#include "wanamaker/report/study_report.hpp"

namespace {

namespace fs = std::filesystem;

/// What a command prints.
std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), n);
  }
  pclose(pipe);
  return text;
}

std::string installed_browser() {
  const std::string found =
      output_of("command -v chromium || command -v chromium-browser || command -v google-chrome");
  return found.substr(0, found.find('\n'));
}

/// A page that holds the report in a frame of the given width and writes down how it lies there:
/// the width that it takes, pictures, the least height of their letters in pixels, pictures without
/// height, cells of tables wider than the frame outside a box that scrolls, and the background.
std::string measuring_page(const std::string& report, int width) {
  return "<!DOCTYPE html><meta name=\"color-scheme\" content=\"light dark\"><body>"
         "<iframe id=\"page\" style=\"border:0;width:" +
         std::to_string(width) + "px;height:900px\" srcdoc=\"" + wanamaker::html_text(report) +
         R"js("></iframe><p id="measured"></p><script>
addEventListener('load', () => {
  const inside = document.getElementById('page').contentDocument;
  let letters = 1000, flat = 0;
  const pictures = inside.querySelectorAll('svg');
  for (const picture of pictures) {
    if (picture.getBoundingClientRect().height < 10) ++flat;
    const scale = picture.getBoundingClientRect().width / picture.viewBox.baseVal.width;
    letters = Math.min(letters, scale * parseFloat(getComputedStyle(picture).fontSize));
  }
  let outside = 0;
  for (const text of inside.querySelectorAll('svg text')) {
    const box = text.getBoundingClientRect();
    const frame = text.ownerSVGElement.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1) ++outside;
  }
  const back = getComputedStyle(inside.documentElement).backgroundColor.match(/\d+/g);
  document.getElementById('measured').textContent = ['measured',
    inside.documentElement.scrollWidth, pictures.length, Math.round(10 * letters), flat, outside,
    back[0]].join(' ');
});
</script></body>)js";
}

struct Measured {
  int width = -1, pictures = 0, tenths_of_letters = 0, flat = -1, outside = -1, red = -1;
};

Measured measure(const std::string& browser, const std::string& report, int width, bool dark) {
  const wanamaker_test::TemporaryFolder folder;
  wanamaker_test::write_bytes(folder / "page.html", measuring_page(report, width));
  const std::string profile = (folder / "profile").string();
  const std::string dom =
      output_of("timeout 120 '" + browser +
                "' --headless --no-sandbox --disable-gpu --no-first-run --disable-extensions "
                "--user-data-dir='" +
                profile + "' --window-size=1280,1000 --virtual-time-budget=5000 " +
                (dark ? "--blink-settings=preferredColorScheme=0 " : "") + "--dump-dom 'file://" +
                (folder / "page.html").string() + "' 2>/dev/null");
  const std::size_t at = dom.find("measured\">measured ");
  Measured m;
  if (at == std::string::npos) return m;
  std::istringstream(dom.substr(at + 19)) >> m.width >> m.pictures >> m.tenths_of_letters >>
      m.flat >> m.outside >> m.red;
  return m;
}

}  // namespace

TEST_CASE("the report fits a telephone and a desk, light and dark") {
  const std::string browser = installed_browser();
  if (browser.empty()) {
    MESSAGE("no browser is installed: the report was not looked at");
    return;
  }
  const std::string report =
      wanamaker::html_page(wanamaker::study_report({wanamaker_test::planted_model(12)}));
  for (const int width : {360, 1100}) {
    const bool dark = width == 360;
    const Measured m = measure(browser, report, width, dark);
    CAPTURE(width);
    if (m.width < 0) {
      MESSAGE("the browser did not run here: the report was not looked at");
      return;
    }
    CHECK(m.width <= width);  // nothing makes the page scroll sideways
    CHECK(m.pictures > 12);
    CHECK(m.tenths_of_letters >= 90);  // letters of 9 pixels or more
    CHECK(m.flat == 0);
    CHECK(m.outside == 0);  // no label is cut off
    CHECK((m.red < 60) == dark);
  }
}
