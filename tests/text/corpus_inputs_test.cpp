// Where corpora come from: folders, chosen fields, standard input; and texts in pieces.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/text/corpus.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> texts_of(const Corpus& corpus) {
  std::vector<std::string> result;
  for (const Document& document : corpus.documents) result.push_back(document.text());
  return result;
}

std::string message_with(const fs::path& path, const CorpusOptions& options) {
  try {
    read_corpus(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Standard input replaced by a file for the life of the object.
class StandardInput {
 public:
  explicit StandardInput(const fs::path& path) : before_(::dup(STDIN_FILENO)) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

}  // namespace

TEST_CASE("a folder is its files in the order of their paths, named by them") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "b/c");
  fs::create_directories(folder.path() / "d");
  write_bytes(folder / "b/c/2.txt", "two");
  write_bytes(folder / "b/1.jsonl",
              "{\"text\": \"one\"}\n{\"text\": \"more\", \"name\": \"own\"}\n");
  write_bytes(folder / "a.TXT", "zero");
  write_bytes(folder / "picture.png", "\xff");
  write_bytes(folder / "no-ending", "nothing");
  fs::create_directory_symlink(folder.path(), folder / "d/circle");
  fs::create_symlink(folder / "a.TXT", folder / "z.txt");
  const Corpus corpus = read_corpus(folder.path());
  CHECK(texts_of(corpus) == std::vector<std::string>{"zero", "one", "more", "two", "zero"});
  std::vector<std::string> names;
  for (const Document& document : corpus.documents) names.push_back(document.name);
  CHECK(names == std::vector<std::string>{"a.TXT", "b/1.jsonl:1", "own", "b/c/2.txt", "z.txt"});
  CHECK(corpus.documents[4].index == 4);
  CHECK(corpus.documents[1].source == (folder / "b/1.jsonl").string() + ", line 1");
}

TEST_CASE("a folder without texts, and one with an unusable file") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "inner");
  write_bytes(folder / "inner/picture.png", "x");
  CHECK(error_id([&] { read_corpus(folder.path()); }) == "corpus/empty-folder");
  write_bytes(folder / "inner/a.txt", "\xff");
  CHECK(message_with(folder.path(), {}).find("inner/a.txt, byte 0") != std::string::npos);
}

TEST_CASE("JSON lines with a chosen field") {
  const TemporaryFolder folder;
  write_bytes(
      folder / "a.jsonl",
      "{\"body\": \"one\", \"ids\": [1], \"meta\": {\"a/b\": [\"x\", {\"~\": \"deep\"}]}}\n");
  const auto text_at = [&](const std::string& field) {
    return read_corpus(folder / "a.jsonl", {.field = field}).documents.at(0).text();
  };
  CHECK(text_at("body") == "one");
  CHECK(text_at("/body") == "one");
  CHECK(text_at("/meta/a~1b/0") == "x");
  CHECK(text_at("/meta/a~1b/1/~0") == "deep");
  for (const char* field : {"text", "ids", "meta", "/", "/meta/a~1b/2", "/meta/a~1b/00",
                            "/meta/a~1b/-", "/meta/a~1b/18446744073709551617", "/body/0"}) {
    CAPTURE(field);
    CHECK(error_id([&] { text_at(field); }) == "corpus/json-line");
  }
  CHECK(error_id([&] { text_at("/a~2"); }) == "protocol/bad-field");
  CHECK(error_id([&] { text_at("/a~"); }) == "protocol/bad-field");
  const std::string message = message_with(folder / "a.jsonl", {.field = "content"});
  CHECK(message.find("a.jsonl, line 1") != std::string::npos);
  CHECK(message.find("'content'") != std::string::npos);
  CHECK(message.find("'body', 'ids', 'meta'") != std::string::npos);
}

TEST_CASE("random texts survive JSON lines") {
  RandomStream random(31);
  const TemporaryFolder folder;
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<std::string> texts = {"x"};
    for (std::uint64_t n = random.below(20); n-- > 0;) {
      texts.push_back(random_text(random, random.below(40)));
    }
    std::string bytes;
    for (const std::string& text : texts) bytes += Json{{"t", text}}.dump() + "\n";
    write_bytes(folder / "a.jsonl", bytes);
    CHECK(texts_of(read_corpus(folder / "a.jsonl", {.field = "t"})) == texts);
  }
}

TEST_CASE("standard input is a text like any other, once") {
  const TemporaryFolder folder;
  write_bytes(folder / "a", " = T = \n \n prose \n");
  {
    const StandardInput input(folder / "a");
    const Corpus corpus = read_corpus("-");
    CHECK(corpus.documents.at(0).name == "T");
    CHECK(corpus.documents.at(0).source == "standard input, line 1");
  }
  {
    write_bytes(folder / "b", "text\nx\n");
    const StandardInput input(folder / "b");
    CHECK(read_corpus("-", {.format = CorpusFormat::csv}).documents.at(0).name ==
          "standard input:2");
  }
  {
    const StandardInput input("/dev/null");
    CHECK(error_id([] { read_corpus("-"); }) == "corpus/empty");
  }
  {
    const StandardInput input(folder.path());
    CHECK(error_id([] { read_corpus("-"); }) == "file/is-a-folder");
  }
  const StandardInput input(folder / "a");
  CHECK(error_id([] { read_corpus("-", {.format = CorpusFormat::npy_ids}); }) ==
        "corpus/ids-not-plain");
  const std::vector<fs::path> twice = {"-", folder / "a", "-"};
  CHECK(error_id([&] { read_corpus(twice); }) == "protocol/standard-input-twice");
}

TEST_CASE("a pipe by its name is refused, not waited for") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe.txt").c_str(), 0600) == 0);
  CHECK(error_id([&] { read_corpus(folder / "pipe.txt"); }) == "file/not-regular");
}

TEST_CASE("text in pieces of any length is the text, and ends between characters") {
  RandomStream random(32);
  for (int trial = 0; trial < 200; ++trial) {
    const std::string text = random_text(random, random.below(60));
    TextSource source(std::make_unique<MemorySource>(text, 1 + random.below(5)), "memory",
                      1 + random.below(9));
    std::string all;
    if (random.below(2) == 0) CHECK(text.starts_with(source.peek(random.below(20))));
    for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
      CHECK(!first_invalid_utf8(piece));
      all += piece;
    }
    CHECK(all == text);
  }
}

TEST_CASE("the first fault's offset does not depend on the pieces") {
  RandomStream random(33);
  for (int trial = 0; trial < 300; ++trial) {
    std::string text = random_text(random, 1 + random.below(20));
    text.insert(random.below(text.size() + 1), 1, static_cast<char>(0x80 + random.below(128)));
    const auto fault = first_invalid_utf8(text);
    if (!fault) continue;
    TextSource source(std::make_unique<MemorySource>(text, 1 + random.below(3)), "memory", 4);
    std::string message;
    try {
      while (!source.next().empty()) {
      }
    } catch (const DataError& error) {
      message = error.what();
    }
    CHECK(message.find("memory, byte " + std::to_string(*fault) + ":") == 0);
  }
}

TEST_CASE("rows and articles of a text in pieces are those of the whole") {
  RandomStream random(34);
  const std::string pieces[] = {" = A = \n",     "\n",   " \n",  "prose\n", "= B =\n",
                                " = = C = = \n", "more", "\r\n", " = D"};
  for (int trial = 0; trial < 500; ++trial) {
    std::string text;
    for (std::uint64_t n = random.below(14); n-- > 0;) text += pieces[random.below(9)];
    std::vector<std::string> rows, expected;
    for_each_row(text, [&](const Row& row) { expected.emplace_back(row.text); });
    TextSource source(std::make_unique<MemorySource>(text, 1 + random.below(9)), "memory", 5);
    std::vector<WikitextArticle> articles;
    WikitextSplitter splitter(
        "memory", 1000, [&](WikitextArticle article) { articles.push_back(std::move(article)); });
    for_each_row(source, 1000, [&](const Row& row) {
      CHECK(row.number == static_cast<Index>(rows.size()));
      CHECK(text.substr(row.begin, row.text.size()) == row.text);
      rows.emplace_back(row.text);
      splitter.add(row);
    });
    splitter.finish();
    CHECK(rows == expected);
    std::string joined;
    for (const WikitextArticle& article : articles) joined += article.text;
    const std::size_t blank = text.size() - joined.size();
    CHECK(is_blank(text.substr(0, blank)));
    CHECK(text.substr(blank) == joined);
  }
}

TEST_CASE("documents beyond what may be held are refused with their place") {
  const TemporaryFolder folder;
  const CorpusOptions small{.largest_document = 20};
  write_bytes(folder / "a.txt", std::string(21, 'a'));
  CHECK(error_id([&] { read_corpus(folder / "a.txt", small); }) == "corpus/document-too-large");
  write_bytes(folder / "b.txt", std::string(20, 'a'));
  CHECK(read_corpus(folder / "b.txt", small).documents.size() == 1);
  write_bytes(folder / "c.raw", " = A = \n\nshort\n\n = B = \n\nprose of many words\n");
  CHECK(message_with(folder / "c.raw", {.largest_document = 25}).find("c.raw, line 5") !=
        std::string::npos);
}
