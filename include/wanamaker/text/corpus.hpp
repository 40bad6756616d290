// Corpora: the documents of a file, whatever its form.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/text/document.hpp"
#include "wanamaker/text/ready_ids.hpp"
#include "wanamaker/text/rows.hpp"
#include "wanamaker/text/utf8.hpp"
#include "wanamaker/text/wikitext.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How a file holds its documents.
enum class CorpusFormat : std::uint8_t {
  automatic,   ///< by extension, else by content: see detect_corpus_format
  plain_text,  ///< the file is one document
  wikitext,    ///< articles begun by " = Title = "
  json_lines,  ///< one object a line, with `text` or ready `ids`
  npy_ids,     ///< ready ids, a one-dimensional array of integers
  uint16_ids,  ///< ready ids, bare and little-endian
  uint32_ids,
};

namespace detail {

struct CorpusFormatName {
  CorpusFormat format;
  std::string_view name;
};

inline constexpr std::array<CorpusFormatName, 7> corpus_format_names{
    {{CorpusFormat::automatic, "auto"},
     {CorpusFormat::plain_text, "plain"},
     {CorpusFormat::wikitext, "wikitext"},
     {CorpusFormat::json_lines, "jsonl"},
     {CorpusFormat::npy_ids, "npy"},
     {CorpusFormat::uint16_ids, "uint16"},
     {CorpusFormat::uint32_ids, "uint32"}}};

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

/// How to read a corpus.
struct CorpusOptions {
  CorpusFormat format = CorpusFormat::automatic;
  /// Ready ids in .npy and .bin: the id that ends a document. Without it a file is one document.
  std::optional<TokenId> separator{};
};

/// The format of a file. By extension: .jsonl .ndjson .json are JSON lines, .npy an array, .bin
/// bare ids (32-bit where looks_like_32_bit_ids). Any other file is wikitext where its first line
/// that is not blank is a top-level heading, else plain text.
inline CorpusFormat detect_corpus_format(const std::filesystem::path& path,
                                         std::string_view bytes) {
  std::string extension = path.extension().string();
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") {
    return CorpusFormat::json_lines;
  }
  if (extension == ".npy") return CorpusFormat::npy_ids;
  if (extension == ".bin") {
    return looks_like_32_bit_ids(bytes) ? CorpusFormat::uint32_ids : CorpusFormat::uint16_ids;
  }
  const std::size_t begin = std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size());
  const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
  return wikitext_title(bytes.substr(begin, end - begin)) ? CorpusFormat::wikitext
                                                          : CorpusFormat::plain_text;
}

namespace detail {

/// Reads one JSON line. The object has either `text` or `ids`; `name`, `title` or `id` names it.
class JsonLine {
 public:
  JsonLine(std::string_view line, std::string where)
      : where_(std::move(where)), record_(parse_json(line, where_)) {
    if (!record_.is_object()) refuse("an object", record_.type_name());
  }

  Document document(std::string fallback_name) const {
    Document document{.name = name(std::move(fallback_name)), .source = where_};
    const auto text = record_.find("text");
    const auto ids = record_.find("ids");
    const bool has_text = text != record_.end(), has_ids = ids != record_.end();
    if (has_text == has_ids) refuse("either 'text' or 'ids'", has_text ? "both" : "neither");
    if (has_text) {
      if (!text->is_string()) refuse("a string as 'text'", text->type_name());
      document.content = text->get<std::string>();
    } else {
      document.content = read_ids(*ids);
    }
    return document;
  }

 private:
  std::string name(std::string fallback) const {
    for (const char* key : {"name", "title", "id"}) {
      const auto value = record_.find(key);
      if (value == record_.end()) continue;
      if (value->is_string()) return value->get<std::string>();
      if (value->is_number_integer()) return value->dump();
    }
    return fallback;
  }

  std::vector<TokenId> read_ids(const Json& values) const {
    if (!values.is_array()) refuse("an array as 'ids'", values.type_name());
    std::vector<TokenId> ids;
    ids.reserve(values.size());
    for (const Json& value : values) {
      const bool fits = value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
                        value.get<std::int64_t>() <= std::numeric_limits<TokenId>::max();
      if (!fits) {
        refuse("integers from 0 to 2147483647 as 'ids'",
               shortened(value.dump(), 40) + " at place " + std::to_string(ids.size()));
      }
      ids.push_back(value.get<TokenId>());
    }
    return ids;
  }

  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw FormatError({.id = "corpus/json-line",
                       .where = where_,
                       .what = "unusable line",
                       .expected = expected,
                       .found = found,
                       .mend = "give every line one object with 'text' or 'ids'"});
  }

  std::string where_;
  Json record_;
};

/// Visits the documents of one file, numbering them.
template <class Visit>
class CorpusReader {
 public:
  CorpusReader(const std::filesystem::path& path, const CorpusOptions& options, Visit& visit)
      : path_(path), options_(options), visit_(visit) {}

  void read() {
    const MappedFile file(path_);
    const CorpusFormat format = options_.format == CorpusFormat::automatic
                                    ? detect_corpus_format(path_, file.text())
                                    : options_.format;
    switch (format) {
      case CorpusFormat::npy_ids:
        return read_ids(read_npy_ids(path_));
      case CorpusFormat::uint16_ids:
        return read_ids(read_bare_ids<std::uint16_t>(path_));
      case CorpusFormat::uint32_ids:
        return read_ids(read_bare_ids<std::uint32_t>(path_));
      default:
        read_text(format, file.text());
    }
  }

  bool found_content() const { return found_content_; }

 private:
  std::string place(Index line) const {
    return path_.string() + ", line " + std::to_string(line + 1);
  }

  void add(Document document) {
    document.index = count_++;
    found_content_ = found_content_ || !document.is_empty();
    visit_(std::move(document));
  }

  void read_text(CorpusFormat format, std::string_view text) {
    check_utf8(text, path_.string());
    if (format == CorpusFormat::json_lines) return read_json_lines(text);
    if (format == CorpusFormat::wikitext) return read_wikitext(text);
    add({.name = path_.filename().string(),
         .source = path_.string(),
         .content = std::string(text)});
  }

  void read_wikitext(std::string_view text) {
    for (const WikitextArticle& article : split_wikitext(text)) {
      add({.name = article.title.empty() ? path_.filename().string() : std::string(article.title),
           .source = place(article.line),
           .content = std::string(article.text)});
    }
  }

  void read_json_lines(std::string_view text) {
    for_each_row(text, [&](const Row& row) {
      if (is_blank(row.text)) return;
      const JsonLine line(row.line(), place(row.number));
      add(line.document(path_.filename().string() + ":" + std::to_string(row.number + 1)));
    });
  }

  void read_ids(const std::vector<TokenId>& ids) {
    for (IdRun& run : split_ids(ids, options_.separator)) {
      const std::string element = std::to_string(run.begin);
      const bool whole = !options_.separator;
      add({.name = path_.filename().string() + (whole ? "" : ":" + element),
           .source = path_.string() + ", element " + element,
           .content = std::move(run.ids)});
    }
  }

  const std::filesystem::path& path_;
  const CorpusOptions& options_;
  Visit& visit_;
  Index count_ = 0;
  bool found_content_ = false;
};

}  // namespace detail

/// Calls `visit(Document&&)` for each document of a file in order, one in memory at a time, with
/// `index` counted from 0. Throws FileError, FormatError, and DataError for invalid UTF-8 and for a
/// file in which no document has any text or ids; each names the file and the line, byte or
/// element.
template <class Visit>
void for_each_document(const std::filesystem::path& path, const CorpusOptions& options,
                       Visit&& visit) {
  detail::CorpusReader reader(path, options, visit);
  reader.read();
  if (reader.found_content()) return;
  throw DataError({.id = "corpus/empty",
                   .where = path.string(),
                   .what = "empty text",
                   .expected = "at least one word or token id",
                   .found = "none",
                   .mend = "give a file with text"});
}

/// Documents in order, in memory.
struct Corpus {
  std::vector<Document> documents{};

  /// SHA-256 of the documents' contents in order; names and places do not count.
  std::string content_hash() const {
    Sha256 hash;
    hash.update_field("wanamaker corpus 1");
    for (const Document& document : documents) {
      hash.update_number(document.has_text() ? 0 : 1);
      if (document.has_text()) {
        hash.update_field(document.text());
        continue;
      }
      hash.update_number(document.ids().size());
      for (const TokenId id : document.ids()) hash.update_number(static_cast<std::uint64_t>(id));
    }
    return hash.hex();
  }
};

/// All documents of several files, in order, numbered through. Throws as for_each_document.
inline Corpus read_corpus(std::span<const std::filesystem::path> paths,
                          const CorpusOptions& options = {}) {
  Corpus corpus;
  for (const std::filesystem::path& path : paths) {
    for_each_document(path, options, [&corpus](Document document) {
      document.index = static_cast<Index>(corpus.documents.size());
      corpus.documents.push_back(std::move(document));
    });
  }
  return corpus;
}

/// All documents of one file. Throws as for_each_document.
inline Corpus read_corpus(const std::filesystem::path& path, const CorpusOptions& options = {}) {
  return read_corpus(std::span(&path, 1), options);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
