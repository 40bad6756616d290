// `study pretrain`: a tokenizer and a model from nothing, resumed byte for byte, and usable by the
// other commands.
#include <filesystem>
#include <string>

#include "program/study_process.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

#ifdef WANAMAKER_STUDY

/// Documents of a few words in random order.
void write_texts(const fs::path& folder) {
  const char* words[] = {"the ", "keeper ", "waited ", "at ", "harbour ", "while ", "rain\n"};
  wanamaker::RandomStream random(6);
  fs::create_directory(folder);
  for (int document = 0; document < 6; ++document) {
    std::string text;
    for (int i = 0; i < 400; ++i) text += words[random.below(7)];
    write_bytes(folder / (std::to_string(document) + ".txt"), text);
  }
}

std::string command(const fs::path& texts, const fs::path& out, const std::string& more,
                    const std::string& heads = "2") {
  return "pretrain --quick --quiet --threads 2 --width 16 --depth 1 --window 16 "
         "--vocabulary 280 --steps 8 --warm-up 2 --checkpoint-every 3 --report-tokens 400 --text " +
         quoted(texts) + " --out " + quoted(out) + " --heads " + heads + " " + more;
}

std::string results_of(const fs::path& out) {
  return read_bytes(out / "pretrain.json") + read_bytes(out / "pretrain.csv") +
         read_bytes(out / "pretrain.svg") + read_bytes(out / "model/model.safetensors") +
         read_bytes(out / "model/tokenizer.json");
}

#endif

}  // namespace

TEST_CASE("a model is trained, resumed byte for byte, and measured by the other commands") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path texts = folder / "texts", out = folder / "out";
  write_texts(texts);
  const Outcome trained = run_study(command(texts, out, ""));
  INFO(trained.errors);
  REQUIRE(trained.code == 0);
  const wanamaker::Json result = wanamaker::parse_json_file(out / "pretrain.json");
  CHECK(result.at("steps") == 8);
  CHECK(result.at("tokens") == 8 * 4 * 16);
  CHECK(result.at("held_out").at("documents").get<int>() >= 1);
  CHECK(result.at("held_out").at("bits_per_byte").get<double>() > 0);
  const std::string whole = results_of(out);

  // As after a crash behind step 6, with no more than its checkpoint.
  fs::rename(out / "checkpoints/checkpoint.previous.safetensors",
             out / "checkpoints/checkpoint.safetensors");
  check_refused(run_study(command(texts, out, "")), {"--resume", "training/checkpoint-exists"});
  CHECK(run_study(command(texts, out, "--resume")).code == 0);
  CHECK(results_of(out) == whole);
  check_refused(run_study(command(texts, out, "--resume --decay 0.2")),
                {"training/other-settings"});

  const fs::path measured = folder / "measured";
  CHECK(run_study("perplexity --quiet --backend eigen --model " + quoted(out / "model") +
                  " --text " + quoted(texts) + " --out " + quoted(measured))
            .code == 0);
  check_refused(run_study(command(texts, folder / "other", "", "3")), {"training/shape"});
#else
  MESSAGE("skipped: the study program is not built");
#endif
}
