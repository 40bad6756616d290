// study plan as a user runs it.
#include <string>

#include "program/study_process.hpp"

namespace {

using namespace wanamaker_test;
namespace fs = std::filesystem;

const fs::path planned_model = fs::path(WANAMAKER_EXAMPLES_DATA) / "models" / "books-neox";

}  // namespace

TEST_CASE("study plan needs the settings alone and says what each experiment would take") {
  const TemporaryFolder folder;
  fs::copy_file(planned_model / "config.json", folder / "config.json");
  const fs::path printed = folder / "printed";
  const std::string devices = " --gpus 8 --memory 0.001";
  for (const std::string& options : {std::string(" --window 64"), devices}) {
    const std::string model = quoted(folder / "config.json");
    const Outcome outcome = run_study("plan --model " + model + options, printed);
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    const std::string text = read_bytes(printed);
    for (const char* part : {"6 layers of width 192", "perplexity", "sweep --ladder full",
                             "gate-curve", "bounded by"}) {
      INFO("looked for: ", part);
      CHECK(text.find(part) != std::string::npos);
    }
    const bool fits = text.find("it does not fit") == std::string::npos;
    CHECK(fits == (options != devices));
  }
}

TEST_CASE("study plan refuses what it cannot plan") {
  check_refused(run_study("plan --gpus 1 --model /no/such/model"), {"file/missing"});
  check_refused(run_study("plan --gpus 1 --layers 9 --model " + quoted(planned_model)),
                {"protocol/no-such-layer"});
  CHECK(run_study("plan --gpus 1 --efficiency 2").code == 2);
}
