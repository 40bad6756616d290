// Blocks of quantised elements to floats, and floats to Q8_0: the arithmetic of the format's
// reference, operation for operation, so that results are equal bit for bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wanamaker/core/half.hpp"
#include "wanamaker/io/convert.hpp"
#include "wanamaker/io/gguf_type.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// The bytes of one block, at any alignment.
class GgufBlock {
 public:
  explicit GgufBlock(const std::byte* bytes) : bytes_(bytes) {}
  unsigned byte(std::size_t at) const { return std::to_integer<unsigned>(bytes_[at]); }
  float signed_byte(std::size_t at) const {
    return static_cast<float>(static_cast<std::int8_t>(byte(at)));
  }
  float half_at(std::size_t at) const {
    return float_from_half_bits(static_cast<std::uint16_t>(byte(at) | (byte(at + 1) << 8)));
  }
  /// Bit i of the little-endian bits that begin at `at`.
  unsigned bit(std::size_t at, std::size_t i) const { return (byte(at + i / 8) >> (i % 8)) & 1u; }
  /// Nibble of element i < 32: the lower ones of 16 bytes, then the upper ones.
  unsigned nibble(std::size_t at, std::size_t i) const {
    return i < 16 ? byte(at + i) & 15u : byte(at + i - 16) >> 4;
  }

 private:
  const std::byte* bytes_;
};

/// Exact but for the sum: scale has at most 17 significant bits and q 5, so that a fused
/// multiply-add gives the same.
inline float scaled_and_shifted(float scale, unsigned q, float shift) {
  return scale * static_cast<float>(q) + shift;
}

inline void dequantize_q4_0(GgufBlock b, float* out) {
  const float d = b.half_at(0);
  for (std::size_t i = 0; i < 32; ++i) out[i] = d * (static_cast<float>(b.nibble(2, i)) - 8.0f);
}

inline void dequantize_q4_1(GgufBlock b, float* out) {
  const float d = b.half_at(0), m = b.half_at(2);
  for (std::size_t i = 0; i < 32; ++i) out[i] = scaled_and_shifted(d, b.nibble(4, i), m);
}

inline void dequantize_q5_0(GgufBlock b, float* out) {
  const float d = b.half_at(0);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned q = b.nibble(6, i) | (b.bit(2, i) << 4);
    out[i] = d * (static_cast<float>(q) - 16.0f);
  }
}

inline void dequantize_q5_1(GgufBlock b, float* out) {
  const float d = b.half_at(0), m = b.half_at(2);
  for (std::size_t i = 0; i < 32; ++i) {
    out[i] = scaled_and_shifted(d, b.nibble(8, i) | (b.bit(4, i) << 4), m);
  }
}

inline void dequantize_q8_0(GgufBlock b, float* out) {
  const float d = b.half_at(0);
  for (std::size_t i = 0; i < 32; ++i) out[i] = b.signed_byte(2 + i) * d;
}

/// 6-bit scale and minimum of sub-block j < 8, packed into the 12 bytes at 4.
struct SubBlockScale {
  unsigned scale, minimum;
};
inline SubBlockScale sub_block_scale(GgufBlock b, std::size_t j) {
  if (j < 4) return {b.byte(4 + j) & 63u, b.byte(8 + j) & 63u};
  const unsigned low = b.byte(8 + j);
  return {(low & 15u) | ((b.byte(j) >> 2) & 48u), (low >> 4) | ((b.byte(4 + j) >> 2) & 48u)};
}

/// Q4_K and Q5_K: eight sub-blocks of 32; `quantum(j, i)` is element i of sub-block j.
template <class Quantum>
void dequantize_sub_blocks(GgufBlock b, Quantum quantum, float* out) {
  const float d = b.half_at(0), minimum = b.half_at(2);
  for (std::size_t j = 0; j < 8; ++j) {
    const SubBlockScale sub = sub_block_scale(b, j);
    const float scale = d * static_cast<float>(sub.scale);
    const float shift = minimum * static_cast<float>(sub.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      out[32 * j + i] = scaled_and_shifted(scale, quantum(j, i), -shift);
    }
  }
}

/// Nibble i of sub-block j: pairs of sub-blocks share 32 bytes.
inline unsigned paired_nibble(GgufBlock b, std::size_t at, std::size_t j, std::size_t i) {
  return (b.byte(at + j / 2 * 32 + i) >> (j % 2 * 4)) & 15u;
}

inline void dequantize_q4_k(GgufBlock b, float* out) {
  dequantize_sub_blocks(
      b, [b](std::size_t j, std::size_t i) { return paired_nibble(b, 16, j, i); }, out);
}

inline void dequantize_q5_k(GgufBlock b, float* out) {
  const auto quantum = [b](std::size_t j, std::size_t i) {
    return paired_nibble(b, 48, j, i) | (((b.byte(16 + i) >> j) & 1u) << 4);
  };
  dequantize_sub_blocks(b, quantum, out);
}

/// Element i: 4 lower bits from 128 bytes, 2 upper bits from 64, a scale for every 16.
inline void dequantize_q6_k(GgufBlock b, float* out) {
  const float d = b.half_at(208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128, within = i % 128;
    const unsigned low = (b.byte(64 * half + within % 64) >> (within / 64 * 4)) & 15u;
    const unsigned high = (b.byte(128 + 32 * half + within % 32) >> (within / 32 * 2)) & 3u;
    const float scale = d * b.signed_byte(192 + i / 16);
    out[i] = scale * (static_cast<float>(low | (high << 4)) - 32.0f);
  }
}

using Dequantizer = void (*)(GgufBlock, float*);

inline Dequantizer dequantizer_of(GgufType type) {
  switch (type) {
    case GgufType::q4_0:
      return dequantize_q4_0;
    case GgufType::q4_1:
      return dequantize_q4_1;
    case GgufType::q5_0:
      return dequantize_q5_0;
    case GgufType::q5_1:
      return dequantize_q5_1;
    case GgufType::q8_0:
      return dequantize_q8_0;
    case GgufType::q4_k:
      return dequantize_q4_k;
    case GgufType::q5_k:
      return dequantize_q5_k;
    case GgufType::q6_k:
      return dequantize_q6_k;
    default:
      return nullptr;
  }
}

}  // namespace detail

/// Elements of a file to floats; `count` is a multiple of block_elements(type). `from` may have any
/// alignment.
inline void dequantize(GgufType type, const std::byte* from, std::size_t count, float* to) {
  if (const auto dtype = dtype_of_gguf(type)) {
    convert_floats(*dtype, from, count, to);
    return;
  }
  const detail::Dequantizer one_block = detail::dequantizer_of(type);
  const std::size_t elements = block_elements(type), bytes = block_bytes(type);
  for (std::size_t i = 0; i < count; i += elements, from += bytes) {
    one_block(detail::GgufBlock(from), to + i);
  }
}

/// 32 floats to one block of Q8_0 (34 bytes): scale d = max|x| / 127 as a half, then x/d rounded to
/// the nearest integer, halves away from zero.
inline void quantize_q8_0(const float* from, std::byte* to) {
  float largest = 0;
  for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(from[i]));
  const float d = largest / 127.0f;
  const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
  const std::uint16_t scale = half_bits_from_float(d);
  std::memcpy(to, &scale, sizeof scale);
  for (std::size_t i = 0; i < 32; ++i) {
    const float scaled = from[i] * inverse;
    to[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::round(scaled)));
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
