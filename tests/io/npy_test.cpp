// .npy: what numpy wrote, what we write, and files that lie.
#include "wanamaker/io/npy.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "io_testing.hpp"
#include "testing.hpp"
#include "wanamaker/io/npy_xtensor.hpp"

using namespace wanamaker_test;
using namespace wanamaker;

namespace {

std::vector<double> as_doubles(const NpyArray& array) {
  if (is_floating(array.dtype())) return array.read<double>(NonFinite::allow);
  const std::vector<std::int64_t> integers = array.read_integers();
  return {integers.begin(), integers.end()};
}

void read_all(const std::filesystem::path& path) {
  const NpyArray array = read_npy(path);
  const std::size_t size = as_doubles(array).size();  // may throw, which a CHECK would swallow
  CHECK(size * size_in_bytes(array.dtype()) == array.bytes().size());
}

std::string npy_error(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder / "ids.npy";
  write_bytes(path, bytes);
  succeeds_or_names(path, [&] { read_all(path); });
  return error_id([&] { read_all(path); });
}

/// A version 1 file with this dictionary.
std::string file_of(const std::string& dictionary, const std::string& data = "") {
  std::string bytes = "\x93NUMPY";
  bytes += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
            static_cast<char>(dictionary.size() >> 8)};
  return bytes + dictionary + data;
}

std::string dictionary_of(const std::string& descr, const std::string& order,
                          const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}";
}

template <class T>
std::string written(const std::vector<T>& values, const Shape& shape) {
  const TemporaryFolder folder;
  write_npy<T>(folder / "f.npy", values, shape);
  return read_bytes(folder / "f.npy");
}

template <class T>
std::string written_counting(const Shape& shape) {
  std::vector<T> values(static_cast<std::size_t>(*element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(static_cast<float>(i));
  return written(values, shape);
}

std::string written_as(const std::string& descr, const Shape& shape) {
  switch (*detail::dtype_from_npy(descr)) {
    case DType::float64:
      return written_counting<double>(shape);
    case DType::float32:
      return written_counting<float>(shape);
    case DType::float16:
      return written_counting<half>(shape);
    case DType::int64:
      return written_counting<std::int64_t>(shape);
    case DType::int32:
      return written_counting<std::int32_t>(shape);
    case DType::int16:
      return written_counting<std::int16_t>(shape);
    case DType::int8:
      return written_counting<std::int8_t>(shape);
    case DType::uint64:
      return written_counting<std::uint64_t>(shape);
    case DType::uint32:
      return written_counting<std::uint32_t>(shape);
    case DType::uint16:
      return written_counting<std::uint16_t>(shape);
    default:
      return written_counting<std::uint8_t>(shape);
  }
}

/// Checks that a file with these bytes is refused with this id.
void check_refused(const std::string& bytes, const std::string& id) {
  CAPTURE(bytes);
  CHECK(npy_error(bytes) == id);
}

}  // namespace

TEST_CASE("arrays that numpy saved are read, and written with the same bytes") {
  const TemporaryFolder folder;
  for (const auto& saved : recorded_formats()["npy"]) {
    const std::string bytes = from_hex(saved["hex"]);
    const Shape shape = saved["shape"].get<Shape>();
    CAPTURE(saved.dump());
    write_bytes(folder / "f.npy", bytes);
    const NpyArray array = read_npy(folder / "f.npy");
    CHECK(array.shape() == shape);
    const std::vector<double> values = as_doubles(array);
    CHECK(values.size() == static_cast<std::size_t>(*element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<double>(i));
    CHECK(written_as(saved["descr"], shape) == bytes);
  }
}

TEST_CASE("headers of versions 2 and 3 are read") {
  const TemporaryFolder folder;
  for (const char* version : {"npy_version_2", "npy_version_3"}) {
    write_bytes(folder / "f.npy", from_hex(recorded_formats()[version]));
    CHECK(read_npy(folder / "f.npy").read_integers() == std::vector<std::int64_t>{0, 1, 2});
  }
}

TEST_CASE("what is not read is refused by name") {
  CHECK(npy_error(from_hex(recorded_formats()["npy_fortran"])) == "npy/fortran-order");
  CHECK(npy_error(from_hex(recorded_formats()["npy_big_endian"])) == "npy/dtype");
  CHECK(npy_error(from_hex(recorded_formats()["npy_structured"])) == "npy/header");
}

TEST_CASE("a dictionary may be written in other ways") {
  const std::string data(24, '\0');
  for (const char* text : {
           "{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False}",
           "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2,3,),}   \n",
           "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 ) , }",
           "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
           "{'descr': '<f4', 'fortran_order': True, 'shape': (6,)}",
       }) {
    CAPTURE(text);
    CHECK(npy_error(file_of(text, data)).empty());
  }
}

TEST_CASE("files that are cut, too long, or no .npy at all") {
  const std::string good = file_of(dictionary_of("'<f4'", "False", "(2,)"), "12345678");
  REQUIRE(npy_error(good).empty());
  check_refused("", "file/empty");
  check_refused("\x93NUMPY", "npy/magic");
  check_refused("\x93NUMPX" + good.substr(6), "npy/magic");
  check_refused("PK\x03\x04 an archive of several arrays", "npy/magic");
  check_refused(good.substr(0, 6) + '\x04' + good.substr(7), "npy/version");
  check_refused(good.substr(0, 6) + '\x00' + good.substr(7), "npy/version");
  check_refused(good.substr(0, 7) + '\x01' + good.substr(8), "npy/version");
  check_refused(good.substr(0, 8) + "\xff\xff" + good.substr(10), "npy/header-size");
  check_refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14), "npy/header-size");
  check_refused(std::string("\x93NUMPY\x02\x00\x01\x00", 10), "npy/magic");
  check_refused(std::string("\x93NUMPY\x02\x00\x01\x00\x00", 11), "npy/magic");
  check_refused(std::string("\x93NUMPY\x03\x00\x01\x00\x00\x00", 12), "npy/header-size");
  check_refused(good.substr(0, good.size() - 1), "npy/truncated");
  check_refused(good.substr(0, good.size() - 8), "npy/truncated");
  check_refused(good + "x", "npy/trailing-bytes");
}

TEST_CASE("each kind of lie in a dictionary has its error") {
  struct Lie {
    const char* descr;
    const char* order;
    const char* shape;
    const char* id;
  };
  // The data have 8 bytes: '<f4', False, (2,) would be right.
  constexpr Lie lies[]{
      {"'<f4'", "False", "(1,)", "npy/trailing-bytes"},
      {"'<f4'", "False", "(3,)", "npy/truncated"},
      {"'<f4'", "False", "(9223372036854775807,)", "npy/shape"},
      {"'<f4'", "False", "(4294967296, 4294967296)", "npy/shape"},
      {"'|u1'", "False", "(0, 4294967296, 4294967296)", "npy/shape"},
      {"'<f4'", "False", "(9223372036854775808,)", "npy/header"},
      {"'<f4'", "False", "(-2,)", "npy/header"},
      {"'<f4'", "False", "(2)", "npy/header"},
      {"'<f4'", "False", "[2]", "npy/header"},
      {"'<f4'", "False", "(2 3)", "npy/header"},
      {"'<f4'", "False", "(,)", "npy/header"},
      {"'<f4'", "False", "(2,,)", "npy/header"},
      {"'<f4'", "False", "(2", "npy/header"},
      {"'<f4'", "False", "(2L,)", "npy/header"},
      {"'<f4'", "false", "(2,)", "npy/header"},
      {"'<f4'", "0", "(2,)", "npy/header"},
      {"'<f4'", "True", "(2, 1)", "npy/fortran-order"},
      {"<f4", "False", "(2,)", "npy/header"},
      {"'<c8'", "False", "(1,)", "npy/dtype"},
      {"'>f4'", "False", "(2,)", "npy/dtype"},
      {"'|O'", "False", "(1,)", "npy/dtype"},
      {"''", "False", "(1,)", "npy/dtype"},
  };
  for (const Lie& lie : lies) {
    check_refused(file_of(dictionary_of(lie.descr, lie.order, lie.shape), "12345678"), lie.id);
  }
}

TEST_CASE("headers that are no such dictionary") {
  for (const char* dictionary : {
           "",
           "{",
           "{}",
           "{'descr': '<f4', 'shape': (2,)}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}x",
           "{'descr': '<f4', 'fortran_order': False, 'shape",
           "__import__('os')",
       }) {
    check_refused(file_of(dictionary, "12345678"), "npy/header");
  }
}

TEST_CASE("dimensions are bounded in number") {
  std::string ones;
  for (int i = 0; i < 64; ++i) ones += "1,";
  CHECK(npy_error(file_of(dictionary_of("'<f8'", "False", "(" + ones + ")"), "12345678")).empty());
  check_refused(file_of(dictionary_of("'<f8'", "False", "(1," + ones + ")"), "12345678"),
                "npy/header");
}

TEST_CASE("values that cannot be used are named by their element") {
  const TemporaryFolder folder;
  const auto path = folder / "f.npy";
  write_npy<double>(path, std::vector<double>{0, NAN}, {2});
  CHECK(error_id([&] { read_npy(path).read<float>(); }) == "tensor/value");
  CHECK(std::isnan(read_npy(path).read<float>(NonFinite::allow)[1]));
  CHECK(error_id([&] { read_npy(path).read_integers(); }) == "tensor/dtype");
  write_npy<std::uint64_t>(path, std::vector<std::uint64_t>{~std::uint64_t{0}}, {1});
  CHECK(error_id([&] { read_npy(path).read_integers(); }) == "tensor/value");
  CHECK(error_id([&] { read_npy(path).read<double>(); }) == "tensor/dtype");
}

TEST_CASE("the writer refuses a shape that does not fit") {
  const TemporaryFolder folder;
  const std::vector<float> values(6);
  const auto id = [&](const Shape& shape) {
    return error_id([&] { write_npy<float>(folder / "f.npy", values, shape); });
  };
  CHECK(id({2, 2}) == "npy/write-shape");
  CHECK(id({-2, -3}) == "npy/write-shape");
  CHECK(id({}) == "npy/write-shape");
  Shape many(65, 1);
  many[0] = 6;
  CHECK(id(many) == "npy/write-shape");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("what is written reads back the same") {
  const TemporaryFolder folder;
  RandomStream random(8);
  for (int round = 0; round < 100; ++round) {
    Shape shape;
    for (std::uint64_t n = random.below(5); n > 0; --n) {
      shape.push_back(static_cast<Index>(random.below(5)));
    }
    std::vector<double> values(static_cast<std::size_t>(*element_count(shape)));
    for (double& value : values) value = random.normal();
    write_npy<double>(folder / "f.npy", values, shape);
    const NpyArray array = read_npy(folder / "f.npy");
    CHECK(array.shape() == shape);
    CHECK(array.read<double>() == values);
  }
}

TEST_CASE("xtensor arrays and expressions go to a file and back") {
  const TemporaryFolder folder;
  const xt::xarray<float> x{{1, 2, 3}, {4, 5, 6}};
  write_npy(folder / "f.npy", x);
  CHECK(as_xtensor<float>(read_npy(folder / "f.npy")) == x);
  write_npy(folder / "f.npy", xt::transpose(x) * 2.0);
  const xt::xarray<double> back = as_xtensor<double>(read_npy(folder / "f.npy"));
  CHECK(back.shape(0) == 3);
  CHECK(back(2, 1) == 12.0);
  const xt::xtensor<std::uint16_t, 1> ids{7, 65535};
  write_npy(folder / "f.npy", ids);
  CHECK(read_npy(folder / "f.npy").dtype() == DType::uint16);
  CHECK(as_xtensor<std::int64_t>(read_npy(folder / "f.npy"))(1) == 65535);
}

TEST_CASE("damaged files are read or refused, never worse") {
  const TemporaryFolder folder;
  const auto path = folder / "ids.npy";
  RandomStream random(9);
  const auto& saved = recorded_formats()["npy"];
  int read = 0;
  constexpr int rounds = 3000;
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes = from_hex(saved[random.below(saved.size())]["hex"]);
    write_bytes(path, damaged(bytes, random));
    read += succeeds_or_names(path, [&] { read_all(path); }) ? 1 : 0;
  }
  CHECK(read > 0);
  CHECK(read < rounds);
}
