// JSON: what is accepted and written again reads as the same document.
#include "wanamaker/io/json.hpp"

#include "fuzz/fuzzing.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

void read_json(std::string_view input) {
  const Json document = parse_json(input, "input");
  must_hold(parse_json(document.dump(), "written") == document, "another document once written");
}

std::vector<std::string> json_seeds() {
  return {R"({"a": [1, -2, 3.5e-3, true, null, "\u00e9\ud83d\ude00"], "b": {"c": {}}})",
          "[[[[\"\\n\"]]]]", "\xfe[\xff\x06", "[\xfe{},\xff\x0e{}]"};
}

const FuzzRegistration json_target({.name = "json",
                                    .read = read_json,
                                    .seeds = json_seeds,
                                    .bounds = {.memory_factor = 100}});  // two documents

}  // namespace
