// Conversions against numpy's, at any alignment; and the search for values that are not finite.
#include "wanamaker/io/convert.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "io_testing.hpp"
#include "testing.hpp"
#include "wanamaker/core/random.hpp"

using namespace wanamaker_test;
using namespace wanamaker;

namespace {

std::vector<std::uint16_t> all_16_bit_patterns() {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return bits;
}

/// A copy of the bytes that begins `offset` bytes after an aligned address.
struct Misaligned {
  Misaligned(std::span<const std::byte> bytes, std::size_t offset)
      : storage(bytes.size() + offset), begin(storage.data() + offset) {
    if (!bytes.empty()) std::memcpy(begin, bytes.data(), bytes.size());
  }
  std::vector<std::byte> storage;
  std::byte* begin;
};

template <class T>
T from_bits(detail::BitsOf<T> bits) {
  return std::bit_cast<T>(bits);
}

}  // namespace

TEST_CASE("all binary16 values convert as numpy converts them") {
  const auto bits = all_16_bit_patterns();
  std::vector<double> values(bits.size());
  convert_floats(DType::float16, std::as_bytes(std::span(bits)).data(), bits.size(), values.data());
  for (double& value : values) {
    if (std::isnan(value)) value = 0.0;
  }
  CHECK(crc32_of_doubles(values) == recorded_formats()["halves_crc32"].get<std::uint32_t>());
}

TEST_CASE("all bfloat16 values are the upper halves of floats") {
  const auto bits = all_16_bit_patterns();
  std::vector<float> values(bits.size());
  convert_floats(DType::bfloat16, std::as_bytes(std::span(bits)).data(), bits.size(),
                 values.data());
  int wrong = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(values[i]) != std::uint32_t{bits[i]} << 16) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("every length at every alignment gives what one element alone gives", From,
                   double, float, half, bfloat16) {
  RandomStream random(5);
  for (const std::size_t count : std::vector<std::size_t>{0, 1, 7, 1023, 1024, 1025, 2048, 2500}) {
    std::vector<From> source(count);
    for (From& value : source) value = static_cast<From>(static_cast<float>(random.normal()));
    for (std::size_t offset = 0; offset < 8; ++offset) {
      const Misaligned bytes(std::as_bytes(std::span(source)), offset);
      std::vector<double> doubles(count);
      std::vector<float> floats(count);
      std::vector<From> same(count);
      convert_floats(dtype_of<From>, bytes.begin, count, doubles.data());
      convert_floats(dtype_of<From>, bytes.begin, count, floats.data());
      convert_floats(dtype_of<From>, bytes.begin, count, same.data());
      bool equal = true;
      for (std::size_t i = 0; i < count; ++i) {
        equal = equal && doubles[i] == static_cast<double>(source[i]) &&
                floats[i] == static_cast<float>(source[i]) &&
                static_cast<double>(same[i]) == static_cast<double>(source[i]);
      }
      CHECK(equal);
    }
  }
}

TEST_CASE("half and bfloat16 are read from their own type only") {
  CHECK(converts_to<float>(DType::float64));
  CHECK(converts_to<double>(DType::bfloat16));
  CHECK(!converts_to<float>(DType::int32));
  CHECK(converts_to<half>(DType::float16));
  CHECK(!converts_to<half>(DType::bfloat16));
  CHECK(!converts_to<bfloat16>(DType::float32));
}

TEST_CASE_TEMPLATE("integers of every type keep their value", From, std::int64_t, std::int32_t,
                   std::int16_t, std::int8_t, std::uint64_t, std::uint32_t, std::uint16_t,
                   std::uint8_t) {
  const std::vector<From> source{0, 1, 77, std::numeric_limits<From>::max(),
                                 std::numeric_limits<From>::min()};
  const Misaligned bytes(std::as_bytes(std::span(source)), 3);
  std::vector<std::int64_t> values(source.size());
  const auto at = convert_integers(dtype_of<From>, bytes.begin, source.size(), values.data());
  if (std::is_same_v<From, std::uint64_t>) {
    CHECK(at == 3);
    return;
  }
  CHECK(!at);
  for (std::size_t i = 0; i < source.size(); ++i) {
    CHECK(values[i] == static_cast<std::int64_t>(source[i]));
  }
}

TEST_CASE("booleans are 0 and 1, and nothing else") {
  const std::vector<std::uint8_t> source{1, 0, 1, 2};
  const std::byte* const bytes = std::as_bytes(std::span(source)).data();
  std::vector<std::int64_t> values(4);
  CHECK(!convert_integers(DType::boolean, bytes, 3, values.data()));
  CHECK(values == std::vector<std::int64_t>{1, 0, 1, 0});
  CHECK(convert_integers(DType::boolean, bytes, 4, values.data()) == 3);
}

TEST_CASE_TEMPLATE("the first value that is not finite is found wherever it is", T, double, float,
                   half, bfloat16) {
  using Bits = detail::BitsOf<T>;
  constexpr Bits infinity = detail::exponent_mask<T>;
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  const Bits largest = static_cast<Bits>(infinity - 1);
  for (const std::size_t count : std::vector<std::size_t>{0, 1, 5, 1023, 1024, 1025, 2049, 3100}) {
    std::vector<T> values(count, from_bits<T>(static_cast<Bits>(largest | sign)));
    CHECK(!first_non_finite<T>(values));
    for (std::size_t i = 0; i < count; i += 1 + i / 7) {
      for (const Bits bad : {infinity, static_cast<Bits>(infinity | sign),
                             static_cast<Bits>(infinity + 1), static_cast<Bits>(~Bits{0})}) {
        values[i] = from_bits<T>(bad);
        values[count - 1] = from_bits<T>(bad);
        CHECK(first_non_finite<T>(values) == i);
        values[i] = values[count - 1] = from_bits<T>(largest);
      }
    }
  }
}

TEST_CASE("a double beyond float becomes an infinity, which is found") {
  const std::vector<double> source{1.0, 1e300};
  std::vector<float> values(2);
  convert_floats(DType::float64, std::as_bytes(std::span(source)).data(), 2, values.data());
  CHECK(first_non_finite<float>(values) == 1);
}

TEST_CASE("element counts are exact or nothing") {
  constexpr Index big = Index{1} << 40;
  CHECK(element_count({}) == 1);
  CHECK(element_count({3, 5}) == 15);
  CHECK(element_count({0}) == 0);
  CHECK(element_count({big, 0}) == 0);
  CHECK(!element_count({big, big}));
  CHECK(!element_count({0, big, big}));
  CHECK(!element_count({-1}));
  CHECK(element_count({std::numeric_limits<Index>::max()}) == std::numeric_limits<Index>::max());
  CHECK(!element_count({std::numeric_limits<Index>::max(), 2}));
}
