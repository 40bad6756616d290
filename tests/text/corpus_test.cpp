// Corpora: each format, what tells them apart, rows, and refusals with their places.
#include "wanamaker/text/corpus.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/io/npy.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Ids = std::vector<TokenId>;

template <class Word>
std::string bytes_of(const std::vector<Word>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(Word)};
}

std::vector<std::string> names(const Corpus& corpus) {
  std::vector<std::string> result;
  for (const Document& document : corpus.documents) result.push_back(document.name);
  return result;
}

std::string joined(const Corpus& corpus) {
  std::string text;
  for (const Document& document : corpus.documents) text += document.text();
  return text;
}

std::string message_of(const std::filesystem::path& path, const CorpusOptions& options = {}) {
  try {
    read_corpus(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::string article_text =
    " \n = Alpha = \n \n First prose . \n \n = = Section = = \n \n = x + 1 = \n More prose . \n \n"
    " = Beta = \n \n Second . \n";

}  // namespace

TEST_CASE("titles are those of top-level headings only") {
  CHECK(wikitext_title(" = Robert Boulter = \n") == "Robert Boulter");
  CHECK(wikitext_title("= A =") == "A");
  CHECK(wikitext_title(" = E = mc2 = \r\n") == "E = mc2");
  for (const char* line : {" = = Career = = ", "== A ==", " = = = 2000 = = = ", "= =", "=", "",
                           " = ", " = A", "A = ", "=A=", " prose = prose "}) {
    CAPTURE(line);
    CHECK(!wikitext_title(line));
  }
}

TEST_CASE("wikitext by hand: prose that looks like a heading is none") {
  const std::vector<WikitextArticle> articles = split_wikitext(article_text);
  REQUIRE(articles.size() == 2);
  CHECK(articles[0].title == "Alpha");
  CHECK(articles[0].line == 1);
  CHECK(articles[0].text.starts_with(" = Alpha = \n"));
  CHECK(articles[0].text.ends_with("More prose . \n \n"));
  CHECK(articles[1].title == "Beta");
  CHECK(articles[1].text == " = Beta = \n \n Second . \n");
}

TEST_CASE("text before the first heading, no heading, headings that nothing sets apart") {
  const std::vector<WikitextArticle> before = split_wikitext("prelude\n\n = A = \n\ntext\n");
  REQUIRE(before.size() == 2);
  CHECK(before[0].title == "");
  CHECK(before[0].text == "prelude\n\n");
  CHECK(split_wikitext("only prose\n").size() == 1);
  CHECK(split_wikitext("\n \n").empty());
  CHECK(split_wikitext(" = A = \ntext\n = B = \ntext\n").size() == 2);
  CHECK(split_wikitext(" = A = ").size() == 1);
}

TEST_CASE("many headings that nothing sets apart take time in proportion to the text") {
  // Each took all that was left along: hours for these 6 MB.
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "= a =\n";
  const std::vector<WikitextArticle> articles = split_wikitext("prose\n" + text);
  REQUIRE(articles.size() == 1'000'001);
  CHECK(articles[0].text == "prose\n");
  CHECK(articles[1'000'000].text == "= a =\n");
  CHECK(articles[1'000'000].line == 1'000'000);
}

TEST_CASE("the wikitext files have sixty articles each, and nothing is lost") {
  for (const char* name : {"wikitext/wiki.test.raw", "wikitext/wiki.valid.raw"}) {
    const auto path = shared_data(name);
    if (!path) return;
    const Corpus corpus = read_corpus(*path);
    CHECK(corpus.documents.size() == 60);
    CHECK(" \n" + joined(corpus) == read_bytes(*path));
    CHECK(corpus.documents[59].index == 59);
  }
  const Corpus test = read_corpus(*shared_data("wikitext/wiki.test.raw"));
  CHECK(test.documents[0].name == "Robert Boulter");
  CHECK(test.documents[59].name == "The Hustler ( film )");
  CHECK(test.documents[1].source.ends_with("wiki.test.raw, line 33"));
}

TEST_CASE("the embedded corpora are read as articles") {
  for (const char* name : {"encyclopaedic", "narrative", "technical"}) {
    const auto path = std::filesystem::path(WANAMAKER_EXAMPLES_DATA) / (std::string(name) + ".txt");
    const Corpus corpus = read_corpus(path);
    CHECK(corpus.documents.size() >= 20);
    CHECK(joined(corpus).size() >= 40'000);
  }
}

TEST_CASE("rows are lines with their line feeds") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.txt", "one\n\r\n \u2028x\n\nlast");
  CHECK(read_rows(folder / "a.txt") ==
        std::vector<std::string>{"one\n", "\r\n", " \u2028x\n", "\n", "last"});
  write_bytes(folder / "b.txt", "one\n");
  CHECK(read_rows(folder / "b.txt") == std::vector<std::string>{"one\n"});
  write_bytes(folder / "c.txt", "one\n\xff");
  CHECK(error_id([&] { read_rows(folder / "c.txt"); }) == "text/invalid-utf8");
  const auto shared = shared_data("wikitext");
  if (!shared) return;
  CHECK(read_rows(*shared / "wiki.test.raw").size() == 4358);
  CHECK(read_rows(*shared / "wiki.valid.raw").size() == 3760);
}

TEST_CASE("plain text is one document, byte for byte") {
  const TemporaryFolder folder;
  const std::string text = "\ufeffDear reader,\r\n\u00e9t\u00e9 = fine\n\n";
  write_bytes(folder / "letter.txt", text);
  const Corpus corpus = read_corpus(folder / "letter.txt");
  REQUIRE(corpus.documents.size() == 1);
  const Document& document = corpus.documents[0];
  CHECK(document.name == "letter.txt");
  CHECK(document.text() == text);
  CHECK(document.byte_count() == static_cast<Index>(text.size()));
  CHECK(document.word_count() == 5);
}

TEST_CASE("words are runs without white space") {
  CHECK(count_words("") == 0);
  CHECK(count_words(" \t\n") == 0);
  CHECK(count_words("a") == 1);
  CHECK(count_words(" a\u00a0b\u3000c\nd-e ") == 4);
}

TEST_CASE("JSON lines with texts and with ids") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.jsonl",
              "{\"text\": \"first \\u00e9\", \"title\": \"T\"}\r\n\n{\"id\": 7, \"text\": \"\"}\n"
              "{\"ids\": [3, 0, 2147483647]}");
  const Corpus corpus = read_corpus(folder / "a.jsonl");
  CHECK(names(corpus) == std::vector<std::string>{"T", "7", "a.jsonl:4"});
  CHECK(corpus.documents[0].text() == "first \u00e9");
  CHECK(corpus.documents[1].text() == "");
  CHECK(corpus.documents[2].ids() == Ids{3, 0, 2147483647});
  CHECK(corpus.documents[2].byte_count() == 0);
  CHECK(corpus.documents[2].index == 2);
  CHECK(corpus.documents[1].source.ends_with("a.jsonl, line 3"));
}

TEST_CASE("JSON lines that cannot be used are refused with their line") {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& line) {
    write_bytes(folder / "a.jsonl", "{\"text\": \"good\"}\n" + line + "\n");
    CHECK(message_of(folder / "a.jsonl").find("a.jsonl, line 2") != std::string::npos);
    return error_id([&] { read_corpus(folder / "a.jsonl"); });
  };
  for (const char* line :
       {"[1]", "{}", R"({"text": 3})", R"({"ids": 3})", R"({"text": "a", "ids": [1]})",
        R"({"ids": [-1]})", R"({"ids": [1.5]})", R"({"ids": [2147483648]})",
        R"({"ids": [18446744073709551615]})", R"({"ids": ["1"]})", R"({"ids": [null]})"}) {
    CAPTURE(line);
    CHECK(refuse(line) == "corpus/json-line");
  }
  CHECK(refuse("{\"text\": ") == "json/syntax");
  CHECK(refuse(R"({"text": "\ud800"})") == "json/syntax");
}

TEST_CASE("ready ids: arrays") {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> ids = {5, 6, 0, 7, 0, 0, 8};
  write_npy<std::int64_t>(folder / "a.npy", ids, {7});
  const Corpus whole = read_corpus(folder / "a.npy");
  REQUIRE(whole.documents.size() == 1);
  CHECK(whole.documents[0].ids() == Ids{5, 6, 0, 7, 0, 0, 8});
  const Corpus cut = read_corpus(folder / "a.npy", {.separator = 0});
  REQUIRE(cut.documents.size() == 3);
  CHECK(cut.documents[0].ids() == Ids{5, 6});
  CHECK(cut.documents[1].ids() == Ids{7});
  CHECK(cut.documents[2].ids() == Ids{8});
  CHECK(cut.documents[2].source.ends_with("a.npy, element 6"));
  CHECK(cut.documents[1].name == "a.npy:3");
  write_npy<std::int64_t>(folder / "b.npy", std::vector<std::int64_t>{1, -2}, {2});
  CHECK(error_id([&] { read_corpus(folder / "b.npy"); }) == "corpus/id-out-of-range");
  CHECK(message_of(folder / "b.npy").find("element 1") != std::string::npos);
  write_npy<std::int64_t>(folder / "c.npy", ids, {7, 1});
  CHECK(error_id([&] { read_corpus(folder / "c.npy"); }) == "corpus/ids-shape");
  write_npy<float>(folder / "d.npy", std::vector<float>{1, 2}, {2});
  CHECK(message_of(folder / "d.npy") != "");
}

TEST_CASE("ready ids: bare files of either width") {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> narrow = {50256, 1, 40000, 2};
  const std::vector<std::uint32_t> wide = {50256, 1, 100000, 2};
  write_bytes(folder / "narrow.bin", bytes_of(narrow));
  write_bytes(folder / "wide.bin", bytes_of(wide));
  CHECK(read_corpus(folder / "narrow.bin").documents[0].ids() == Ids{50256, 1, 40000, 2});
  CHECK(read_corpus(folder / "wide.bin").documents[0].ids() == Ids{50256, 1, 100000, 2});
  for (const std::vector<std::uint16_t>& ids :
       {std::vector<std::uint16_t>{1, 2, 3, 4}, {0, 0, 0, 9, 5, 16, 7, 8}}) {
    write_bytes(folder / "small.bin", bytes_of(ids));
    CHECK(read_corpus(folder / "small.bin").documents[0].ids() == Ids(ids.begin(), ids.end()));
  }
  const CorpusOptions as_narrow{.format = CorpusFormat::uint16_ids};
  CHECK(read_corpus(folder / "wide.bin", as_narrow).documents[0].ids().size() == 8);
  write_bytes(folder / "odd.bin", "abc");
  CHECK(error_id([&] { read_corpus(folder / "odd.bin"); }) == "corpus/ragged-ids");
  write_bytes(folder / "six.bin", bytes_of(std::vector<std::uint16_t>{1, 2, 3}));
  CHECK(read_corpus(folder / "six.bin").documents[0].ids() == Ids{1, 2, 3});
  const CorpusOptions as_wide{.format = CorpusFormat::uint32_ids};
  CHECK(error_id([&] { read_corpus(folder / "six.bin", as_wide); }) == "corpus/ragged-ids");
  write_bytes(folder / "huge.bin", bytes_of(std::vector<std::uint32_t>{1, 0x80000000u}));
  CHECK(error_id([&] { read_corpus(folder / "huge.bin", as_wide); }) == "corpus/id-out-of-range");
}

TEST_CASE("the format goes by extension and content, unless given") {
  const auto detect = [](const char* name, const std::string& bytes) {
    return detect_corpus_format(name, bytes);
  };
  CHECK(detect("a.JSONL", "x") == CorpusFormat::json_lines);
  CHECK(detect("a.npy", "x") == CorpusFormat::npy_ids);
  CHECK(detect("a.raw", article_text) == CorpusFormat::wikitext);
  CHECK(detect("a", "\n= Title =\n\ntext") == CorpusFormat::wikitext);
  CHECK(detect("a.txt", "prose\n = Title = \n") == CorpusFormat::plain_text);
  CHECK(detect("a.raw", "") == CorpusFormat::plain_text);
  const TemporaryFolder folder;
  write_bytes(folder / "a.txt", article_text);
  CHECK(read_corpus(folder / "a.txt").documents.size() == 2);
  CHECK(read_corpus(folder / "a.txt", {.format = CorpusFormat::plain_text}).documents.size() == 1);
}

TEST_CASE("every format has a name") {
  for (const CorpusFormat format :
       {CorpusFormat::automatic, CorpusFormat::plain_text, CorpusFormat::wikitext,
        CorpusFormat::json_lines, CorpusFormat::csv, CorpusFormat::lambada, CorpusFormat::npy_ids,
        CorpusFormat::uint16_ids, CorpusFormat::uint32_ids}) {
    CHECK(corpus_format_of_name(corpus_format_name(format)) == format);
  }
  CHECK(corpus_format_name(CorpusFormat::json_lines) == "jsonl");
  CHECK(!corpus_format_of_name("parquet"));
}

TEST_CASE("texts that are none") {
  const TemporaryFolder folder;
  const auto refuse = [&](const char* name, const std::string& bytes) {
    write_bytes(folder / name, bytes);
    return error_id([&] { read_corpus(folder / name); });
  };
  CHECK(refuse("a.txt", "") == "file/empty");
  CHECK(refuse("b.txt", " \n\u00a0\n") == "corpus/empty");
  CHECK(refuse("c.jsonl", "{\"text\": \" \"}\n{\"ids\": []}\n") == "corpus/empty");
  CHECK(refuse("d.jsonl", "\n\n") == "corpus/empty");
  CHECK(refuse("e.txt", "good\n\xc3(") == "text/invalid-utf8");
  CHECK(message_of(folder / "e.txt").find("e.txt, byte 5") != std::string::npos);
  CHECK(error_id([&] { read_corpus(folder / "nowhere.txt"); }) == "file/missing");
  CHECK(error_id([&] { read_corpus(folder.path()); }) == "file/empty");
}

TEST_CASE("several files are numbered through, and the hash is of contents and their bounds") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.txt", article_text);
  write_bytes(folder / "b.txt", "plain");
  const std::vector<std::filesystem::path> paths = {folder / "a.txt", folder / "b.txt"};
  const Corpus corpus = read_corpus(paths);
  CHECK(names(corpus) == std::vector<std::string>{"Alpha", "Beta", "b.txt"});
  CHECK(corpus.documents[2].index == 2);
  const auto hash = [](std::vector<Document> documents) {
    return Corpus{std::move(documents)}.content_hash();
  };
  const std::string ab = hash({{.content = "a"}, {.content = "b"}});
  CHECK(ab == hash({{.name = "other", .content = "a"}, {.content = "b"}}));
  CHECK(ab != hash({{.content = "ab"}}));
  CHECK(ab != hash({{.content = "b"}, {.content = "a"}}));
  CHECK(hash({{.content = Ids{1}}}) != hash({{.content = Ids{2}}}));
  CHECK(hash({{.content = Ids{}}}) != hash({{.content = ""}}));
}

TEST_CASE("corpora of random bytes give documents or an error, nothing else") {
  const TemporaryFolder folder;
  RandomStream random(51);
  const std::string pieces[] = {"{",  "}",         "\"text\"", ":",     "\"",      "a",
                                "\n", " = T = \n", "\xff",     "[1,2]", "\"ids\"", "\\u",
                                "\1", " \n",       "\xc3\xa9", "="};
  for (int trial = 0; trial < 300; ++trial) {
    std::string bytes;
    for (std::uint64_t i = random.below(30); i-- > 0;) bytes += pieces[random.below(16)];
    for (const char* name : {"a.txt", "a.jsonl", "a.npy", "a.bin"}) {
      write_bytes(folder / name, bytes);
      try {
        const Corpus corpus = read_corpus(folder / name);
        CHECK(!corpus.documents.empty());
      } catch (const Error&) {
      }
    }
  }
}
