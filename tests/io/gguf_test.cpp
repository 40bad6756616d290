// GGUF: what the Python package wrote, what we write, and files that lie.
#include "wanamaker/io/gguf.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "io_testing.hpp"
#include "testing.hpp"
#include "wanamaker/io/gguf_writer.hpp"

using namespace wanamaker_test;
using namespace wanamaker;

namespace {

/// tests/reference/gguf_formats.json, made by gguf_formats.py.
const nlohmann::json& recorded_gguf() {
  static const nlohmann::json recorded = [] {
    std::ifstream file(WANAMAKER_SOURCE_DIR "/tests/reference/gguf_formats.json");
    return nlohmann::json::parse(file);
  }();
  return recorded;
}

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string gguf_text(const std::string& value) {
  return raw(std::uint64_t{value.size()}) + value;
}
std::string gguf_start(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
  return "GGUF" + raw(version) + raw(tensors) + raw(keys);
}
std::string gguf_key(const std::string& name, GgufValueType type, const std::string& value) {
  return gguf_text(name) + raw(static_cast<std::uint32_t>(type)) + value;
}
std::string array_of(std::uint32_t type, std::uint64_t count, const std::string& values) {
  return raw(type) + raw(count) + values;
}

struct Described {
  std::string name = "a";
  std::vector<std::uint64_t> sizes{2};  // in the file's order
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};
std::string described(const Described& tensor) {
  std::string bytes = gguf_text(tensor.name) + raw(static_cast<std::uint32_t>(tensor.sizes.size()));
  for (const std::uint64_t size : tensor.sizes) bytes += raw(size);
  return bytes + raw(tensor.type) + raw(tensor.offset);
}

/// A file of these tensors and this data, without metadata.
std::string gguf_bytes(const std::vector<Described>& tensors, const std::string& data) {
  std::string bytes = gguf_start(tensors.size(), 0);
  for (const Described& tensor : tensors) bytes += described(tensor);
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + data;
}

/// Reads everything that there is, in every way that is offered.
void read_whole_gguf(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  for (const auto& [name, value] : file.metadata()) {
    const bool has_form = value.integer() || value.number() || value.boolean() || value.text();
    CHECK((!value.is_array() || !has_form));
    const auto texts = value.texts();
    const auto numbers = value.numbers();
    if (texts) CHECK(texts->size() == value.count());
    if (numbers) CHECK(numbers->size() == value.count());
    value.integers();
  }
  for (const auto& [name, info] : file.tensors()) {
    const std::vector<double> values = file.read<double>(name, NonFinite::allow);
    CHECK(values.size() == info.elements());
    CHECK(file.bytes(name).size() ==
          values.size() / block_elements(info.type) * block_bytes(info.type));
  }
}

std::string gguf_error(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.gguf";
  write_bytes(path, bytes);
  succeeds_or_names(path, [&] { read_whole_gguf(path); });
  return error_id([&] { read_whole_gguf(path); });
}

GgufType type_named(const std::string& name) {
  for (const auto& entry : detail::gguf_type_table) {
    if (entry.name == name) return entry.type;
  }
  FAIL("no type " << name);
  return {};
}

GgufFile opened(const TemporaryFolder& folder, const std::string& bytes) {
  write_bytes(folder / "m.gguf", bytes);
  return GgufFile::open(folder / "m.gguf");
}

}  // namespace

TEST_CASE("every type dequantises bit for bit as the Python package does") {
  for (const auto& item : recorded_gguf()["types"].items()) {
    const std::string& name = item.key();
    const auto& expected = item.value();
    CAPTURE(name);
    const GgufType type = type_named(name);
    const std::string bytes = from_hex(expected["bytes"]);
    const std::size_t count = bytes.size() / block_bytes(type) * block_elements(type);
    const TemporaryFolder folder;
    const GgufFile file = opened(
        folder, gguf_bytes({{.sizes = {count}, .type = static_cast<std::uint32_t>(type)}}, bytes));
    const std::vector<float> values = file.read<float>("a");
    for (std::size_t i = 0; i < 4; ++i) CHECK(values.at(i) == expected["first"][i].get<float>());
    CHECK(crc32(std::as_bytes(std::span(values))) == expected["crc32"].get<std::uint32_t>());
    const std::vector<double> doubles = file.read<double>("a");
    CHECK(std::vector<float>(doubles.begin(), doubles.end()) == values);
  }
}

TEST_CASE("blocks begin at any address, and beyond one piece") {
  // Q8_0 of scale 1 whose element i of block b is (i + b) mod 127.
  const std::size_t blocks = 5000;
  std::string bytes;
  for (std::size_t b = 0; b < blocks; ++b) {
    bytes += raw(half_bits_from_float(1.0f));
    for (std::size_t i = 0; i < 32; ++i) bytes += static_cast<char>((i + b) % 127);
  }
  const TemporaryFolder folder;
  const GgufFile file = opened(folder, gguf_bytes({{.sizes = {32, blocks}, .type = 8}}, bytes));
  CHECK(file.info("a").shape == Shape{static_cast<Index>(blocks), 32});
  const std::vector<float> values = file.read<float>("a");
  REQUIRE(values.size() == 32 * blocks);
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k] != static_cast<float>((k % 32 + k / 32) % 127)) ++wrong;
  }
  CHECK(wrong == 0);
  std::vector<float> moved(33);
  std::vector<std::byte> shifted(35);
  std::copy_n(file.bytes("a").begin(), 34, shifted.begin() + 1);
  dequantize(GgufType::q8_0, shifted.data() + 1, 32, moved.data() + 1);
  CHECK(moved[32] == 31.0f);
}

TEST_CASE("floats quantise to Q8_0 as in the Python package") {
  const auto& recorded = recorded_gguf()["q8_0"];
  const auto values = recorded["values"].get<std::vector<float>>();
  const std::string expected = from_hex(recorded["bytes"]);
  REQUIRE(expected.size() == values.size() / 32 * 34);
  std::string bytes(expected.size(), '\0');
  for (std::size_t b = 0; b * 32 < values.size(); ++b) {
    quantize_q8_0(values.data() + 32 * b, reinterpret_cast<std::byte*>(bytes.data()) + 34 * b);
  }
  CHECK(bytes == expected);
}

TEST_CASE("a file of the Python package reads, and ours has the same bytes") {
  const std::string expected = from_hex(recorded_gguf()["file"]);
  const std::vector<float> values{0, 0.25f, 0.5f, 0.75f, 1, 1.25f};
  const TemporaryFolder folder;
  write_gguf(folder / "ours.gguf",
             {{"general.architecture", std::string("llama")},
              {"llama.block_count", std::uint32_t{3}},
              {"x.float", 0.1f},
              {"x.flag", true},
              {"x.negative", std::int32_t{-5}},
              {"x.texts", std::vector<std::string>{"a", "", "é"}},
              {"x.integers", std::vector<std::int32_t>{1, -2, 3}}},
             {{"b.weight", GgufType::float32, {2, 3}, values},
              {"a.weight", GgufType::float16, {2, 3}, values}});
  CHECK(read_bytes(folder / "ours.gguf") == expected);
  const GgufFile file = opened(folder, expected);
  CHECK(file.find("llama.block_count")->integer() == 3);
  CHECK(file.find("x.float")->number() == static_cast<double>(0.1f));
  CHECK(file.find("x.flag")->boolean() == true);
  CHECK(file.find("x.negative")->integer() == -5);
  CHECK(file.find("general.architecture")->text() == "llama");
  CHECK(file.find("x.texts")->texts() == std::vector<std::string_view>{"a", "", "é"});
  CHECK(file.find("x.integers")->integers() == std::vector<std::int64_t>{1, -2, 3});
  CHECK(!file.find("x.texts")->numbers());
  CHECK(!file.find("x.flag")->integer());
  CHECK(file.find("absent") == nullptr);
  for (const char* name : {"a.weight", "b.weight"}) {
    CHECK(file.info(name).shape == Shape{2, 3});
    CHECK(file.read<float>(name) == values);
  }
  CHECK(file.read<half>("a.weight")[1].bits == half(0.25f).bits);
  CHECK(error_id([&] { file.read<half>("b.weight"); }) == "tensor/dtype");
  CHECK(error_id([&] { file.read<float>("c"); }) == "tensor/missing");
  float out[5];
  CHECK(error_id([&] { file.read_into("a.weight", out, 5); }) == "tensor/shape");
}

TEST_CASE("what is written as Q8_0 reads back within half a step") {
  RandomStream random(3);
  std::vector<float> values(320);
  for (float& x : values) x = static_cast<float>(random.uniform() - 0.5);
  const TemporaryFolder folder;
  write_gguf(folder / "q.gguf", {}, {{"w", GgufType::q8_0, {10, 32}, values}});
  const std::vector<float> back = GgufFile::open(folder / "q.gguf").read<float>("w");
  // A step is max / 127 ≤ 0.5 / 127; the scale is a half: relative error 2⁻¹¹ of at most 127 steps.
  CHECK(all_close(back, values, 0.0, 0.5 / 127 * (0.5 + 127.0 / 2048)));
}

TEST_CASE("version 2 has the same layout") {
  std::string bytes = from_hex(recorded_gguf()["file"]);
  bytes[4] = 2;
  CHECK(gguf_error(bytes).empty());
}

TEST_CASE("files that are no GGUF, or another kind of it") {
  CHECK(gguf_error("GGU") == "gguf/magic");
  CHECK(gguf_error("GGML" + std::string(100, '\0')) == "gguf/magic");
  CHECK(gguf_error(gguf_start(0, 0)).empty());
  CHECK(gguf_error(gguf_start(0, 0, 1)) == "gguf/version");
  CHECK(gguf_error(gguf_start(0, 0, 4)) == "gguf/version");
  CHECK(gguf_error(gguf_start(0, 0, 0x03000000u)) == "gguf/version");
}

TEST_CASE("every prefix of a file is refused") {
  const std::string bytes = from_hex(recorded_gguf()["file"]);
  // The last tensor's 12 bytes of data are followed by padding that need not be there.
  const std::size_t padding = 20;
  for (std::size_t size = 1; size < bytes.size() - padding; ++size) {
    CAPTURE(size);
    const std::string id = gguf_error(bytes.substr(0, size));
    CHECK((id == "gguf/truncated" || id == "gguf/magic" || id == "gguf/out-of-range"));
  }
  CHECK(gguf_error(bytes.substr(0, bytes.size() - padding)).empty());
}

TEST_CASE("counts and lengths that lie") {
  const std::uint64_t huge = ~std::uint64_t{0};
  CHECK(gguf_error(gguf_start(huge, 0)) == "gguf/limit");
  CHECK(gguf_error(gguf_start(0, huge)) == "gguf/limit");
  CHECK(gguf_error(gguf_start(65536, 0)) == "gguf/truncated");
  CHECK(gguf_error(gguf_start(0, 1) + raw(huge)) == "gguf/name");
  CHECK(gguf_error(gguf_start(0, 1) + gguf_key("k", GgufValueType::text, raw(huge) + "abc")) ==
        "gguf/truncated");
  for (const std::uint32_t type : {0u, 5u, 8u, 12u}) {
    for (const std::uint64_t count : {huge, huge / 8 + 1, huge / 2, std::uint64_t{1} << 40}) {
      CHECK(gguf_error(gguf_start(0, 1) +
                       gguf_key("k", GgufValueType::array, array_of(type, count, "abcd"))) ==
            "gguf/truncated");
    }
  }
  CHECK(gguf_error(gguf_start(0, 1) + gguf_key("k", GgufValueType::array, array_of(0, 4, "abcd")))
            .empty());
  CHECK(gguf_error(gguf_start(0, 1) +
                   gguf_key("k", GgufValueType::array, array_of(9, 1, "abcd"))) == "gguf/value");
  CHECK(gguf_error(gguf_start(0, 1) + gguf_key("k", static_cast<GgufValueType>(13), "a")) ==
        "gguf/value");
  CHECK(gguf_error(gguf_start(0, 1) + gguf_key("k", GgufValueType::boolean, "\2")) == "gguf/value");
  CHECK(gguf_error(gguf_start(0, 1) + gguf_key("", GgufValueType::boolean, "\1")) == "gguf/name");
  CHECK(gguf_error(gguf_start(0, 1) + gguf_key("\xff", GgufValueType::boolean, "\1")) ==
        "gguf/name");
  const std::string flag = gguf_key("k", GgufValueType::boolean, "\1");
  CHECK(gguf_error(gguf_start(0, 2) + flag + flag) == "gguf/duplicate");
}

TEST_CASE("tensors that lie") {
  const std::string data(64, '\0');
  const std::uint64_t huge = ~std::uint64_t{0};
  struct Lie {
    Described tensor;
    const char* id;
  };
  const Lie lies[] = {{{.sizes = {2}}, ""},
                      {{.sizes = {}}, ""},
                      {{.sizes = {0}}, ""},
                      {{.sizes = {16}}, ""},
                      {{.sizes = {17}}, "gguf/out-of-range"},
                      {{.offset = 64}, "gguf/out-of-range"},
                      {{.offset = huge}, "gguf/out-of-range"},
                      {{.offset = huge - 7}, "gguf/out-of-range"},
                      {{.offset = 8}, "gguf/alignment"},
                      {{.offset = 32}, "gguf/gap"},
                      {{.sizes = {huge}}, "gguf/shape"},
                      {{.sizes = {std::uint64_t{1} << 32, std::uint64_t{1} << 32}}, "gguf/shape"},
                      {{.sizes = {std::uint64_t{1} << 62}}, "gguf/shape"},
                      {{.sizes = {1, 1, 1, 1}}, ""},
                      {{.sizes = {1, 1, 1, 1, 1}}, "gguf/shape"},
                      {{.sizes = {31}, .type = 8}, "gguf/shape"},
                      {{.sizes = {32}, .type = 8}, ""},
                      {{.sizes = {16, 2}, .type = 8}, "gguf/shape"},
                      {{.sizes = {256}, .type = 10}, "gguf/type"},
                      {{.sizes = {256}, .type = 4}, "gguf/type"},
                      {{.sizes = {256}, .type = 4000000000u}, "gguf/type"},
                      {{.name = ""}, "gguf/name"},
                      {{.name = "\xc0"}, "gguf/name"},
                      {{.name = std::string(65, 'n')}, "gguf/name"}};
  for (const Lie& lie : lies) {
    CAPTURE(lie.tensor.name);
    CAPTURE(lie.tensor.offset);
    CAPTURE(lie.tensor.type);
    CHECK(gguf_error(gguf_bytes({lie.tensor}, data)) == lie.id);
  }
  const Described at_0{.name = "a", .sizes = {9}}, at_32{.name = "b", .offset = 32};
  const Described at_64{.name = "b", .sizes = {0}, .offset = 64};
  CHECK(gguf_error(gguf_bytes({at_0, at_32}, data)) == "gguf/overlap");
  CHECK(gguf_error(gguf_bytes({at_32, at_0}, data)) == "gguf/overlap");
  CHECK(gguf_error(gguf_bytes({at_64, at_0}, data)).empty());
  CHECK(gguf_error(gguf_bytes({at_0, at_0}, data)) == "gguf/duplicate");
}

TEST_CASE("alignment is what the file says") {
  const auto aligned_to = [](std::uint32_t alignment, std::size_t data_begin) {
    std::string bytes = gguf_start(1, 1) +
                        gguf_key("general.alignment", GgufValueType::uint32, raw(alignment)) +
                        described({.sizes = {1}});
    bytes.resize(std::max(bytes.size(), data_begin));
    return bytes + raw(1.5f);
  };
  const std::size_t end = aligned_to(1, 0).size() - 4;
  CHECK(gguf_error(aligned_to(1, end)).empty());
  CHECK(gguf_error(aligned_to(128, 128)).empty());
  CHECK(gguf_error(aligned_to(128, 96)) == "gguf/out-of-range");
  CHECK(gguf_error(aligned_to(0, 128)) == "gguf/alignment");
  CHECK(gguf_error(aligned_to(48, 128)) == "gguf/alignment");
  CHECK(gguf_error(aligned_to(1u << 31, 128)) == "gguf/alignment");
  CHECK(gguf_error(gguf_start(0, 1) + gguf_key("general.alignment", GgufValueType::boolean,
                                               "\1")) == "gguf/alignment");
}

TEST_CASE("values that are not finite are refused unless allowed") {
  const TemporaryFolder folder;
  // Q8_0 with an infinite scale: 0 · ∞ is NaN, 1 · ∞ an infinity.
  const std::string block = raw(std::uint16_t{0x7c00}) + std::string(32, '\1');
  const GgufFile file = opened(folder, gguf_bytes({{.sizes = {32}, .type = 8}}, block));
  CHECK(error_id([&] { file.read<float>("a"); }) == "tensor/value");
  CHECK(std::isinf(file.read<float>("a", NonFinite::allow)[31]));
  const GgufFile plain = opened(folder, gguf_bytes({{}}, raw(1.0f) + raw(std::nanf(""))));
  CHECK(error_id([&] { plain.read<double>("a"); }) == "tensor/value");
}

TEST_CASE("damaged files are read or refused, never worse") {
  const std::string bytes = from_hex(recorded_gguf()["file"]);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "damaged.gguf";
  RandomStream random(29);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string bad = damaged(bytes, random);
    if (bad.empty()) continue;
    write_bytes(path, bad);
    if (!succeeds_or_names(path, [&] { read_whole_gguf(path); })) ++refused;
  }
  CHECK(refused > 1000);
}

TEST_CASE("what cannot be written is refused") {
  const TemporaryFolder folder;
  const std::vector<float> values(32, 1.0f), large(32, 1e9f), bad(32, std::nanf(""));
  const auto fault = [&](const std::vector<GgufTensorToWrite>& tensors,
                         const GgufMetadataToWrite& metadata = {}) {
    return error_id([&] { write_gguf(folder / "w.gguf", metadata, tensors); });
  };
  const GgufTensorToWrite good{"w", GgufType::q8_0, {1, 32}, values};
  CHECK(fault({good}).empty());
  CHECK(fault({good, good}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::q8_0, {2, 16}, values}}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::float32, {31}, values}}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::q4_0, {32}, values}}) == "gguf/unwritable");
  CHECK(fault({{"", GgufType::float32, {32}, values}}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::float16, {32}, large}}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::q8_0, {32}, large}}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::float32, {32}, large}}).empty());
  CHECK(fault({{"w", GgufType::float32, {32}, bad}}) == "gguf/unwritable");
  CHECK(fault({}, {{"k", 1.0f}, {"k", 2.0f}}) == "gguf/unwritable");
  const std::vector<std::byte> block(18), part(17);
  CHECK(fault({{"w", GgufType::q4_0, {1, 32}, {}, block}}).empty());
  CHECK(fault({{"w", GgufType::q4_0, {1, 64}, {}, block}}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::q4_0, {1, 32}, {}, part}}) == "gguf/unwritable");
  CHECK(fault({{"w", GgufType::q4_0, {1, 32}, values, block}}) == "gguf/unwritable");
  CHECK(names_in(folder.path()).size() == 1);
}
