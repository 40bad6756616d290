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

/// For plans: four layers.
std::string deep_command(const std::string& name, const fs::path& texts, const fs::path& out,
                         const std::string& more) {
  return name +
         " --quick --quiet --width 8 --depth 4 --heads 1 --window 16 --vocabulary 270 "
         "--steps 4 --warm-up 1 --checkpoint-every 2 --report-tokens 400 --text " +
         quoted(texts) + " --out " + quoted(out) + " " + more;
}

std::string budget_results(const fs::path& out, const std::string& command) {
  return read_bytes(out / (command + ".json")) + read_bytes(out / (command + ".csv")) +
         read_bytes(out / (command + "-losses.csv")) + read_bytes(out / (command + ".svg"));
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
  CHECK(run_study("perplexity --quiet --model " + quoted(out / "model") + " --text " +
                  quoted(texts) + " --out " + quoted(measured))
            .code == 0);
  check_refused(run_study(command(texts, folder / "other", "", "3")), {"training/shape"});
#else
  MESSAGE("skipped: the study program is not built");
#endif
}

TEST_CASE("a plan of MLPs is trained and measured; files have it where they can") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path texts = folder / "texts";
  write_texts(texts);
  const auto pretrain = [&](const std::string& plan, const std::string& out) {
    return run_study(deep_command("pretrain", texts, folder / out, "--mlp " + plan));
  };
  const Outcome mixed = pretrain("0:dense:20,1:affine,2:gated:8,3:hybrid:4", "mixed");
  INFO(mixed.errors);
  REQUIRE(mixed.code == 0);
  const wanamaker::Json result = wanamaker::parse_json_file(folder / "mixed" / "pretrain.json");
  CHECK(result.at("mlps") == "0:dense:20,1:affine,2:gated:8,3:hybrid:4");
  CHECK(result.at("gated").size() == 1);
  CHECK(result.at("held_out").at("perplexity").get<double>() > 1);
  CHECK_FALSE(fs::exists(folder / "mixed" / "model" / "model.safetensors"));

  // Without gates every plan has a file: unequal widths, maps, hybrids.
  for (const char* plan :
       {"0:dense:20,1:zero,2-3:dense:8", "0:hybrid:4,1:affine,2:low-rank:3,3:dense"}) {
    const std::string out = std::string("stock-") + plan[2];
    REQUIRE(pretrain(plan, out).code == 0);
    CHECK(run_study("perplexity --quiet --model " + quoted(folder / out / "model") + " --text " +
                    quoted(texts) + " --out " + quoted(folder / "measured"))
              .code == 0);
  }
  check_refused(pretrain("0:dens:20", "bad"), {"training/mlp-plan", "0:dens:20"});
  check_refused(pretrain("0:dense:?", "bad"), {"training/mlp-open"});
#else
  MESSAGE("skipped: the study program is not built");
#endif
}

TEST_CASE("budgets and twins are trained, resumed byte for byte, and reported") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path texts = folder / "texts", out = folder / "out", page = folder / "page";
  write_texts(texts);
  const std::string options =
      "--seeds 1,2 --resamples 100 --arms affine-middle,routed-middle --arm same=all:dense";
  const Outcome whole = run_study(deep_command("budgets", texts, out, options), page);
  INFO(whole.errors);
  REQUIRE(whole.code == 0);
  CHECK(read_bytes(page).starts_with("affine-middle at equal parameters and FLOPs: "));
  const wanamaker::Json result = wanamaker::parse_json_file(out / "budgets.json");
  CHECK(result.at("arms").size() == 5);
  CHECK(result.at("runs").size() == 10);
  for (const wanamaker::Json& c : result.at("comparisons")) {
    if (c.at("treated") == "same/trained") CHECK(c.at("delta_nats") == 0);
  }
  CHECK_FALSE(fs::exists(out / "budgets.state.json"));

  // A run that is ended by a file that it cannot write keeps its finished models.
  const fs::path again = folder / "again";
  fs::create_directories(again / "budgets.csv");
  CHECK(run_study(deep_command("budgets", texts, again, options)).code == 1);
  fs::remove(again / "budgets.csv");
  CHECK(run_study(deep_command("budgets", texts, again, options + " --resume --threads 1")).code ==
        0);
  CHECK((budget_results(again, "budgets") == budget_results(out, "budgets")));
  check_refused(run_study(deep_command("budgets", texts, folder / "bad", "--arm thin")),
                {"training/own-arm"});

  const std::string twins = "--seeds 1,2 --resamples 100 --fit-tokens 300 --keep-models";
  const Outcome paired = run_study(deep_command("twins", texts, out, twins), page);
  INFO(paired.errors);
  REQUIRE(paired.code == 0);
  CHECK(read_bytes(page).starts_with("sequential against parallel: "));
  CHECK(fs::exists(out / "models" / "sequential-seed-2" / "model.safetensors"));
  CHECK(run_study("report " + quoted(out)).code == 0);
  CHECK(read_bytes(out / "report.md").find("sequential against its parallel twin") !=
        std::string::npos);
#else
  MESSAGE("skipped: the study program is not built");
#endif
}
