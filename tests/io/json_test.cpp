// JSON reading under bounds, and reproducible writing.
#include "wanamaker/io/json.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "io_testing.hpp"
#include "testing.hpp"
#include "wanamaker/io/json_writing.hpp"

using namespace wanamaker_test;
using wanamaker::Json;
using wanamaker::OrderedJson;
using wanamaker::parse_json;
using wanamaker::parse_json_file;
using wanamaker::write_json;

namespace {

std::string message_of(const std::string& text) {
  try {
    parse_json(text, "here.json");
  } catch (const wanamaker::FormatError& error) {
    return error.what();
  }
  return "";
}

std::string json_error(const std::string& text) {
  return error_id([&] { parse_json(text, "here.json"); });
}

std::string nested(int depth) {
  const auto n = static_cast<std::size_t>(depth);
  return std::string(n, '[') + std::string(n, ']');
}

/// A random document.
OrderedJson random_document(wanamaker::RandomStream& random, int depth) {
  switch (random.below(depth > 0 ? 9 : 7)) {
    case 0:
      return nullptr;
    case 1:
      return random.below(2) == 0;
    case 2:
      return static_cast<std::int64_t>(random()) >> random.below(64);
    case 3:
      return random() >> random.below(64);
    case 4: {
      const double value = std::bit_cast<double>(random());
      return std::isfinite(value) ? value : random.normal();
    }
    case 5:
      return random.normal();
    case 6:
      return std::string(static_cast<std::size_t>(depth), static_cast<char>(random.below(128))) +
             "é\"\\";
    case 7: {
      OrderedJson array = OrderedJson::array();
      for (std::uint64_t n = random.below(5); n > 0; --n)
        array.push_back(random_document(random, depth - 1));
      return array;
    }
    default: {
      OrderedJson object = OrderedJson::object();
      for (std::uint64_t n = random.below(5); n > 0; --n) {
        object["k" + std::to_string(random.below(100))] = random_document(random, depth - 1);
      }
      return object;
    }
  }
}

}  // namespace

TEST_CASE("a document is read whole") {
  const Json json =
      parse_json(R"( {"a": [1, -2, 3.5, true, null, {"b": "é\n\u00e9"}], "": {}} )", "x");
  CHECK(json["a"].size() == 6);
  CHECK(json["a"][0].is_number_unsigned());
  CHECK(json["a"][1].get<int>() == -2);
  CHECK(json["a"][2].get<double>() == 3.5);
  CHECK(json["a"][3].get<bool>());
  CHECK(json["a"][4].is_null());
  CHECK(json["a"][5]["b"].get<std::string>() == "é\né");
  CHECK(json[""].is_object());
  CHECK(parse_json("7", "x").get<int>() == 7);
}

TEST_CASE("a fault names the file, the line and the byte") {
  CHECK(message_of("{\n \"a\": 1,\n \"b\" 2}")
            .starts_with("here.json, line 3 (byte 16): invalid JSON"));
  CHECK(message_of("{\"a\": 1,\n\n\"a\": 2}")
            .starts_with("here.json, line 3 (byte 13): key twice in one object"));
  CHECK(message_of("[\n\"\xff\"]").starts_with("here.json, line 2 (byte 3): invalid UTF-8"));
  CHECK(message_of("[1e999]").find("number overflow") != std::string::npos);
}

TEST_CASE("what is not one JSON document is refused") {
  for (const char* text :
       {"",    " ",   "[",        "[1",      "{\"a\"", "{\"a\":", "[1,]",        "[1 2]", "{,}",
        "nul", "1 2", "[] x",     "'a'",     "\"a",    "\"\\x\"", "\"\\ud800\"", "01",    "+1",
        ".5",  "NaN", "Infinity", "[1e999]", "{1:2}",  "// c\n1", "\"\n\""}) {
    CAPTURE(text);
    CHECK(json_error(text) == "json/syntax");
  }
  CHECK(json_error(std::string("\"\xc3\"", 3)) == "json/invalid-utf8");
  CHECK(json_error("\xff") == "json/invalid-utf8");
  CHECK(json_error(std::string("{}\0x", 4)) == "json/syntax");
  CHECK(message_of(std::string("[\n\0]", 4)).starts_with("here.json, line 2 (byte 2): "));
}

TEST_CASE("keys may be repeated in different objects only") {
  CHECK(json_error(R"({"a": {"a": 1}, "b": {"a": 2}})").empty());
  CHECK(json_error(R"({"a": {"x": 1, "x": 2}})") == "json/duplicate-key");
  CHECK(json_error(R"([{"a": 1, "b": [], "\u0061": {}}])") == "json/duplicate-key");
}

TEST_CASE("depth and size are bounded") {
  CHECK(json_error(nested(64)).empty());
  CHECK(json_error(nested(65)) == "json/too-deep");
  CHECK(json_error(std::string(1'000'000, '[')) == "json/too-deep");
  CHECK(error_id([] { parse_json("[1, 2]", "x", {.bytes = 5}); }) == "json/too-large");
  CHECK(error_id([] { parse_json("[1, 2]", "x", {.bytes = 6}); }).empty());
}

TEST_CASE("a long or multi-line token does not make a long or multi-line message") {
  const std::string message = message_of("[\"" + std::string(100'000, 'a'));
  CHECK(!message.empty());
  CHECK(message.size() < 500);
  CHECK(message_of("{\"" + std::string(1000, 'k') + "\": 1, \"" + std::string(1000, 'k') + "\": 1}")
            .size() < 500);
}

TEST_CASE("files: missing, empty and faulty ones are named") {
  const TemporaryFolder folder;
  CHECK(error_id([&] { parse_json_file(folder / "absent.json"); }) == "file/missing");
  write_bytes(folder / "f.json", "");
  CHECK(error_id([&] { parse_json_file(folder / "f.json"); }) == "file/empty");
  write_bytes(folder / "f.json", "{");
  CHECK(error_id([&] { parse_json_file(folder / "f.json"); }) == "json/syntax");
  write_bytes(folder / "f.json", "\xef\xbb\xbf{\"a\": 1}");  // a byte-order mark is passed over
  CHECK(parse_json_file(folder / "f.json")["a"].get<int>() == 1);
}

TEST_CASE("what is written reads back the same, to the last bit of every double") {
  const TemporaryFolder folder;
  wanamaker::RandomStream random(3);
  for (int round = 0; round < 60; ++round) {
    const OrderedJson document = random_document(random, 5);
    write_json(folder / "f.json", document);
    CHECK(parse_json_file(folder / "f.json") == Json(document));
  }
  for (const double value : {0.1, -0.0, 5e-324, std::numeric_limits<double>::max(), 1.0 / 3}) {
    write_json(folder / "f.json", value);
    const double back = parse_json_file(folder / "f.json").get<double>();
    CHECK(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(value));
  }
}

TEST_CASE("keys are written in the order in which they were set, the same every time") {
  const TemporaryFolder folder;
  const OrderedJson document{{"schema", "wanamaker/1"}, {"a", {1, 2.5}}, {"b", nullptr}};
  write_json(folder / "f.json", document);
  CHECK(read_bytes(folder / "f.json") ==
        "{\n \"schema\": \"wanamaker/1\",\n \"a\": [\n  1,\n  2.5\n ],\n \"b\": null\n}\n");
}

TEST_CASE("what JSON cannot hold is refused with its place, and no file appears") {
  const TemporaryFolder folder;
  const auto refused = [&](const OrderedJson& document, const std::string& id,
                           const std::string& place) {
    try {
      write_json(folder / "f.json", document);
    } catch (const wanamaker::DataError& error) {
      CHECK(error.id() == id);
      CHECK(std::string(error.what()).find("key " + place + ":") != std::string::npos);
      return true;
    }
    return false;
  };
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  CHECK(refused({{"layers", {{{"r2", 0.5}}, {{"r2", nan}}}}}, "json/non-finite", "/layers/1/r2"));
  CHECK(refused({{"a", {1.0, -infinity}}}, "json/non-finite", "/a/1"));
  CHECK(refused(infinity, "json/non-finite", ""));
  CHECK(refused({{"name", "\xff"}}, "json/invalid-text", "/name"));
  CHECK(refused({{"x", {{"\xff", 1}}}}, "json/invalid-text", "/x/…"));
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("damaged documents are read or refused, never worse") {
  wanamaker::RandomStream random(4);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = damaged(random_document(random, 4).dump(), random);
    read += succeeds_or_names("name.json", [&] { parse_json(text, "name.json"); }) ? 1 : 0;
  }
  CHECK(read > 0);
  CHECK(read < 3000);
}
