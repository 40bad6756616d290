// safetensors: what the peer wrote, what we write, and files that lie.
#include "wanamaker/io/safetensors.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "io_testing.hpp"
#include "testing.hpp"
#include "wanamaker/io/safetensors_writer.hpp"

using namespace wanamaker_test;
using namespace wanamaker;

namespace {

/// A file of this header and data, whatever they say.
std::string safetensors_bytes(const std::string& header, const std::string& data = "") {
  const std::uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

/// Values as doubles, whatever the type.
std::vector<double> as_doubles(const SafetensorsFile& file, const std::string& name) {
  if (is_floating(file.info(name).dtype)) return file.read<double>(name, NonFinite::allow);
  const std::vector<std::int64_t> integers = file.read_integers(name);
  return {integers.begin(), integers.end()};
}

/// Reads everything that there is, in every way that is offered.
void read_all_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  for (const std::string& name : file.names()) {
    const std::size_t size = as_doubles(file, name).size();
    CHECK(size * size_in_bytes(file.info(name).dtype) == file.bytes(name).size());
  }
}

/// Error id of opening these bytes; checks that the message names the file.
std::string id_of(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  write_bytes(path, bytes);
  succeeds_or_names(path, [&] { read_all_tensors(path); });
  return error_id([&] { read_all_tensors(path); });
}

struct RandomTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;

  TensorToWrite to_write() const { return {name, dtype, shape, bytes}; }
};

RandomTensor random_tensor(RandomStream& random, std::size_t number) {
  RandomTensor tensor;
  tensor.name = "é\"\\\n/" + std::to_string(number);
  tensor.dtype = static_cast<DType>(random.below(detail::dtype_table.size()));
  for (std::uint64_t n = random.below(4); n > 0; --n) {
    tensor.shape.push_back(static_cast<Index>(random.below(6)));
  }
  tensor.bytes.resize(static_cast<std::size_t>(*element_count(tensor.shape)) *
                      size_in_bytes(tensor.dtype));
  for (std::byte& b : tensor.bytes) b = static_cast<std::byte>(random.below(256));
  return tensor;
}

std::vector<RandomTensor> random_tensors(RandomStream& random) {
  std::vector<RandomTensor> tensors;
  for (std::size_t n = static_cast<std::size_t>(random.below(8)); n > 0; --n) {
    tensors.push_back(random_tensor(random, n));
  }
  return tensors;
}

void write(const std::filesystem::path& path, const std::vector<RandomTensor>& tensors) {
  std::vector<TensorToWrite> to_write;
  for (const RandomTensor& tensor : tensors) to_write.push_back(tensor.to_write());
  write_safetensors(path, to_write, {{"format", "pt"}, {"k", "v é"}});
}

/// Checks that a file with these bytes is refused with this id.
void check_file_refused(const std::string& bytes, const std::string& id) {
  CAPTURE(bytes);
  CHECK(id_of(bytes) == id);
}

}  // namespace

TEST_CASE("every shared file reads as the Python package reads it") {
  for (const auto& item : recorded_formats()["files"].items()) {
    const std::string& name = item.key();
    const auto& expected = item.value();
    const auto path = shared_data(name);
    if (!path) continue;
    CAPTURE(name);
    const SafetensorsFile file = SafetensorsFile::open(*path);
    CHECK(file.names().size() == expected["tensors"].get<std::size_t>());
    for (const auto& sample : expected["samples"]) {
      const std::string tensor = sample["name"];
      CHECK(file.info(tensor).shape == sample["shape"].get<Shape>());
      CHECK(as_doubles(file, tensor).at(sample["element"]) == sample["value"].get<double>());
    }
    std::uint32_t crc = 0;
    for (const std::string& tensor : file.names()) {
      crc = crc32_of_doubles(as_doubles(file, tensor), crc);
    }
    CHECK(crc == expected["crc32"].get<std::uint32_t>());
  }
}

TEST_CASE("a file of every type, written by the Python package") {
  const TemporaryFolder folder;
  const auto path = folder / "f.safetensors";
  write_bytes(path, from_hex(recorded_formats()["written_by_safetensors"]));
  const SafetensorsFile file = SafetensorsFile::open(path);
  using Doubles = std::vector<double>;
  CHECK(file.read<double>("b") == Doubles{1.5, -2.0, 3.25});
  CHECK(file.read<float>("a") == std::vector<float>{0.1f});
  CHECK(file.read<double>("quote \" and é") == Doubles{0.1, -1e300});
  CHECK(file.read<double>("half") == Doubles{1.0, -0.5, 65504.0});
  CHECK(file.read<float>("bfloat") == std::vector<float>{1.0f, -123.5f});
  CHECK(file.read<half>("half")[2].bits == 0x7bff);
  CHECK(file.read<bfloat16>("bfloat")[1].bits == 0xc2f7);
  CHECK(file.read<float>("scalar") == std::vector<float>{4.0f});
  CHECK(file.info("scalar").shape.empty());
  CHECK(file.read<double>("empty").empty());
  CHECK(file.info("empty").shape == Shape{0, 3});
  using Integers = std::vector<std::int64_t>;
  CHECK(file.read_integers("ids") == Integers{-1, std::int64_t{1} << 62});
  CHECK(file.read_integers("counts") == Integers{7});
  CHECK(file.read_integers("i32") == Integers{-70000});
  CHECK(file.read_integers("u32") == Integers{4000000000});
  CHECK(file.read_integers("i16") == Integers{-300});
  CHECK(file.read_integers("u16") == Integers{60000});
  CHECK(file.read_integers("i8") == Integers{-5, 6, 7});
  CHECK(file.read_integers("u8") == Integers{200});
  CHECK(file.read_integers("flags") == Integers{1, 0, 1});
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.names().size() == 16);
}

TEST_CASE("the writer gives the very bytes of the Python package") {
  const TemporaryFolder folder;
  const std::string expected = from_hex(recorded_formats()["written_by_safetensors"]);
  write_bytes(folder / "theirs", expected);
  const SafetensorsFile theirs = SafetensorsFile::open(folder / "theirs");
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, info] : theirs.tensors()) {
    tensors.push_back({name, info.dtype, info.shape, theirs.bytes(name)});
  }
  write_safetensors(folder / "ours", tensors, theirs.metadata());
  CHECK(read_bytes(folder / "ours") == expected);
}

TEST_CASE("what is written reads back the same, and the same again gives the same bytes") {
  const TemporaryFolder folder;
  RandomStream random(6);
  for (int round = 0; round < 100; ++round) {
    std::vector<RandomTensor> tensors = random_tensors(random);
    write(folder / "f", tensors);
    const SafetensorsFile file = SafetensorsFile::open(folder / "f");
    CHECK(file.names().size() == tensors.size());
    CHECK(file.metadata().at("k") == "v é");
    for (const RandomTensor& tensor : tensors) {
      const TensorInfo& info = file.info(tensor.name);
      CHECK(info.dtype == tensor.dtype);
      CHECK(info.shape == tensor.shape);
      const auto bytes = file.bytes(tensor.name);
      CHECK(std::vector<std::byte>(bytes.begin(), bytes.end()) == tensor.bytes);
      CHECK(info.begin % size_in_bytes(info.dtype) == 0);
    }
    shuffle(tensors, random);
    write(folder / "g", tensors);
    CHECK(read_bytes(folder / "f") == read_bytes(folder / "g"));
  }
}

TEST_CASE("typed values are written in their type") {
  const TemporaryFolder folder;
  const std::vector<float> floats{1, 2, 3, 4, 5, 6};
  const std::vector<bfloat16> brains{bfloat16(1.5f), bfloat16(-3.0f)};
  const std::vector<std::int64_t> ids{-9};
  write_safetensors(folder / "f", {tensor_to_write<float>("x", floats, {2, 3}),
                                   tensor_to_write<bfloat16>("y", brains, {2}),
                                   tensor_to_write<std::int64_t>("ids", ids, {1})});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  CHECK(file.read<float>("x") == floats);
  CHECK(file.info("y").dtype == DType::bfloat16);
  CHECK(file.read<double>("y") == std::vector<double>{1.5, -3.0});
  CHECK(file.read_integers("ids") == ids);
}

TEST_CASE("the writer refuses what would not be a file") {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 2};
  const auto id = [&](std::vector<TensorToWrite> tensors) {
    return error_id([&] { write_safetensors(folder / "f", std::move(tensors)); });
  };
  CHECK(id({tensor_to_write<float>("x", values, {3})}) == "tensor/length");
  CHECK(id({tensor_to_write<float>("x", values, {-2})}) == "tensor/length");
  CHECK(id({tensor_to_write<float>("x", values, {Index{1} << 62, 4})}) == "tensor/length");
  CHECK(id({tensor_to_write<float>("\xff", values, {2})}) == "tensor/bad-name");
  CHECK(id({tensor_to_write<float>("__metadata__", values, {2})}) == "tensor/bad-name");
  const TensorToWrite x = tensor_to_write<float>("x", values, {2});
  const TensorToWrite y = tensor_to_write<float>("y", values, {2});
  CHECK(id({x, y, x}) == "tensor/duplicate-name");
  CHECK(error_id([&] {
          write_safetensors(folder / "f", {x}, {{"k", "\xff"}});
        }) == "tensor/bad-name");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("tensors may lie at any alignment and in any order") {
  const TemporaryFolder folder;
  std::string data(25, '\0');
  const double x = -2.5;
  const float y = 0.75f;
  std::memcpy(data.data() + 5, &x, 8);
  std::memcpy(data.data() + 13, &y, 4);
  std::memcpy(data.data() + 17, &x, 8);
  const std::string header =
      "{" + entry("z", "F64", "[1]", "[17,25]") + "," + entry("y", "F32", "[1,1]", "[13,17]") +
      "," + entry("x", "F64", "[1]", "[5,13]") + "," + entry("bytes", "U8", "[5]", "[0,5]") + "}";
  for (std::size_t blanks = 0; blanks < 8; ++blanks) {
    write_bytes(folder / "f", safetensors_bytes(header + std::string(blanks, ' '), data));
    const SafetensorsFile file = SafetensorsFile::open(folder / "f");
    CHECK(file.read<double>("x") == std::vector<double>{x});
    CHECK(file.read<double>("z") == std::vector<double>{x});
    CHECK(file.read<float>("y") == std::vector<float>{y});
  }
}

TEST_CASE("legal corners") {
  CHECK(id_of(safetensors_bytes("{}")).empty());
  CHECK(id_of(safetensors_bytes("{\"__metadata__\":{}}")).empty());
  const std::string whole = entry("a", "U8", "[4]", "[0,4]");
  CHECK(
      id_of(safetensors_bytes("{" + entry("e", "F32", "[0]", "[0,0]") + "," + whole + "}", "abcd"))
          .empty());
  CHECK(
      id_of(safetensors_bytes("{" + whole + "," + entry("e", "F32", "[0]", "[4,4]") + "}", "abcd"))
          .empty());
}

TEST_CASE("files that are cut, too long, or no safetensors at all") {
  const std::string good =
      safetensors_bytes("{" + entry("a", "F32", "[2]", "[0,8]") + "}", "12345678");
  REQUIRE(id_of(good).empty());
  check_file_refused("", "file/empty");
  check_file_refused("1234567", "safetensors/truncated");
  check_file_refused(std::string(8, '\xff'), "safetensors/header-size");
  check_file_refused(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), "safetensors/header-size");
  check_file_refused(std::string("\0\0\0\0\0\0\0\x80{}", 10), "safetensors/header-size");
  check_file_refused(good.substr(0, 20), "safetensors/truncated");
  check_file_refused(good.substr(0, good.size() - 1), "safetensors/out-of-range");
  check_file_refused(good + "x", "safetensors/trailing-bytes");
  check_file_refused(safetensors_bytes("{}", "x"), "safetensors/trailing-bytes");
}

TEST_CASE("headers that are no such JSON") {
  for (const char* header : {"", "[]", " {}", "null", "{\"a\":[[[[", "{\"a\":{\"shape\":[[",
                             "{\"a\":1}", "{\"a\":null}", "{\"a\":{}}", "{\"a\":{\"shape\":{}}}"}) {
    check_file_refused(safetensors_bytes(header), "safetensors/header");
  }
  for (const char* header : {"{", "{}x", "{}{}", "{\"a\"}", "{\"a\":{{"}) {
    check_file_refused(safetensors_bytes(header), "json/syntax");
  }
  check_file_refused(safetensors_bytes(std::string("{}\0", 3)), "json/syntax");
  check_file_refused(safetensors_bytes("{\"\xff\":1}"), "json/invalid-utf8");
  check_file_refused(safetensors_bytes("{\"a\":" + std::string(100'000, '[')),
                     "safetensors/header");
}

TEST_CASE("each kind of lie about one tensor has its error") {
  struct Lie {
    const char* dtype;
    const char* shape;
    const char* offsets;
    const char* id;
  };
  // The data have 8 bytes: F32 [2] at [0,8] would be right.
  constexpr Lie lies[]{
      {"F7", "[2]", "[0,8]", "safetensors/dtype"},
      {"F8_E4M3", "[8]", "[0,8]", "safetensors/dtype"},
      {"f32", "[2]", "[0,8]", "safetensors/dtype"},
      {"", "[2]", "[0,8]", "safetensors/dtype"},
      {"F32", "[-2]", "[0,8]", "safetensors/header"},
      {"F32", "[2.0]", "[0,8]", "safetensors/header"},
      {"F32", "[[2]]", "[0,8]", "safetensors/header"},
      {"F32", "[true]", "[0,8]", "safetensors/header"},
      {"F32", "[\"2\"]", "[0,8]", "safetensors/header"},
      {"F32", "[4294967296,4294967296]", "[0,8]", "safetensors/shape"},
      {"F32", "[4294967296,4294967296]", "[0,0]", "safetensors/shape"},
      {"F32", "[9223372036854775808]", "[0,8]", "safetensors/shape"},
      {"F32", "[18446744073709551615]", "[0,8]", "safetensors/shape"},
      {"F32", "[18446744073709551616]", "[0,8]", "safetensors/header"},
      {"F64", "[4611686018427387904]", "[0,0]", "safetensors/shape"},
      {"F32", "[0,4294967296,4294967296]", "[0,0]", "safetensors/shape"},
      {"F32", "[3]", "[0,8]", "safetensors/length"},
      {"F32", "[]", "[0,8]", "safetensors/length"},
      {"F64", "[2]", "[0,8]", "safetensors/length"},
      {"F32", "[2]", "[8,0]", "safetensors/length"},
      {"F32", "[0]", "[8,0]", "safetensors/length"},
      {"F32", "[2]", "[18446744073709551608,0]", "safetensors/length"},
      {"F32", "[2]", "[0]", "safetensors/header"},
      {"F32", "[2]", "[]", "safetensors/header"},
      {"F32", "[2]", "[0,8,8]", "safetensors/header"},
      {"F32", "[2]", "[-8,0]", "safetensors/header"},
      {"F32", "[2]", "[18446744073709551607,18446744073709551615]", "safetensors/out-of-range"},
      {"F32", "[2]", "[8,16]", "safetensors/out-of-range"},
      {"F32", "[4]", "[0,16]", "safetensors/out-of-range"},
      {"F32", "[1]", "[4,8]", "safetensors/gap"},
      {"F32", "[1]", "[0,4]", "safetensors/trailing-bytes"},
  };
  for (const Lie& lie : lies) {
    check_file_refused(
        safetensors_bytes("{" + entry("a", lie.dtype, lie.shape, lie.offsets) + "}", "12345678"),
        lie.id);
  }
}

TEST_CASE("members that are missing, repeated, unknown, or of another kind") {
  struct Lie {
    const char* members;
    const char* id;
  };
  constexpr Lie lies[]{
      {R"("a":{"dtype":"F32","shape":[2]})", "safetensors/header"},
      {R"("a":{"dtype":"F32","data_offsets":[0,8]})", "safetensors/header"},
      {R"("a":{"shape":[2],"data_offsets":[0,8]})", "safetensors/header"},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})", "safetensors/header"},
      {R"("a":{"dtype":4,"shape":[2],"data_offsets":[0,8]})", "safetensors/header"},
      {R"("a":{"dtype":[1],"shape":[2],"data_offsets":[0,8]})", "safetensors/header"},
      {R"("a":{"dtype":"F32","shape":2,"data_offsets":[0,8]})", "safetensors/header"},
      {R"("a":{"dtype":"F32","shape":"[2]","data_offsets":[0,8]})", "safetensors/header"},
      {R"("a":{"dtype":"F32","shape":{},"data_offsets":[0,8]})", "safetensors/header"},
      {R"("__metadata__":{"k":1})", "safetensors/header"},
      {R"("__metadata__":{"k":{}})", "safetensors/header"},
      {R"("__metadata__":{"k":[]})", "safetensors/header"},
      {R"("__metadata__":[])", "safetensors/header"},
      {R"("__metadata__":"k")", "safetensors/header"},
      {R"("__metadata__":{"k":"1","k":"1"})", "json/duplicate-key"},
      {R"("__metadata__":{},"__metadata__":{})", "json/duplicate-key"},
      {R"("a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})",
       "json/duplicate-key"},
      {R"("a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]})", "json/duplicate-key"},
      {R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]})",
       "json/duplicate-key"},
  };
  for (const Lie& lie : lies) {
    check_file_refused(safetensors_bytes("{" + std::string(lie.members) + "}", "12345678"), lie.id);
  }
}

TEST_CASE("tensors that share, skip or repeat") {
  const std::string whole = entry("a", "F32", "[2]", "[0,8]");
  const std::string half_of_it = entry("b", "F32", "[1]", "[4,8]");
  const auto check_pair = [](const std::string& first, const std::string& second, const char* id) {
    check_file_refused(safetensors_bytes("{" + first + "," + second + "}", "12345678"), id);
    check_file_refused(safetensors_bytes("{" + second + "," + first + "}", "12345678"), id);
  };
  check_pair(whole, whole, "json/duplicate-key");
  check_pair(whole, half_of_it, "safetensors/overlap");
  check_pair(whole, entry("b", "F32", "[2]", "[0,8]"), "safetensors/overlap");
  check_pair(whole, entry("b", "F32", "[0]", "[2,2]"), "safetensors/overlap");
  check_pair(entry("a", "U8", "[3]", "[0,3]"), half_of_it, "safetensors/gap");
}

TEST_CASE("dimensions are bounded in number") {
  std::string ones = "1";
  for (int i = 1; i < 64; ++i) ones += ",1";
  const std::string data(4, '\0');
  CHECK(id_of(safetensors_bytes("{" + entry("a", "F32", "[" + ones + "]", "[0,4]") + "}", data))
            .empty());
  CHECK(id_of(safetensors_bytes("{" + entry("a", "F32", "[1," + ones + "]", "[0,4]") + "}",
                                data)) == "safetensors/header");
}

TEST_CASE("NaN and infinities are refused with tensor and element, or allowed when asked") {
  const TemporaryFolder folder;
  constexpr std::size_t count = 300'000;  // several pieces
  for (const std::size_t at : {std::size_t{0}, std::size_t{131'072}, count - 1}) {
    std::vector<float> values(count, 1.0f);
    values[at] = at == 0 ? HUGE_VALF : NAN;
    write_safetensors(folder / "f", {tensor_to_write<float>("w", values, {300, 1000})});
    const SafetensorsFile file = SafetensorsFile::open(folder / "f");
    try {
      file.read<double>("w");
      FAIL("no error");
    } catch (const DataError& error) {
      CHECK(error.id() == "tensor/value");
      const std::string message = error.what();
      CHECK(message.find("tensor 'w', element " + std::to_string(at) + ":") != std::string::npos);
      CHECK(message.find(at == 0 ? "found an infinity" : "found NaN") != std::string::npos);
    }
    CHECK(!std::isfinite(file.read<float>("w", NonFinite::allow)[at]));
  }
}

TEST_CASE("a double beyond float is refused as float and read as double") {
  const TemporaryFolder folder;
  const std::vector<double> values{1.0, -1e39};
  write_safetensors(folder / "f", {tensor_to_write<double>("w", values, {2})});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  CHECK(error_id([&] { file.read<float>("w"); }) == "tensor/value");
  CHECK(file.read<double>("w") == values);
}

TEST_CASE("what was read no longer counts as memory") {
  const TemporaryFolder folder;
  std::vector<float> values(std::size_t{8} << 20, 1.0f);
  write_safetensors(folder / "f", {tensor_to_write<float>("w", values, {8 << 20})});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  const long before = resident_bytes();
  file.read_into("w", values.data(), values.size());
  CHECK(resident_bytes() - before < long{8} << 20);
}

TEST_CASE("asking for what a file does not have") {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 2};
  const std::vector<std::uint64_t> ids{std::uint64_t{1} << 63};
  const std::byte three{3};
  write_safetensors(folder / "f", {tensor_to_write<float>("w", values, {2}),
                                   tensor_to_write<std::uint64_t>("ids", ids, {1}),
                                   {"flag", DType::boolean, {}, {&three, 1}}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  float out[2];
  CHECK(file.contains("w"));
  CHECK(!file.contains("v"));
  CHECK(error_id([&] { file.info("v"); }) == "tensor/missing");
  CHECK(error_id([&] { file.read<float>("v"); }) == "tensor/missing");
  CHECK(error_id([&] { file.read_into("w", out, 1); }) == "tensor/shape");
  CHECK(error_id([&] { file.read<half>("w"); }) == "tensor/dtype");
  CHECK(error_id([&] { file.read<float>("ids"); }) == "tensor/dtype");
  CHECK(error_id([&] { file.read_integers("w"); }) == "tensor/dtype");
  CHECK(error_id([&] { file.read_integers("ids"); }) == "tensor/value");
  CHECK(error_id([&] { file.read_integers("flag"); }) == "tensor/value");
  file.read_into("w", out, 2);
  CHECK(out[1] == 2.0f);
}

TEST_CASE("damaged files are read or refused, never worse") {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  RandomStream random(7);
  std::string bytes;
  int read = 0;
  constexpr int rounds = 3000;
  for (int round = 0; round < rounds; ++round) {
    if (round % 50 == 0) {
      write(path, random_tensors(random));
      bytes = read_bytes(path);
    }
    write_bytes(path, damaged(bytes, random));
    read += succeeds_or_names(path, [&] { read_all_tensors(path); }) ? 1 : 0;
  }
  CHECK(read > 0);
  CHECK(read < rounds);
}

TEST_CASE("every truncation and every changed header byte of one file is read or refused") {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const std::string bytes = from_hex(recorded_formats()["written_by_safetensors"]);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    write_bytes(path, bytes.substr(0, size));
    CHECK(!succeeds_or_names(path, [&] { read_all_tensors(path); }));
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    write_bytes(path, changed);
    succeeds_or_names(path, [&] { read_all_tensors(path); });
  }
}
