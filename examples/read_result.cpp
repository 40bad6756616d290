// Reads what `study sweep` has written, and names the layer whose MLP a linear map replaces best.
// Usage: read_result OUT/sweep.json (docs/results.md explains every key)
#include <iostream>

#include "wanamaker/io/json.hpp"
#include "wanamaker/report/result_view.hpp"

using namespace wanamaker;

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: read_result OUT/sweep.json\n";
    return 2;
  }
  // A view of a file that may come from anywhere: what is missing or null is nothing, what is of
  // another type is an error that names its place.
  const Json document = parse_json_file(argv[1]);
  const ResultView sweep(document, argv[1]);

  // A number is worth what its protocol is worth, so that comes first.
  std::cout << sweep["model"].text("name") << ", protocol " << sweep["protocol"].text("name")
            << ", " << sweep["baseline"].number("tokens").value_or(0) << " tokens, perplexity "
            << sweep["baseline"].number("perplexity").value_or(0) << "\n";
  double best = 0, best_layer = -1;
  for (const ResultView& layer : sweep.items("layers")) {
    for (const ResultView& variant : layer.items("variants")) {
      const auto cost = variant.number("delta_percent");
      const auto low = variant.number("ci_low_percent"), high = variant.number("ci_high_percent");
      if (variant.text("name") != "ridge" || !cost || !low || !high) continue;
      const double number = layer.number("layer").value_or(-1);
      std::cout << "layer " << number << ": the map changes perplexity by " << *cost << " % ["
                << *low << ", " << *high << "]\n";
      if (best_layer >= 0 && *cost >= best) continue;
      best = *cost;
      best_layer = number;
    }
  }
  if (best_layer < 0) {
    std::cerr << argv[1] << " has no layer with a linear map and its interval\n";
    return 1;
  }
  std::cout << "cheapest: layer " << best_layer << "\n";
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
