// CSV: what RFC 4180 says, by hand and by writing and reading again; refusals with their lines.
#include "wanamaker/text/csv.hpp"

#include <string>
#include <utility>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/text/corpus.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Records = std::vector<std::vector<std::string>>;

/// Records of a text that comes in pieces of random length.
Records csv_records(const std::string& text, RandomStream& random,
                    std::vector<Index>* lines = nullptr) {
  Records records;
  CsvReader reader("f.csv", 1 << 20, [&](CsvRecord record) {
    if (lines != nullptr) lines->push_back(record.line);
    records.push_back(std::move(record.fields));
  });
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random.below(7), text.size() - at);
    reader.add(std::string_view(text).substr(at, size));
    at += size;
  }
  reader.finish();
  return records;
}

Records csv_records(const std::string& text) {
  RandomStream random(21);
  return csv_records(text, random);
}

/// A field as RFC 4180 writes it; in quotes where it must be, else at random.
std::string csv_field(const std::string& value, RandomStream& random) {
  const bool must = value.find_first_of(",\"\r\n") != std::string::npos;
  if (!must && random.below(2) == 0) return value;
  std::string field = "\"";
  for (const char c : value) field.append(c == '"' ? 2 : 1, c);
  return field + "\"";
}

std::string csv_fault(const std::string& text) {
  try {
    csv_records(text);
  } catch (const FormatError& error) {
    CHECK(error.id() == "corpus/csv-syntax");
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("CSV by hand") {
  CHECK(csv_records("") == Records{});
  CHECK(csv_records("a,b\nc,d\n") == Records{{"a", "b"}, {"c", "d"}});
  CHECK(csv_records("a,b\r\nc,d") == Records{{"a", "b"}, {"c", "d"}});
  CHECK(csv_records("a,\n,b\n") == Records{{"a", ""}, {"", "b"}});
  CHECK(csv_records("a,") == Records{{"a", ""}});
  CHECK(csv_records("\n\r\na\n\n") == Records{{"a"}});
  CHECK(csv_records("\"\"\n") == Records{{""}});
  CHECK(csv_records("\"a,\"\"b\"\"\r\nc\",d\r\n") == Records{{"a,\"b\"\r\nc", "d"}});
  CHECK(csv_records("a\rb\n") == Records{{"a\rb"}});
  CHECK(csv_records("\"a\"\r\n\"b\"\r") == Records{{"a"}, {"b"}});
}

TEST_CASE("random records survive writing and reading, in pieces of any length") {
  RandomStream random(22);
  const std::string alphabet = "ab ,\"\r\n\u00e9";
  for (int trial = 0; trial < 400; ++trial) {
    Records records(1 + random.below(4));
    std::string text;
    std::vector<Index> lines, expected;
    for (auto& fields : records) {
      expected.push_back(static_cast<Index>(std::count(text.begin(), text.end(), '\n')));
      fields.resize(1 + random.below(4));
      for (std::string& field : fields) {
        for (std::uint64_t n = random.below(6); n-- > 0;) {
          field += alphabet[random.below(alphabet.size() - 2)];
        }
      }
      // One empty field without quotes would be a blank line.
      if (fields.size() == 1 && fields[0].empty()) fields[0] = "x";
      for (std::size_t i = 0; i < fields.size(); ++i) {
        text += (i > 0 ? "," : "") + csv_field(fields[i], random);
      }
      text += random.below(2) == 0 ? "\r\n" : "\n";
    }
    CAPTURE(text);
    CHECK(csv_records(text, random, &lines) == records);
    CHECK(lines == expected);
  }
}

TEST_CASE("quotes where none may stand are refused with their line") {
  CHECK(csv_fault("a\n\"b\nc\nd").find("f.csv, line 2: a quoted field is never closed") == 0);
  CHECK(csv_fault("a\nb\"c\n").find("f.csv, line 2") == 0);
  CHECK(csv_fault("\"a\nb\" c\n").find("f.csv, line 2") == 0);
  CHECK(csv_fault("\"a\"\rb\n").find("f.csv, line 1") == 0);
  CHECK(csv_fault("\"a\"b").find("f.csv, line 1") == 0);
  CHECK(csv_fault(std::string(70000, ',')).find("too many fields") != std::string::npos);
}

TEST_CASE("a CSV corpus: the text's column, names, lines") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.csv",
              "\ufefftitle,text,body\r\nfirst,\"one\r\ntwo\",x\r\n\r\nsecond,three,y\r\n");
  const Corpus corpus = read_corpus(folder / "a.csv");
  REQUIRE(corpus.documents.size() == 2);
  CHECK(corpus.documents[0].name == "first");
  CHECK(corpus.documents[0].text() == "one\r\ntwo");
  CHECK(corpus.documents[1].source.ends_with("a.csv, line 5"));
  const Corpus bodies = read_corpus(folder / "a.csv", {.field = "body"});
  CHECK(bodies.documents[1].text() == "y");
  const Corpus titles = read_corpus(folder / "a.csv", {.field = "title"});
  CHECK(titles.documents[0].text() == "first");
  CHECK(titles.documents[0].name == "a.csv:2");
  write_bytes(folder / "b.csv", "/a~b\nx\n");
  CHECK(read_corpus(folder / "b.csv", {.field = "/a~b"}).documents.at(0).text() == "x");
}

TEST_CASE("CSV without the column, with another number of fields, or empty") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& bytes, const char* id) {
    write_bytes(folder / "a.csv", bytes);
    try {
      read_corpus(folder / "a.csv");
    } catch (const Error& error) {
      CHECK(error.id() == id);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("name,body\n1,2\n", "corpus/csv-column").find("found 'name', 'body'") !=
        std::string::npos);
  CHECK(message("text,text\n1,2\n", "corpus/csv-column") != "");
  CHECK(message("text,n\na,1\nb\n", "corpus/csv-fields").find("a.csv, line 3") !=
        std::string::npos);
  CHECK(message("text\n", "corpus/empty") != "");
  CHECK(message("text\n\" \"\n", "corpus/empty") != "");
}
