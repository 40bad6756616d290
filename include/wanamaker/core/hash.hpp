// SHA-256 (FIPS 180-4): the one content hash of texts, token ids and settings. It depends on bytes
// alone, and `sha256sum` gives the same digest for the same bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline constexpr std::array<std::uint32_t, 64> sha256_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace detail

/// SHA-256 of a sequence of bytes given in pieces; how it is cut does not matter.
class Sha256 {
 public:
  Sha256& update(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    length_ += size;
    if (pending_ > 0) {
      const std::size_t room = block_.size() - pending_;
      const std::size_t taken = size < room ? size : room;
      std::memcpy(block_.data() + pending_, bytes, taken);
      pending_ += taken;
      bytes += taken;
      size -= taken;
      if (pending_ < block_.size()) return *this;
      compress(block_.data());
    }
    for (; size >= block_.size(); bytes += block_.size(), size -= block_.size()) compress(bytes);
    pending_ = size;
    if (size > 0) std::memcpy(block_.data(), bytes, size);
    return *this;
  }

  Sha256& update(std::string_view text) { return update(text.data(), text.size()); }

  /// A number as eight bytes, least significant first, on every machine.
  Sha256& update_number(std::uint64_t value) {
    std::array<unsigned char, 8> bytes{};
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
    return update(bytes.data(), bytes.size());
  }

  /// A text with its length before it, so that ("ab", "c") and ("a", "bc") differ.
  Sha256& update_field(std::string_view text) { return update_number(text.size()).update(text); }

  /// The digest of all bytes so far, 64 lower-case hexadecimal digits. More may follow.
  std::string hex() const {
    Sha256 last = *this;
    last.pad();
    std::string digits;
    for (const std::uint32_t word : last.state_) {
      for (int shift = 28; shift >= 0; shift -= 4) {
        digits += "0123456789abcdef"[(word >> shift) & 15u];
      }
    }
    return digits;
  }

 private:
  void pad() {
    const std::uint64_t bits = length_ * 8;
    const std::array<unsigned char, 64> padding{0x80};
    update(padding.data(), 1 + (119 - pending_) % 64);
    std::array<unsigned char, 8> size{};
    for (std::size_t i = 0; i < 8; ++i) {
      size[i] = static_cast<unsigned char>(bits >> (8 * (7 - i)));
    }
    update(size.data(), size.size());
  }

  void compress(const unsigned char* block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t t = 0; t < 16; ++t) {
      w[t] = (std::uint32_t{block[4 * t]} << 24) | (std::uint32_t{block[4 * t + 1]} << 16) |
             (std::uint32_t{block[4 * t + 2]} << 8) | std::uint32_t{block[4 * t + 3]};
    }
    for (std::size_t t = 16; t < 64; ++t) {
      const std::uint32_t a = w[t - 15], b = w[t - 2];
      w[t] = w[t - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[t - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t t = 0; t < 64; ++t) {
      const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                               ((e & f) ^ (~e & g)) + detail::sha256_constants[t] + w[t];
      const std::uint32_t t2 =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> sum{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += sum[i];
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  std::size_t pending_ = 0;
  std::uint64_t length_ = 0;
};

/// SHA-256 of one text, as 64 hexadecimal digits.
inline std::string sha256_hex(std::string_view text) {
  return Sha256().update(text).hex();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
