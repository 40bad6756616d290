// `study generate` as a user runs it, on a small model that comes with the program.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/report/side_by_side.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;
using wanamaker::Json;

struct Written {
  int code = -1;
  std::string output;
  std::string errors;
  Json result;
};

/// Runs `study generate` with books-neox; `input` is its standard input.
Written generate(const std::string& options, const std::string& input = "") {
  const TemporaryFolder folder;
  const auto quoted = [](const fs::path& path) { return "'" + path.string() + "'"; };
  const fs::path data = WANAMAKER_EXAMPLES_DATA;
  write_bytes(folder / "input", input);
  const std::string command = quoted(WANAMAKER_STUDY) + " generate --quiet --threads 1 --model " +
                              quoted(data / "models/books-neox") + " --text " +
                              quoted(data / "narrative.txt") + " --out " + quoted(folder / "out") +
                              " " + options + " <" + quoted(folder / "input") + " >" +
                              quoted(folder / "output") + " 2>" + quoted(folder / "errors");
  const int status = std::system(command.c_str());
  Written written{WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
                  read_bytes(folder / "output"),
                  read_bytes(folder / "errors"),
                  {}};
  const fs::path json = folder / "out/generate.json";
  if (fs::exists(json)) written.result = Json::parse(read_bytes(json));
  return written;
}

const std::string few_tokens =
    " --fit-tokens 400 --gate-tokens 300 --select-tokens 200 --report-tokens 200 --truncate 40 "
    "--rho 1e-3 ";

void check_refused(const Written& written, int code, const std::string& part) {
  INFO("standard error: ", written.errors);
  CHECK(written.code == code);
  CHECK(written.errors.find(part) != std::string::npos);
  CHECK(written.result.is_null());
}

}  // namespace

// The ids are those of transformers 5.24.0 (torch 2.15.0), generate(do_sample=False) in float32.
TEST_CASE("greedy writing gives the ids that transformers gives, streams them, and keeps them") {
  const std::vector<int> expected{14,   199,  199, 2,   41,  804, 500, 221,  552, 502, 324,
                                  1778, 990,  280, 418, 474, 397, 262, 2160, 12,  408, 373,
                                  299,  1050, 301, 199, 83,  506, 280, 301,  259, 579};
  const std::string text =
      ".\n\n\"I don't  know what you're going to do,\" said the doctor, \"and I'll be\nsure to be "
      "a "
      "little";
  const Written w = generate("--prompt 'He opened the door' --tokens 32 --temperature 0");
  INFO("standard error: ", w.errors);
  REQUIRE(w.code == 0);
  CHECK(w.output.find("He opened the door" + text + "\n") == 0);
  CHECK(w.result["prompt"] == "He opened the door");
  CHECK(w.result["prompt_ids"] == Json({741, 1979, 262, 1015}));
  REQUIRE(w.result["texts"].size() == 1);
  const Json& written = w.result["texts"][0];
  CHECK(written["name"] == "original");
  CHECK(written["ids"] == expected);
  CHECK(written["text"] == text);
  CHECK(written["stop"] == "tokens");
  CHECK(written["positions"] == 35);
  CHECK(w.result["common_tokens"].is_null());
  CHECK(w.result["options"]["replace"] == "none");
}

TEST_CASE("the prompt may come from a file or from standard input") {
  const TemporaryFolder folder;
  write_bytes(folder / "prompt", "He opened the door\n");
  const std::string options = " --tokens 6 --seed 3";
  const Written named = generate("--prompt 'He opened the door'" + options);
  REQUIRE(named.code == 0);
  const Written from_file =
      generate("--prompt-file '" + (folder / "prompt").string() + "'" + options);
  const Written from_input = generate(options, "He opened the door\r\n");
  CHECK(from_file.result == named.result);
  CHECK(from_input.result == named.result);
  CHECK(generate("--prompt 'He opened the door' --tokens 6 --seed 4").result["texts"][0]["ids"] !=
        named.result["texts"][0]["ids"]);
}

TEST_CASE("a changed model writes beside the original, within 80 columns") {
  const std::string options = "--prompt 'He opened the door' --tokens 20 --seed 1 ";
  const Written alone = generate(options);
  for (const std::string replacement : {"rank-8", "gate-logistic"}) {
    const Written w =
        generate(options + few_tokens + "--layers 2,4 --beside --replace " + replacement);
    INFO("standard error: ", w.errors);
    REQUIRE(w.code == 0);
    const Json& texts = w.result["texts"];
    REQUIRE(texts.size() == 2);
    CHECK(texts[0] == alone.result["texts"][0]);
    CHECK(texts[1]["name"] == replacement);
    CHECK(texts[1]["layers"].size() == 2);
    CHECK(texts[1]["layers"][1]["layer"] == 4);
    CHECK(w.result["fit"]["tokens"] > 0);
    CHECK(w.output.find(" | " + replacement + " in layers 2, 4\n") != std::string::npos);
    const std::vector<std::string> lines = wanamaker::wrapped(w.output, 10000);
    CHECK(std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
      return wanamaker::detail::columns_of(line) < 80;
    }));
    const std::size_t common = w.result["common_tokens"];
    for (std::size_t i = 0; i < common; ++i) CHECK(texts[0]["ids"][i] == texts[1]["ids"][i]);
    if (common < 20) CHECK(texts[0]["ids"][common] != texts[1]["ids"][common]);
  }
}

TEST_CASE("--layers alone puts linear maps there; zero needs no texts") {
  const Written ridge = generate("--prompt 'He' --tokens 2 --layers 3" + few_tokens);
  REQUIRE(ridge.code == 0);
  CHECK(ridge.result["options"]["replace"] == "ridge");
  CHECK(ridge.result["texts"].size() == 1);
  const Written zero = generate("--prompt 'He' --tokens 2 --replace zero --text /nowhere");
  REQUIRE(zero.code == 0);
  CHECK(zero.result["texts"][0]["fraction_linear"] == 1);
}

TEST_CASE("what cannot be written on is refused in one line") {
  check_refused(generate("--prompt ''"), 1, "data/empty-prompt");
  check_refused(generate(""), 1, "data/empty-prompt");
  std::string long_text;
  for (int i = 0; i < 3000; ++i) long_text += "the door ";
  check_refused(generate("", long_text), 1, "protocol/prompt-too-long");
  check_refused(generate("", "caf\xe9"), 1, "text/invalid-utf8");
  check_refused(generate("--prompt-file /nowhere"), 1, "file/missing");
  check_refused(generate("--prompt He --tokens 0"), 1, "protocol/no-tokens");
  check_refused(generate("--prompt He --temperature=-1"), 1, "protocol/sampling");
  check_refused(generate("--prompt He --top-p 2"), 1, "protocol/sampling");
  check_refused(generate("--prompt He --replace zero --layers 99"), 1, "protocol/no-such-layer");
  check_refused(generate("--prompt He --replace none --beside"), 1, "protocol/nothing-beside");
  check_refused(generate("--text -", "He"), 1, "protocol/standard-input-twice");
  check_refused(generate("--prompt He --replace nothing"), 2, "--replace");
  check_refused(generate("--prompt He --prompt-file also"), 2, "--prompt");
}
