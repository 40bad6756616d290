// gzip and zstd: the same texts as unpacked ones, and refusals with their places.
#include "wanamaker/text/decompression.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "packing.hpp"
#include "text_testing.hpp"
#include "wanamaker/text/corpus.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

/// All that a source gives, asked for in random portions.
std::string drained(ByteSource& source, RandomStream& random) {
  std::string all, piece(4000, '\0');
  for (;;) {
    const std::size_t wanted = 1 + random.below(piece.size());
    const std::size_t got = source.read(std::span(piece).first(wanted));
    if (got == 0) return all;
    REQUIRE(got <= wanted);
    all.append(piece, 0, got);
  }
}

std::string unpacked_text(const std::string& packed, std::size_t piece, RandomStream& random) {
  const auto source = unpacked(std::make_unique<MemorySource>(packed, piece), "memory");
  return drained(*source, random);
}

std::string fault_of(const std::string& packed, std::string& message) {
  RandomStream random(1);
  try {
    unpacked_text(packed, 100, random);
  } catch (const Error& error) {
    message = error.what();
    return error.id();
  }
  return "";
}

}  // namespace

TEST_CASE("what is packed, in one part or several, read in any portions, is what went in") {
  RandomStream random(11);
  for (const Pack pack : packings()) {
    for (int trial = 0; trial < 60; ++trial) {
      std::string text;
      for (std::uint64_t n = random.below(4); n-- > 0;) {
        text += random_text(random, random.below(3000));
        text.append(random.below(30000), 'x');
      }
      const std::string packed = packed_in_parts(text, pack, random);
      CHECK(unpacked_text(packed, 1 + random.below(5000), random) == text);
    }
  }
}

TEST_CASE("bytes that are not packed are left alone, peeked at or not") {
  RandomStream random(12);
  for (const std::string text : {"", "a", "plain text", "\x1f", "(\xb5/", "BZh is a name"}) {
    CHECK(unpacked_text(text, 1, random) == text);
  }
}

TEST_CASE("data cut anywhere are refused with the offset of their end") {
  for (const Pack pack : packings()) {
    const std::string packed = pack(std::string(500, 'a') + "some text that is packed");
    for (std::size_t size = 6; size < packed.size(); ++size) {
      CAPTURE(size);
      std::string message;
      CHECK(fault_of(packed.substr(0, size), message) == "corpus/compressed-cut");
      CHECK(message.find("memory, byte " + std::to_string(size) + ":") != std::string::npos);
    }
  }
}

TEST_CASE("a second part that is cut, and bytes that are none, are refused") {
  for (const Pack pack : packings()) {
    const std::string whole = pack("first") + pack("second");
    std::string message;
    CHECK(fault_of(whole.substr(0, whole.size() - 3), message) == "corpus/compressed-cut");
    CHECK(fault_of(whole + "garbage", message) == "corpus/compressed-corrupt");
    // Either library looks at a few bytes before it can tell.
    const std::size_t place = std::stoul(message.substr(message.find("byte ") + 5));
    CHECK(place >= whole.size());
    CHECK(place <= whole.size() + 4);
  }
}

TEST_CASE("any changed byte is refused or changes nothing") {
  RandomStream random(13);
  const std::string text = random_text(random, 200);
  for (const Pack pack : packings()) {
    const std::string packed = pack(text);
    std::size_t refused = 0;
    for (std::size_t at = 4; at < packed.size(); ++at) {
      std::string wrong = packed;
      wrong[at] = static_cast<char>(wrong[at] ^ (1 << random.below(8)));
      std::string message;
      if (fault_of(wrong, message).empty()) {
        CHECK(unpacked_text(wrong, 100, random) == text);
      } else {
        ++refused;
        CHECK(message.find("memory, byte ") == 0);
      }
    }
    CHECK(refused + 30 > packed.size());
  }
}

#if WANAMAKER_HAS_ZLIB
TEST_CASE("zeros after the last member are padding") {
  RandomStream random(14);
  CHECK(unpacked_text(gzip("text") + std::string(700, '\0'), 50, random) == "text");
  CHECK(unpacked_text(gzip("te") + std::string(7, '\0') + gzip("xt"), 50, random) == "text");
}
#endif

#if WANAMAKER_HAS_ZSTD
TEST_CASE("a skippable frame before the first is skipped") {
  using namespace std::string_literals;
  RandomStream random(15);
  CHECK(unpacked_text("\x53\x2a\x4d\x18\x03\x00\x00\x00xyz"s + zstd("text"), 3, random) == "text");
}
#endif

TEST_CASE("other compression is refused by name") {
  using namespace std::string_literals;
  std::string message;
  CHECK(fault_of("\xfd"s + "7zXZ\0\0"s, message) == "corpus/compression");
  CHECK(message.find("xz") != std::string::npos);
  CHECK(fault_of("BZh91AY&SY", message) == "corpus/compression");
  CHECK(message.find("bzip2") != std::string::npos);
  CHECK(fault_of("PK\x03\x04....", message) == "corpus/compression");
  CHECK(message.find("zip") != std::string::npos);
}

TEST_CASE("packed corpora are the corpora, whatever the form inside") {
  RandomStream random(16);
  const TemporaryFolder folder;
  const std::string articles = " = A = \n \n One . \n \n = B = \n \n Two . \n";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"a.txt", "caf\u00e9 and more\n"},
      {"a.raw", articles},
      {"a.jsonl", "{\"text\": \"one\"}\n{\"ids\": [1, 2]}\n"},
      {"a.csv", "title,text\r\nt,\"x, \"\"y\"\"\r\nz\"\r\n"}};
  for (const auto& [name, bytes] : files) {
    write_bytes(folder / name, bytes);
    const Corpus plain = read_corpus(folder / name);
    for (const Pack pack : packings()) {
      for (const char* ending : {".gz", ".zst", ""}) {
        // Without an ending of its own the form is told by the inner one and the content alone.
        const std::string packed = (*ending == '\0' ? "packed-" : "") + name + ending;
        write_bytes(folder / packed, packed_in_parts(bytes, pack, random));
        CAPTURE(packed);
        const Corpus corpus = read_corpus(folder / packed);
        CHECK(corpus.content_hash() == plain.content_hash());
        CHECK(corpus.documents.size() == plain.documents.size());
      }
    }
  }
}

TEST_CASE("a fault in a packed text is named by its place in the unpacked one") {
  const TemporaryFolder folder;
  for (const Pack pack : packings()) {
    write_bytes(folder / "a.txt.gz", pack(std::string(300000, 'a') + "\xff"));
    std::string message;
    try {
      read_corpus(folder / "a.txt.gz");
    } catch (const Error& error) {
      CHECK(error.id() == "text/invalid-utf8");
      message = error.what();
    }
    CHECK(message.find("a.txt.gz (unpacked), byte 300000") != std::string::npos);
    write_bytes(folder / "ids.npy.gz", pack("\x93NUMPY"));
    CHECK(error_id([&] { read_corpus(folder / "ids.npy.gz"); }) == "corpus/ids-not-plain");
    write_bytes(folder / "empty.txt.gz", pack(""));
    CHECK(error_id([&] { read_corpus(folder / "empty.txt.gz"); }) == "corpus/empty");
  }
}

TEST_CASE("a small file that unpacks to a huge one is refused, not held") {
  const TemporaryFolder folder;
  for (const Pack pack : packings()) {
    write_bytes(folder / "a.txt.gz", pack(std::string(20'000'000, 'a')));
    write_bytes(folder / "a.jsonl.gz", pack("{\"text\": \"" + std::string(20'000'000, 'a')));
    write_bytes(folder / "a.csv.gz", pack("text\n\"" + std::string(20'000'000, 'a')));
    write_bytes(folder / "a.raw.gz", pack(" = A = \n\n" + std::string(20'000'000, 'a')));
    for (const char* name : {"a.txt.gz", "a.jsonl.gz", "a.csv.gz", "a.raw.gz"}) {
      CAPTURE(name);
      CHECK(error_id([&] { read_corpus(folder / name, {.largest_document = 1'000'000}); }) ==
            "corpus/document-too-large");
    }
  }
}
