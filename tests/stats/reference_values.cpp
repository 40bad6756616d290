// In a file of its own, so that the JSON library is compiled once.
#include "stats/reference_values.hpp"

#include <fstream>

#include "wanamaker/io/third_party/json.hpp"

namespace wanamaker_test {

std::vector<double> recorded(const std::string& group, const std::string& key) {
  std::ifstream in(std::string(WANAMAKER_SOURCE_DIR) + "/tests/reference/stats.json");
  const nlohmann::json value = nlohmann::json::parse(in).at(group).at(key);
  if (value.is_number()) return {value.get<double>()};
  return value.get<std::vector<double>>();
}

}  // namespace wanamaker_test
