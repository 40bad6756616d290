// The study program on texts in every form that people have them: the same ids from all of them,
// and what perplexity says of passages.
#include <filesystem>
#include <string>
#include <vector>

#include "program/study_process.hpp"
#include "testing.hpp"
#include "text/packing.hpp"
#include "wanamaker/io/json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

const fs::path embedded_model = fs::path(WANAMAKER_EXAMPLES_DATA) / "models/books-gpt2";

/// What `study tokenize ARGUMENTS` prints.
std::string token_lines(const std::string& arguments) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_study("tokenize --model " + quoted(embedded_model) + " " + arguments, folder / "ids");
  INFO("standard error: ", outcome.errors);
  CHECK(outcome.code == 0);
  return read_bytes(folder / "ids");
}

}  // namespace

TEST_CASE("one text as a file, a folder, packed, standard input, JSON lines, CSV: the same ids") {
  const TemporaryFolder folder;
  const std::string text = "He opened the door, and went in. \"Who is there?\"\n";
  fs::create_directories(folder / "texts/inner");
  write_bytes(folder / "texts/inner/a.txt", text);
  write_bytes(folder / "a.jsonl", wanamaker::Json{{"body", text}}.dump() + "\n");
  write_bytes(folder / "a.csv",
              "n,body\r\n1,\"He opened the door, and went in. "
              "\"\"Who is there?\"\"\n\"\r\n");
  const fs::path plain = folder / "texts/inner/a.txt";
  const std::string ids = token_lines("--text " + quoted(plain));
  CHECK(ids.starts_with("{\"ids\":["));
  CHECK(ids.ends_with("]}\n"));
  CHECK(token_lines("--text " + quoted(folder / "texts")) == ids);
  CHECK(token_lines("--text - <" + quoted(plain)) == ids);
  CHECK(token_lines("--field body --text " + quoted(folder / "a.jsonl")) == ids);
  CHECK(token_lines("--field /body --format jsonl --text - <" + quoted(folder / "a.jsonl")) == ids);
  CHECK(token_lines("--field body --text " + quoted(folder / "a.csv")) == ids);
  for (const Pack pack : packings()) {
    write_bytes(folder / "packed.txt.gz", pack(text));
    CHECK(token_lines("--text " + quoted(folder / "packed.txt.gz")) == ids);
    CHECK(token_lines("--text - <" + quoted(folder / "packed.txt.gz")) == ids);
  }
  CHECK(token_lines("--detokenise wikitext --text - <" + quoted(plain)) == ids);
}

TEST_CASE("perplexity of LAMBADA's form says how last words are predicted, and of which texts") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.jsonl",
              "{\"text\": \"He opened the door and went in the\"}\n"
              "{\"text\": \"She said nothing , and then went away\"}\n");
  const Outcome outcome =
      run_study("perplexity --quiet --threads 1 --format lambada --detokenise wikitext --model " +
                quoted(embedded_model) + " --text " + quoted(folder / "a.jsonl") + " --out " +
                quoted(folder / "out"));
  INFO("standard error: ", outcome.errors);
  REQUIRE(outcome.code == 0);
  const wanamaker::Json result = wanamaker::parse_json_file(folder / "out/perplexity.json");
  const wanamaker::Json& lambada = result.at("lambada");
  CHECK(lambada.at("passages") == 2);
  CHECK(lambada.at("last_word_accuracy").get<double>() <= 1);
  CHECK(lambada.at("last_word_perplexity").get<double>() > 1);
  CHECK(result.at("protocol").at("detokenisation") == "wikitext");
}
