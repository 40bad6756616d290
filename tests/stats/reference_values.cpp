// In a file of its own, so that the JSON library is compiled once.
#include "stats/reference_values.hpp"

#include <fstream>

#include "wanamaker/io/third_party/json.hpp"

namespace wanamaker_test {

namespace {

std::vector<double> recorded_in(const std::string& file, const std::string& group,
                                const std::string& key) {
  std::ifstream in(std::string(WANAMAKER_SOURCE_DIR) + "/tests/reference/" + file);
  const nlohmann::json value = nlohmann::json::parse(in).at(group).at(key);
  if (value.is_number()) return {value.get<double>()};
  return value.get<std::vector<double>>();
}

}  // namespace

std::vector<double> recorded(const std::string& group, const std::string& key) {
  return recorded_in("stats.json", group, key);
}
std::vector<double> recorded_structure(const std::string& group, const std::string& key) {
  return recorded_in("stats_structure.json", group, key);
}

}  // namespace wanamaker_test
