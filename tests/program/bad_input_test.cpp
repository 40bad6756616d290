// The study program on bad input, run as a user runs it: one clear line, exit code 1, whatever is
// wrong. Every case damages a copy of the small model that comes with the program.
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "program/study_process.hpp"
#include "testing.hpp"
#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/io/safetensors_writer.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

const fs::path whole_model = fs::path(WANAMAKER_EXAMPLES_DATA) / "models/books-gpt2";

/// A text, a copy of the model and a folder for results.
class Inputs {
 public:
  Inputs() {
    fs::create_directory(model());
    for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
      fs::copy_file(whole_model / file, model() / file);
    }
    fs::create_symlink(fs::absolute(whole_model / "model.safetensors"), weights());
    write_bytes(text(), "He opened the door and went in. She said nothing for a while.\n");
  }

  fs::path model() const { return folder_ / "model"; }
  fs::path weights() const { return model() / "model.safetensors"; }
  fs::path text() const { return folder_ / "text.txt"; }
  fs::path operator/(const std::string& name) const { return folder_ / name; }

  /// Measures perplexity on few tokens.
  Outcome perplexity(const std::string& options = "") const {
    return perplexity_into(folder_ / "out", options);
  }
  Outcome perplexity_into(const fs::path& out, const std::string& options = "") const {
    return run_study(perplexity_arguments(out) + options);
  }
  std::string perplexity_arguments(const fs::path& out) const {
    return "perplexity " + arguments(out);
  }
  /// Of any command that measures.
  std::string arguments(const fs::path& out) const {
    return "--quiet --threads 1 --model " + quoted(model()) + " --text " + quoted(text()) +
           " --out " + quoted(out) + " ";
  }

  /// Replaces the weights by damage(their bytes).
  template <class F>
  void damage_weights(F&& damage) {
    std::string bytes = read_bytes(weights());
    damage(bytes);
    fs::remove(weights());
    write_bytes(weights(), bytes);
  }
  /// Replaces the first `from` of a file; both of one length in a safetensors header.
  static void replace(std::string& bytes, const std::string& from, const std::string& to) {
    const std::size_t at = bytes.find(from);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, from.size(), to);
  }
  /// Gives a tensor other values, in float; the others keep theirs.
  void replace_tensor(const std::string& name, const std::vector<float>& values) {
    const auto file = wanamaker::SafetensorsFile::open(weights());
    std::vector<wanamaker::TensorToWrite> tensors;
    for (const auto& [other, info] : file.tensors()) {
      tensors.push_back({other, info.dtype, info.shape, file.bytes(other)});
      if (other == name) {
        tensors.back() = wanamaker::tensor_to_write<float>(name, values, info.shape);
      }
    }
    wanamaker::write_safetensors(weights(), tensors);
  }
  void replace_in(const std::string& file, const std::string& from, const std::string& to) {
    std::string bytes = read_bytes(model() / file);
    replace(bytes, from, to);
    write_bytes(model() / file, bytes);
  }

 private:
  TemporaryFolder folder_;
};

std::uint64_t header_size(const std::string& bytes) {
  std::uint64_t size = 0;
  for (std::size_t i = 8; i-- > 0;) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  return size;
}

}  // namespace

TEST_CASE("what the cases below damage is whole") {
  const Outcome outcome = Inputs().perplexity();
  INFO("standard error: ", outcome.errors);
  CHECK(outcome.code == 0);
}

TEST_CASE("weights cut short: in the header's length, in the header, in the data") {
  for (const std::size_t kept : {0u, 5u, 300u, 2000000u}) {
    CAPTURE(kept);
    Inputs inputs;
    inputs.damage_weights([&](std::string& bytes) { bytes.resize(kept); });
    check_refused(inputs.perplexity(), {"model.safetensors"});
  }
}

TEST_CASE("a header that lies about its length, an offset or the end of the file") {
  SUBCASE("its length") {
    Inputs inputs;
    inputs.damage_weights([](std::string& bytes) { bytes[6] = '\x7f'; });
    check_refused(inputs.perplexity(), {"model.safetensors"});
  }
  SUBCASE("an offset, so that tensors overlap") {
    Inputs inputs;
    inputs.damage_weights(
        [](std::string& bytes) { Inputs::replace(bytes, "[1152,222336]", "[1150,222334]"); });
    check_refused(inputs.perplexity(), {"model.safetensors"});
  }
  SUBCASE("bytes that belong to no tensor") {
    Inputs inputs;
    inputs.damage_weights([](std::string& bytes) { bytes += "more"; });
    check_refused(inputs.perplexity(), {"model.safetensors"});
  }
  SUBCASE("no JSON") {
    Inputs inputs;
    inputs.damage_weights([](std::string& bytes) { bytes[8] = '?'; });
    check_refused(inputs.perplexity(), {"model.safetensors"});
  }
}

TEST_CASE("tensors that are missing, of another shape, or of an unknown type") {
  SUBCASE("missing") {
    Inputs inputs;
    inputs.damage_weights([](std::string& bytes) {
      Inputs::replace(bytes, "transformer.h.0.attn.c_attn.bias",
                      "transformer.h.0.attn.c_attn.bass");
    });
    check_refused(inputs.perplexity(), {"model.safetensors", "transformer.h.0.attn.c_attn.bias"});
  }
  SUBCASE("of another shape") {
    Inputs inputs;
    inputs.damage_weights([](std::string& bytes) {
      Inputs::replace(bytes, "\"shape\":[192,576]", "\"shape\":[576,192]");
    });
    check_refused(inputs.perplexity(), {"transformer.h.0.attn.c_attn.weight", "576", "192"});
  }
  SUBCASE("of an unknown type") {
    Inputs inputs;
    inputs.damage_weights([](std::string& bytes) { Inputs::replace(bytes, "\"F16\"", "\"Q16\""); });
    check_refused(inputs.perplexity(), {"model.safetensors", "Q16"});
  }
}

TEST_CASE("a weight that is not a number, or that float16 could not hold when the file was made") {
  const auto check_second_weight = [](const char* bits, const std::string& shown) {
    Inputs inputs;
    inputs.damage_weights([bits](std::string& bytes) {
      bytes.replace(8 + static_cast<std::size_t>(header_size(bytes)) + 2, 2, bits, 2);
    });
    check_refused(inputs.perplexity(),
                  {"transformer.h.0.attn.c_attn.bias", "element 1", shown, "finite"});
  };
  check_second_weight("\x01\x7e", "NaN");
  check_second_weight("\x00\x7c", "inf");
}

TEST_CASE("--check-finite names where activations overflow; it changes no result") {
  Inputs inputs;
  REQUIRE(inputs.perplexity().code == 0);
  const std::string result = read_bytes(inputs / "out/perplexity.json");
  CHECK(inputs.perplexity("--check-finite").code == 0);
  CHECK(read_bytes(inputs / "out/perplexity.json") == result);

  const std::string name = "transformer.h.2.mlp.c_proj.bias";
  inputs.replace_tensor(name, std::vector<float>(192, 3e38f));
  const std::string residual = "transformer.h.2.attn.c_proj.bias";
  inputs.replace_tensor(residual, std::vector<float>(192, 3e38f));
  check_refused(inputs.perplexity("--check-finite"),
                {"layer 3, residual stream, row 0, column 0", "numeric/non-finite-activation"});
  fs::remove(inputs.text());  // a sweep needs more documents
  fs::copy_file(fs::path(WANAMAKER_EXAMPLES_DATA) / "narrative.txt", inputs.text());
  check_refused(run_study("sweep --check-finite --truncate 40 --fit-tokens 1000 --gate-tokens 800 "
                          "--select-tokens 400 --report-tokens 400 " +
                          inputs.arguments(inputs / "sweep")),
                {"layer 3, residual stream", "numeric/non-finite-activation"});
}

TEST_CASE("texts that are empty, not UTF-8, a folder, or not there") {
  Inputs inputs;
  SUBCASE("empty") {
    write_bytes(inputs.text(), "");
    check_refused(inputs.perplexity(), {"text.txt"});
  }
  SUBCASE("not UTF-8, with the place of the first wrong byte") {
    write_bytes(inputs.text(), std::string(1000, 'a') + "\xc3(");
    check_refused(inputs.perplexity(), {"text.txt", "1000", "UTF-8"});
  }
  SUBCASE("a folder") {
    fs::remove(inputs.text());
    fs::create_directory(inputs.text());
    check_refused(inputs.perplexity(), {"text.txt"});
  }
  SUBCASE("not there") {
    fs::remove(inputs.text());
    check_refused(inputs.perplexity(), {"text.txt"});
  }
}

TEST_CASE("texts that are packed badly, a pipe, an empty folder, or twice standard input") {
  Inputs inputs;
  const auto tokenize = [&](const std::string& arguments) {
    return run_study("tokenize --model " + quoted(inputs.model()) + " " + arguments);
  };
  const auto refuse_file = [&](const std::string& name, const std::string& bytes,
                               std::vector<std::string> parts, const std::string& options = "") {
    write_bytes(inputs / name, bytes);
    parts.push_back(name);
    check_refused(tokenize("--text " + quoted(inputs / name) + " " + options), parts);
  };
  using namespace std::string_literals;
#if WANAMAKER_HAS_ZLIB
  SUBCASE("gzip cut short") {
    refuse_file("cut.txt.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b"s,
                {"byte 11", "end early"});
  }
#else
  SUBCASE("gzip without its library") {
    refuse_file("a.txt.gz", "\x1f\x8b\x08"s, {"gzip", "zlib1g-dev"});
  }
#endif
#if WANAMAKER_HAS_ZSTD
  SUBCASE("a zstd frame that is none") {
    refuse_file("bad.txt.zst",
                "\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s,
                {"byte", "corrupt"});
  }
#else
  SUBCASE("zstd without its library") {
    refuse_file("a.txt.zst", "\x28\xb5\x2f\xfd"s, {"zstd", "libzstd-dev"});
  }
#endif
  SUBCASE("other compression") {
    refuse_file("a.txt.xz",
                "\xfd"
                "7zXZ\0"s,
                {"xz", "gzip or zstd"});
  }
  SUBCASE("CSV with a quote that is never closed, or without the column") {
    refuse_file("quote.csv", "text\nfine\n\"never\nclosed\n", {"line 3", "closing quote"});
    refuse_file("column.csv", "title,body\na,b\n", {"'text'", "'title', 'body'", "--field"});
    refuse_file("fields.csv", "title,text\na,b\nc\n", {"line 3", "expected 2", "found 1"});
  }
  SUBCASE("JSON lines without the field") {
    refuse_file("a.jsonl", "{\"body\": \"a\"}\n{\"text\": \"b\"}\n", {"line 2", "'body'", "'text'"},
                "--field body");
    check_refused(tokenize("--field /a~b --text " + quoted(inputs / "a.jsonl")), {"--field", "~0"});
  }
  SUBCASE("a pipe, which must not be waited for") {
    REQUIRE(mkfifo((inputs / "pipe.txt").c_str(), 0600) == 0);
    check_refused(tokenize("--text " + quoted(inputs / "pipe.txt")), {"pipe.txt", "a pipe"});
  }
  SUBCASE("a folder without texts") {
    fs::create_directory(inputs / "folder");
    check_refused(tokenize("--text " + quoted(inputs / "folder")), {"folder", ".jsonl"});
  }
  SUBCASE("standard input: twice, empty, a folder, not UTF-8") {
    check_refused(tokenize("--text - - </dev/null"), {"--text -", "once"});
    check_refused(tokenize("--text - </dev/null"), {"standard input", "empty"});
    check_refused(tokenize("--text - <" + quoted(inputs.model())), {"standard input"});
    write_bytes(inputs / "bytes", "good \xff");
    check_refused(tokenize("--text - <" + quoted(inputs / "bytes")), {"standard input, byte 5"});
  }
  SUBCASE("with a published protocol, which leaves texts as they are") {
    check_refused(run_study("sweep --protocol paper-rows --detokenise wikitext --quiet --model " +
                            quoted(inputs.model()) + " --text " + quoted(inputs.text()) +
                            " --out " + quoted(inputs / "out")),
                  {"--detokenise", "paper-rows"});
  }
}

TEST_CASE("a model that is not there, is no folder, has no tokenizer, no weights or no config") {
  Inputs inputs;
  SUBCASE("not there") {
    fs::remove_all(inputs.model());
    check_refused(inputs.perplexity(), {"model"});
  }
  SUBCASE("no folder") {
    fs::remove_all(inputs.model());
    write_bytes(inputs.model(), "no model");
    check_refused(inputs.perplexity(), {"model"});
  }
  SUBCASE("no config") {
    fs::remove(inputs.model() / "config.json");
    check_refused(inputs.perplexity(), {"config.json"});
  }
  SUBCASE("no tokenizer") {
    fs::remove(inputs.model() / "tokenizer.json");
    check_refused(inputs.perplexity(), {"tokenizer.json"});
  }
  SUBCASE("no weights") {
    fs::remove(inputs.weights());
    check_refused(inputs.perplexity(), {"model.safetensors"});
  }
  SUBCASE("a folder where the weights should be") {
    fs::remove(inputs.weights());
    fs::create_directory(inputs.weights());
    check_refused(inputs.perplexity(), {"model.safetensors"});
  }
  SUBCASE("a configuration that is no JSON") {
    write_bytes(inputs.model() / "config.json", "{");
    check_refused(inputs.perplexity(), {"config.json"});
  }
  SUBCASE("a setting that is not implemented") {
    inputs.replace_in("config.json", "\"gelu_new\"", "\"mish\"");
    check_refused(inputs.perplexity(), {"config.json", "mish"});
  }
}

TEST_CASE("a window longer than the model's positions") {
  check_refused(Inputs().perplexity("--window 257"), {"--window", "256", "257"});
}

TEST_CASE("a tokenizer of another model") {
  SUBCASE("larger than the model, though the text has none of the tokens beyond") {
    Inputs inputs;
    inputs.replace_in("config.json", "\"vocab_size\": 4096", "\"vocab_size\": 4095");
    check_refused(inputs.perplexity(), {"model", "at most 4095", "4096", "tokenizer"});
  }
  SUBCASE("ready ids that the model does not have") {
    Inputs inputs;
    write_bytes(inputs / "ids.jsonl", "{\"ids\": [1, 2, 4096]}\n");
    check_refused(
        run_study("perplexity --quiet --threads 1 --model " + quoted(inputs.model()) + " --text " +
                  quoted(inputs / "ids.jsonl") + " --out " + quoted(inputs / "out")),
        {"ids.jsonl", "token 2", "below 4096"});
  }
}

TEST_CASE("results that cannot be written: a file for a folder, a full device") {
  SUBCASE("a file where the folder should be") {
    Inputs inputs;
    write_bytes(inputs / "out", "");
    check_refused(inputs.perplexity(), {"out"});
  }
  SUBCASE("a folder in which nothing may be created") {
    check_refused(Inputs().perplexity_into("/proc/wanamaker"), {"/proc/wanamaker"});
  }
  SUBCASE("standard output is full") {
    if (!fs::exists("/dev/full")) return;
    const Inputs inputs;
    const Outcome outcome = run_study(
        "tokenize --quiet --model " + quoted(inputs.model()) + " --text " + quoted(inputs.text()),
        "/dev/full");
    check_refused(outcome, {"standard output"});
  }
  SUBCASE("the disk is full when results are written") {
    // What a program sees of it, made by a limit on the size of files, which holds for root too.
    const Inputs inputs;
    const Outcome outcome = run_study(inputs.perplexity_arguments(inputs / "out"), "/dev/null",
                                      "trap '' XFSZ; ulimit -f 1; ");
    check_refused(outcome, {"perplexity.json", "cannot write"});
    CHECK(fs::is_empty(inputs / "out"));
  }
}
