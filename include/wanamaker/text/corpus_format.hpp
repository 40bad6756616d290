// The forms in which files hold documents, and how they are told apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "wanamaker/text/decompression.hpp"
#include "wanamaker/text/ready_ids.hpp"
#include "wanamaker/text/wikitext.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How a file holds its documents.
enum class CorpusFormat : std::uint8_t {
  automatic,   ///< by extension, else by content: see detect_corpus_format
  plain_text,  ///< the file is one document
  wikitext,    ///< articles begun by " = Title = "
  json_lines,  ///< one object a line, with a text or ready `ids`
  csv,         ///< a header, then one document a record
  lambada,     ///< JSON lines of passages whose last words are to be predicted
  npy_ids,     ///< ready ids, a one-dimensional array of integers
  uint16_ids,  ///< ready ids, bare and little-endian
  uint32_ids,
};

namespace detail {

struct CorpusFormatName {
  CorpusFormat format;
  std::string_view name;
};

inline constexpr std::array<CorpusFormatName, 9> corpus_format_names{
    {{CorpusFormat::automatic, "auto"},
     {CorpusFormat::plain_text, "plain"},
     {CorpusFormat::wikitext, "wikitext"},
     {CorpusFormat::json_lines, "jsonl"},
     {CorpusFormat::csv, "csv"},
     {CorpusFormat::lambada, "lambada"},
     {CorpusFormat::npy_ids, "npy"},
     {CorpusFormat::uint16_ids, "uint16"},
     {CorpusFormat::uint32_ids, "uint32"}}};

inline std::string lower_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

}  // namespace detail

/// "wikitext", "jsonl", …: the names that options take.
constexpr std::string_view corpus_format_name(CorpusFormat format) {
  return detail::corpus_format_names[static_cast<std::size_t>(format)].name;
}

/// The format with this name, or nothing.
inline std::optional<CorpusFormat> corpus_format_of_name(std::string_view name) {
  for (const detail::CorpusFormatName& entry : detail::corpus_format_names) {
    if (entry.name == name) return entry.format;
  }
  return std::nullopt;
}

/// True for token ids that are read from where they lie in a file: neither packed nor piped.
constexpr bool holds_ready_ids(CorpusFormat format) {
  return format >= CorpusFormat::npy_ids;
}

/// The format of a file. By extension (of what is packed, in .jsonl.gz): .jsonl .ndjson .json are
/// JSON lines, .csv is CSV, .npy an array, .bin bare ids (32-bit where looks_like_32_bit_ids). Any
/// other file is wikitext where its first line that is not blank is a top-level heading, else plain
/// text. `bytes`: the file's, or where it is no .bin its first 64 KiB.
inline CorpusFormat detect_corpus_format(const std::filesystem::path& path,
                                         std::string_view bytes) {
  const std::string extension = detail::lower_extension(without_compression_ending(path));
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") {
    return CorpusFormat::json_lines;
  }
  if (extension == ".csv") return CorpusFormat::csv;
  if (extension == ".npy") return CorpusFormat::npy_ids;
  if (extension == ".bin") {
    return looks_like_32_bit_ids(bytes) ? CorpusFormat::uint32_ids : CorpusFormat::uint16_ids;
  }
  const std::size_t begin = std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size());
  const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
  return wikitext_title(bytes.substr(begin, end - begin)) ? CorpusFormat::wikitext
                                                          : CorpusFormat::plain_text;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
