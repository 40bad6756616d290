// The element types of GGUF files: how many elements a block has, and how many bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "wanamaker/core/version.hpp"
#include "wanamaker/io/dtype.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Types of elements that are read; the values are those of the files.
enum class GgufType : std::uint32_t {
  float32 = 0,
  float16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bfloat16 = 30,
};

namespace detail {

/// `bytes` hold `elements` consecutive elements of a row.
struct GgufTypeEntry {
  GgufType type;
  std::string_view name;
  std::size_t elements;
  std::size_t bytes;
};

inline constexpr std::array<GgufTypeEntry, 11> gguf_type_table{{
    {GgufType::float32, "F32", 1, 4},
    {GgufType::float16, "F16", 1, 2},
    {GgufType::bfloat16, "BF16", 1, 2},
    {GgufType::q4_0, "Q4_0", 32, 18},
    {GgufType::q4_1, "Q4_1", 32, 20},
    {GgufType::q5_0, "Q5_0", 32, 22},
    {GgufType::q5_1, "Q5_1", 32, 24},
    {GgufType::q8_0, "Q8_0", 32, 34},
    {GgufType::q4_k, "Q4_K", 256, 144},
    {GgufType::q5_k, "Q5_K", 256, 176},
    {GgufType::q6_k, "Q6_K", 256, 210},
}};

/// Names of all types that files may have, by number, for messages; empty: removed ones.
inline constexpr std::array<std::string_view, 40> gguf_type_names{
    "F32",     "F16",    "Q4_0",    "Q4_1",  "",       "",      "Q5_0",  "Q5_1",
    "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
    "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
    "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16",  "",
    "",        "",       "TQ1_0",   "TQ2_0", "",       "",      "",      "MXFP4"};

inline const GgufTypeEntry* find_gguf_type(std::uint32_t number) {
  for (const GgufTypeEntry& entry : gguf_type_table) {
    if (static_cast<std::uint32_t>(entry.type) == number) return &entry;
  }
  return nullptr;
}

inline const GgufTypeEntry& gguf_type_entry(GgufType type) {
  return *find_gguf_type(static_cast<std::uint32_t>(type));
}

}  // namespace detail

/// "Q4_K"
inline std::string_view gguf_type_name(GgufType type) {
  return detail::gguf_type_entry(type).name;
}

/// Elements that are stored together; a row has a multiple of them.
inline std::size_t block_elements(GgufType type) {
  return detail::gguf_type_entry(type).elements;
}

/// Bytes of one block.
inline std::size_t block_bytes(GgufType type) {
  return detail::gguf_type_entry(type).bytes;
}

/// The same type in other tensor files; nothing for quantised ones.
inline std::optional<DType> dtype_of_gguf(GgufType type) {
  if (type == GgufType::float32) return DType::float32;
  if (type == GgufType::float16) return DType::float16;
  if (type == GgufType::bfloat16) return DType::bfloat16;
  return std::nullopt;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
