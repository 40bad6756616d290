// Stretched rotary frequencies against those of transformers (tests/reference/rope_scaling.py).
#include "wanamaker/nn/rope_scaling.hpp"

#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/io/model_config.hpp"
#include "wanamaker/nn/positions.hpp"

using namespace wanamaker;
using wanamaker_test::all_close;

namespace {

Json llama_config(const Json& recorded) {
  Json rope = recorded.at("settings");
  rope["rope_theta"] = recorded.at("theta");
  return {{"model_type", "llama"},   {"vocab_size", 8},
          {"num_hidden_layers", 1},  {"num_attention_heads", 1},
          {"intermediate_size", 4},  {"max_position_embeddings", 8},
          {"rope_parameters", rope}, {"hidden_size", recorded.at("width")}};
}

}  // namespace

TEST_CASE("linear, llama3 and yarn give the frequencies of transformers") {
  const Json document =
      parse_json_file(std::string(WANAMAKER_SOURCE_DIR) + "/tests/reference/rope_scaling.json");
  REQUIRE(document.size() == 7);
  for (const Json& recorded : document) {
    CAPTURE(recorded.at("settings").dump());
    const ModelConfig c = model_config_from_json(llama_config(recorded), "config.json");
    const auto expected = recorded.at("frequencies").get<std::vector<double>>();
    const std::vector<double> angles =
        rotary_angles(2, c.rotary_width, c.rope_theta, c.rope_scaling.divisors);
    // Position 1's angles are the frequencies. A few roundings, and pow.
    const std::vector<double> frequencies(
        angles.begin() + static_cast<std::ptrdiff_t>(expected.size()), angles.end());
    CHECK(all_close(frequencies, expected, 1e-13, 0));
    CHECK(all_close(std::vector<double>{c.rope_scaling.magnitude},
                    std::vector<double>{recorded.at("magnitude").get<double>()}, 1e-15, 0));
  }
}

TEST_CASE("frequencies without divisors are plain") {
  const std::vector<double> plain = rotary_angles(3, 4, 100.0);
  CHECK(plain == rotary_angles(3, 4, 100.0, {1.0, 1.0}));
  CHECK(all_close(plain, std::vector<double>{0, 0, 1, 0.1, 2, 0.2}, 1e-15, 0));
  CHECK(all_close(rotary_angles(2, 4, 100.0, {2.0, 4.0}), std::vector<double>{0, 0, 0.5, 0.025},
                  1e-15, 0));
}
