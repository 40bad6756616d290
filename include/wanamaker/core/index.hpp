// Integer types and checked arithmetic on sizes that come from untrusted files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Rows, columns, token positions: signed, so that differences are safe.
using Index = std::ptrdiff_t;
/// A vocabulary entry.
using TokenId = std::int32_t;

/// a · b, or nothing where it overflows.
constexpr std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) return std::nullopt;
  return a * b;
}

/// a + b, or nothing where it overflows.
constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  if (b > std::numeric_limits<std::uint64_t>::max() - a) return std::nullopt;
  return a + b;
}

/// Number of blocks of `size` that cover `n`.
constexpr Index blocks_of(Index n, Index size) {
  return (n + size - 1) / size;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
