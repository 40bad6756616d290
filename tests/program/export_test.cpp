// `study export` and `study verify` as a user runs them, on the small models that come with the
// program.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "program/study_process.hpp"
#include "wanamaker/io/json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

#ifdef WANAMAKER_STUDY

std::string export_command(const std::string& model, const fs::path& out, const std::string& more) {
  const fs::path data = WANAMAKER_EXAMPLES_DATA;
  return "export --quiet --threads 1 --model " + quoted(data / "models" / model) + " --text " +
         quoted(data / "narrative.txt") + " --out " + quoted(out) +
         " --fit-tokens 400 --gate-tokens 300 --select-tokens 200 --report-tokens 200 "
         "--truncate 40 --rho 1e-3 --layers 3 " +
         more;
}

// The numbers of the file's second half change their signs.
void damage(const fs::path& path) {
  std::string bytes = read_bytes(path);
  for (std::size_t i = bytes.size() / 2; i < bytes.size(); i += 4) {
    bytes[i + 3] = static_cast<char>(bytes[i + 3] ^ 0x80);
  }
  write_bytes(path, bytes);
}

/// Whether another runtime agrees, by a script of tests/reference, where the environment variable
/// names a Python that has it.
bool peer_agrees(const char* variable, const char* script, const fs::path& model) {
  const char* python = std::getenv(variable);
  if (python == nullptr) {
    MESSAGE("not compared by " << script << ": " << variable << " names no Python");
    return true;
  }
  const fs::path path = fs::path(WANAMAKER_SOURCE_DIR) / "tests/reference" / script;
  return std::system((quoted(python) + " " + quoted(path) + " " + quoted(model)).c_str()) == 0;
}

#endif

}  // namespace

TEST_CASE("an exported model is verified, measured, and told from a damaged one") {
#ifdef WANAMAKER_STUDY
  for (const char* name : {"books-gpt2", "books-neox"}) {
    CAPTURE(std::string(name));
    const TemporaryFolder folder;
    const fs::path out = folder / "out", model = out / "model";
    const Outcome exported = run_study(export_command(name, out, "--gguf"));
    INFO(exported.errors);
    REQUIRE(exported.code == 0);
    const wanamaker::Json result = wanamaker::parse_json_file(out / "export.json");
    CHECK(result.at("layers") == wanamaker::Json({3}));
    CHECK(result.at("options").at("replace") == "ridge");
    CHECK(result.at("check").at("tokens") == 63);
    // In float: some hundred roundings of activations of about 100.
    CHECK(result.at("check").at("largest_difference").get<double>() < 1e-3);
    CHECK(fs::exists(model / "tokenizer.json"));
    CHECK(run_study("verify --threads 1 " + quoted(model)).code == 0);
    CHECK(peer_agrees("WANAMAKER_TRANSFORMERS", "exported_model.py", model));
    CHECK(peer_agrees("WANAMAKER_LLAMA_CPP", "exported_gguf.py", model));
    const std::string text = quoted(fs::path(WANAMAKER_EXAMPLES_DATA) / "narrative.txt");
    CHECK(run_study("perplexity --quiet --threads 1 --truncate 20 --report-tokens 200 --text " +
                    text + " --model " + quoted(model) + " --out " + quoted(folder / "p"))
              .code == 0);
    damage(model / "model.safetensors");
    check_refused(run_study("verify --threads 1 " + quoted(model)), {"check/mismatch"});
  }
#endif
}

TEST_CASE("a model with gates is verified, and told from one whose gates were damaged") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path model = folder / "out" / "model";
  const Outcome exported =
      run_study(export_command("books-gpt2", folder / "out", "--replace gate-logistic"));
  INFO(exported.errors);
  REQUIRE(exported.code == 0);
  CHECK(run_study("verify --threads 1 " + quoted(model)).code == 0);
  damage(model / "wanamaker_gates.safetensors");
  check_refused(run_study("verify --threads 1 " + quoted(model)), {"check/mismatch"});
#endif
}

TEST_CASE("gates that files have no form for are refused, as is a folder that is no export") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  CHECK(
      run_study(export_command("books-gpt2", folder / "out", "--replace gate-bottleneck-3")).code ==
      2);
  const fs::path model = fs::path(WANAMAKER_EXAMPLES_DATA) / "models/books-gpt2";
  check_refused(run_study("verify " + quoted(model)), {"wanamaker_check.json", "file/"});
#endif
}
