// `study progressive`, `two-phase` and `control` on a tiny model: results and their files, resumed
// byte for byte, and refusals.
#include <filesystem>
#include <string>

#include "program/study_process.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

#ifdef WANAMAKER_STUDY

/// Documents of a few words in random order, as JSON lines.
std::string tuning_documents(int documents, int words, std::uint64_t seed) {
  const char* vocabulary[] = {"the ", "keeper ", "waited ", "at ", "harbour ", "while ", "rain "};
  wanamaker::RandomStream random(seed);
  std::string lines;
  for (int d = 0; d < documents; ++d) {
    lines += R"({"text": ")";
    for (int i = 0; i < words; ++i) lines += vocabulary[random.below(7)];
    lines += "fell\"}\n";
  }
  return lines;
}

/// A folder with texts and a model of one head and two layers.
struct TuningFolder {
  TuningFolder() {
    write_bytes(folder / "texts.jsonl", tuning_documents(24, 40, 3));
    write_bytes(folder / "other.jsonl", tuning_documents(4, 40, 4));
    write_bytes(folder / "passages.jsonl", tuning_documents(6, 6, 5));
    const Outcome made = run_study(
        "pretrain --quick --quiet --threads 1 --width 8 --depth 2 --heads 1 --window 32 "
        "--vocabulary 270 --steps 2 --warm-up 1 --report-tokens 300 --text " +
        quoted(folder / "texts.jsonl") + " --out " + quoted(folder / "made"));
    INFO(made.errors);
    REQUIRE(made.code == 0);
  }

  std::string arguments(const std::string& command, const fs::path& out,
                        const std::string& more = "", const std::string& window = "16") const {
    return command + " --train-window " + window +
           " --quiet --batch 2 --warm-up 1 --learning-rate 0.01 "
           "--resamples 100 --train-tokens 2000 --fit-tokens 1500 --select-tokens 500 "
           "--report-tokens 500 --seeds 1,2 --model " +
           quoted(folder / "made/model") + " --text " + quoted(folder / "texts.jsonl") +
           " --other-text " + quoted(folder / "other.jsonl") + " --lambada " +
           quoted(folder / "passages.jsonl") + " --out " + quoted(out) + " " +
           (command == "two-phase" ? "" : "--between-steps 1 --final-steps 2 ") +
           (command == "progressive" ? "" : "--adapt-steps 2 --gate-steps 2 ") + more;
  }

  TemporaryFolder folder;
};

std::string results_of(const fs::path& out, const std::string& command) {
  return read_bytes(out / (command + ".json")) + read_bytes(out / (command + ".csv")) +
         read_bytes(out / (command + "-losses.csv")) + read_bytes(out / (command + ".svg"));
}

/// As if the run had stopped before these parts were stored.
void forget_parts(const fs::path& state, const std::string& begin) {
  wanamaker::Json stored = wanamaker::parse_json_file(state);
  wanamaker::Json kept = wanamaker::Json::object();
  for (const auto& [name, part] : stored.at("parts").items()) {
    if (!name.starts_with(begin)) kept[name] = part;
  }
  CHECK(kept.size() < stored.at("parts").size());
  stored["parts"] = kept;
  write_bytes(state, stored.dump());
}

#endif

}  // namespace

TEST_CASE("fine-tuning commands print the verdict first and resume byte for byte") {
#ifdef WANAMAKER_STUDY
  const TuningFolder tuning;
  const fs::path out = tuning.folder / "out", page = tuning.folder / "page";
  const Outcome whole = run_study(tuning.arguments("control", out), page);
  INFO(whole.errors);
  REQUIRE(whole.code == 0);
  const std::string printed = read_bytes(page);
  const std::string first = printed.substr(0, printed.find('\n'));
  CHECK(first.find("progressive/final: better than its controls: ") != first.npos);
  CHECK(first.find("baseline kept within 1.0 %: ") != first.npos);
  const wanamaker::Json result = wanamaker::parse_json_file(out / "control.json");
  CHECK(result.at("verdicts").size() == 3);
  CHECK(result.at("texts").size() == 4);
  for (const wanamaker::Json& comparison : result.at("comparisons")) {
    CHECK(comparison.at("seed_delta_nats").size() == 2);
    CHECK(comparison.at("accuracy").is_null() == (comparison.at("text") != "last-words"));
  }
  CHECK_FALSE(fs::exists(out / "control.state.json"));

  // A run that is ended by a file that it cannot write keeps its finished arms.
  const fs::path again = tuning.folder / "again";
  fs::create_directories(again / "control.csv");
  CHECK(run_study(tuning.arguments("control", again)).code == 1);
  fs::remove(again / "control.csv");
  forget_parts(again / "control.state.json", "joint");
  check_refused(run_study(tuning.arguments("control", again, "--resume --sparsity 0.5")),
                {"protocol/other-settings"});
  CHECK(run_study(tuning.arguments("control", again, "--resume --threads 1")).code == 0);
  const bool is_same = results_of(again, "control") == results_of(out, "control");
  CHECK(is_same);
#else
  MESSAGE("skipped: the study program is not built");
#endif
}

TEST_CASE("each fine-tuning command runs by itself; impossible ones are refused") {
#ifdef WANAMAKER_STUDY
  const TuningFolder tuning;
  for (const std::string command : {"progressive", "two-phase"}) {
    CAPTURE(command);
    const fs::path out = tuning.folder / command, model = out / (command + "-model");
    const Outcome run =
        run_study(tuning.arguments(command, out, "--layers 1 --order cost --export"));
    INFO(run.errors);
    CHECK(run.code == 0);
    CHECK(fs::exists(model / "tokenizer.json"));
    CHECK(fs::exists(model / "wanamaker_gates.safetensors") == (command == "two-phase"));
    const Outcome verified = run_study("verify --threads 1 " + quoted(model));
    INFO(verified.errors);
    CHECK(verified.code == 0);
    const wanamaker::Json result = wanamaker::parse_json_file(out / (command + ".json"));
    CHECK(result.at("options").at("layers").size() == 1);
  }
  const auto refused = [&](const std::string& more, const std::string& id,
                           const std::string& window = "16") {
    const fs::path out = tuning.folder / "refused";
    check_refused(run_study(tuning.arguments("progressive", out, more, window)), {id});
  };
  refused("--seeds 4,4", "finetune/seeds");
  refused("--layers 2", "protocol/no-such-layer");
  refused("", "protocol/window-too-long", "64");
  CHECK(run_study("two-phase --between-steps 3").code == 2);
#else
  MESSAGE("skipped: the study program is not built");
#endif
}
