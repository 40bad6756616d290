// Token ids that someone else made: .npy arrays of integers, and bare 16- or 32-bit .bin files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/io/npy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

[[noreturn]] inline void refuse_ready_id(std::int64_t value, const std::string& where,
                                         std::size_t place) {
  throw DataError({.id = "corpus/id-out-of-range",
                   .where = where + ", element " + std::to_string(place),
                   .what = "not a token id",
                   .expected = "an integer from 0 to 2147483647",
                   .found = std::to_string(value),
                   .mend = "write token ids into the file"});
}

[[noreturn]] inline void refuse_size(std::size_t size, std::size_t width,
                                     const std::string& where) {
  throw FormatError({.id = "corpus/ragged-ids",
                     .where = where,
                     .what = "size is no whole number of ids",
                     .expected = "a multiple of " + std::to_string(width) + " bytes",
                     .found = std::to_string(size) + " bytes",
                     .mend = "choose the file's true format, or write it again"});
}

/// Ids, checked to be token ids.
template <class Values>
std::vector<TokenId> checked_ids(const Values& values, const std::string& where) {
  std::vector<TokenId> ids;
  ids.reserve(values.size());
  for (const std::int64_t value : values) {
    if (value < 0 || value > std::numeric_limits<TokenId>::max()) {
      refuse_ready_id(value, where, ids.size());
    }
    ids.push_back(static_cast<TokenId>(value));
  }
  return ids;
}

template <class Word>
std::vector<Word> words_of(std::string_view bytes, const std::string& where) {
  if (bytes.size() % sizeof(Word) != 0) refuse_size(bytes.size(), sizeof(Word), where);
  std::vector<Word> words(bytes.size() / sizeof(Word));
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

}  // namespace detail

/// Ids of a one-dimensional .npy array of integers. Throws FileError, FormatError, and DataError
/// for values that are no token ids.
inline std::vector<TokenId> read_npy_ids(const std::filesystem::path& path) {
  const NpyArray array(path);
  if (array.shape().size() != 1) {
    throw FormatError({.id = "corpus/ids-shape",
                       .where = path.string(),
                       .what = "token ids must be one-dimensional",
                       .expected = "[tokens]",
                       .found = shape_text(array.shape()),
                       .mend = "flatten the array, with a separator between documents"});
  }
  return detail::checked_ids(array.read_integers(), path.string());
}

/// Ids of a file of little-endian unsigned integers (`Word`: std::uint16_t, std::uint32_t) without
/// header. Throws FileError, FormatError, DataError.
template <class Word>
std::vector<TokenId> read_bare_ids(const std::filesystem::path& path) {
  const MappedFile file(path);
  return detail::checked_ids(detail::words_of<Word>(file.text(), path.string()), path.string());
}

/// True where bytes look like 32-bit ids rather than 16-bit ones: a whole number of them, each
/// below 2²⁰ and at least half of them below 2¹⁶. Of 16-bit ids, half of those at odd places would
/// have to be 0.
inline bool looks_like_32_bit_ids(std::string_view bytes) {
  if (bytes.size() % 4 != 0) return false;
  const std::vector<std::uint32_t> words = detail::words_of<std::uint32_t>(bytes, "");
  const auto below = [&words](std::uint32_t limit) {
    return static_cast<std::size_t>(std::count_if(
        words.begin(), words.end(), [limit](std::uint32_t word) { return word < limit; }));
  };
  return below(1u << 20) == words.size() && 2 * below(1u << 16) >= words.size();
}

/// A run of ids between separators.
struct IdRun {
  std::size_t begin = 0;  ///< element in the file
  std::vector<TokenId> ids{};
};

/// Cuts ids at each `separator`, which belongs to no run; empty runs are left out. Without
/// separator all ids are one run.
inline std::vector<IdRun> split_ids(std::span<const TokenId> ids,
                                    std::optional<TokenId> separator) {
  std::vector<IdRun> runs;
  std::size_t begin = 0;
  while (begin < ids.size()) {
    const auto rest = ids.subspan(begin);
    const auto end = separator ? std::find(rest.begin(), rest.end(), *separator) : rest.end();
    if (end != rest.begin()) runs.push_back({begin, {rest.begin(), end}});
    begin += static_cast<std::size_t>(end - rest.begin()) + 1;
  }
  return runs;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
