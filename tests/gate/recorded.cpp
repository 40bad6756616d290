// In a file of its own, so that the JSON library is compiled once.
#include <fstream>

#include "gate/gate_testing.hpp"
#include "wanamaker/io/third_party/json.hpp"

namespace wanamaker_test {

std::vector<double> recorded(const std::vector<std::string>& path) {
  std::ifstream in(std::string(WANAMAKER_SOURCE_DIR) + "/tests/reference/gates.json");
  nlohmann::json value = nlohmann::json::parse(in);
  for (const std::string& key : path) value = nlohmann::json(value.at(key));
  if (value.is_number()) return {value.get<double>()};
  return value.get<std::vector<double>>();
}

}  // namespace wanamaker_test
