// The files of a corpus: one, or all below a folder.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/byte_source.hpp"
#include "wanamaker/text/corpus_format.hpp"
#include "wanamaker/text/decompression.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A file, and what documents that do not name themselves are called.
struct CorpusFile {
  std::filesystem::path path{};
  std::string name{};
};

/// True for files that are read where they lie in a folder: .txt .text .raw .md .jsonl .ndjson
/// .json .csv .npy .bin, and these with .gz, .gzip, .bgz, .zst or .zstd behind.
inline bool has_corpus_ending(const std::filesystem::path& path) {
  const std::string extension = detail::lower_extension(without_compression_ending(path));
  for (const char* known :
       {".txt", ".text", ".raw", ".md", ".jsonl", ".ndjson", ".json", ".csv", ".npy", ".bin"}) {
    if (extension == known) return true;
  }
  return false;
}

namespace detail {

inline std::vector<CorpusFile> files_below(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<CorpusFile> files;
  std::error_code error;
  // Links to folders are not followed: they could lead round in circles.
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    if (!entry->is_regular_file(unreadable) || !has_corpus_ending(entry->path())) continue;
    files.push_back({entry->path(), entry->path().lexically_relative(folder).generic_string()});
  }
  if (error) throw_file_error(error.value(), folder, "cannot list", "a readable folder");
  std::sort(files.begin(), files.end(),
            [](const CorpusFile& a, const CorpusFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace detail

/// The file itself (or "-"); for a folder all files below it with known endings
/// (has_corpus_ending), sorted by their paths within it, which are their names too. Throws
/// FileError for a folder that cannot be listed or has no such file.
inline std::vector<CorpusFile> corpus_files(const std::filesystem::path& path) {
  std::error_code error;
  if (is_standard_input(path) || !std::filesystem::is_directory(path, error)) {
    return {{path, is_standard_input(path) ? name_of_input(path) : path.filename().string()}};
  }
  std::vector<CorpusFile> files = detail::files_below(path);
  if (!files.empty()) return files;
  throw FileError({.id = "corpus/empty-folder",
                   .where = path.string(),
                   .what = "no text in this folder",
                   .expected = "files that end in .txt, .raw, .md, .jsonl, .json, .csv, .npy or "
                               ".bin, packed or not",
                   .mend = "name the files, or another folder"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
