// Characters from bytes in pieces. Expected texts: CPython 3.11, bytes.decode('utf-8', 'replace').
#include "wanamaker/text/utf8_stream.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"

namespace {

using wanamaker::Utf8Stream;

std::string in_pieces(const std::string& bytes, wanamaker::RandomStream& random,
                      std::uint64_t longest) {
  Utf8Stream stream;
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t count = static_cast<std::size_t>(1 + random.below(longest));
    const std::string piece = stream.add(std::string_view(bytes).substr(at, count));
    CHECK(!wanamaker::first_invalid_utf8(piece).has_value());
    text += piece;
    at += count;
  }
  return text + stream.finish();
}

}  // namespace

TEST_CASE("a stream gives the same characters however its bytes are cut") {
  const std::string r = "\xef\xbf\xbd";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ""},
      {"plain", "plain"},
      {"a\u00e9\u20ac\U0001f642\U0010ffff", "a\u00e9\u20ac\U0001f642\U0010ffff"},
      {"\xf0\x9f\x98"
       "a",
       r + "a"},
      {"\xf0\x9f\x98", r},
      {"\xe2\x82", r},
      {"\xe2\x28\xa1", r + "(" + r},
      {"\xc0\xaf", r + r},
      {"\xe0\x80\x80", r + r + r},
      {"\xed\xa0\x80", r + r + r},
      {"\xf4\x90\x80\x80", r + r + r + r},
      {"\xf0\x80\x80\x80", r + r + r + r},
      {"\xf5\xbf", r + r},
      {"\x80z\xff", r + "z" + r},
      {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", r + r + r + r + "A"},
      {"\xc3\xc3\xa9", r + "\u00e9"}};
  wanamaker::RandomStream random(1);
  for (const auto& [bytes, expected] : cases) {
    for (const std::uint64_t longest : {1u, 2u, 3u, 100u})
      CHECK(in_pieces(bytes, random, longest) == expected);
  }
}

TEST_CASE("a stream holds back what is not whole, and no more") {
  Utf8Stream stream;
  CHECK(stream.add("a\xe2") == "a");
  CHECK(stream.add("\x82") == "");
  CHECK(stream.add("\xac"
                   "b") ==
        "\u20ac"
        "b");
  CHECK(stream.finish() == "");
  CHECK(stream.add("\xf0\x9f") == "");
  CHECK(stream.finish() == "\xef\xbf\xbd");
  CHECK(stream.finish() == "");
}
