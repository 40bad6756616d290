// Corpora: the documents of a file, a folder or standard input, whatever their form.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
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
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/text/byte_source.hpp"
#include "wanamaker/text/corpus_files.hpp"
#include "wanamaker/text/corpus_format.hpp"
#include "wanamaker/text/csv.hpp"
#include "wanamaker/text/decompression.hpp"
#include "wanamaker/text/detokenisation.hpp"
#include "wanamaker/text/document.hpp"
#include "wanamaker/text/json_line.hpp"
#include "wanamaker/text/ready_ids.hpp"
#include "wanamaker/text/rows.hpp"
#include "wanamaker/text/text_source.hpp"
#include "wanamaker/text/wikitext.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How to read a corpus.
struct CorpusOptions {
  CorpusFormat format = CorpusFormat::automatic;
  /// Ready ids in .npy and .bin: the id that ends a document. Without it a file is one document.
  std::optional<TokenId> separator{};
  /// Where the text is: a key of JSON lines (a JSON pointer where it begins with '/'), a column of
  /// CSV. Without it `text`, or in JSON lines ready `ids`.
  std::optional<std::string> field{};
  Detokenisation detokenisation = Detokenisation::none;
  /// Bytes of a document that is held in memory, at most.
  std::size_t largest_document = std::size_t{1} << 30;
};

namespace detail {

/// Reads the documents of one file into a sink, part by part: begin(Document), which has no content
/// yet, text(std::string_view) any number of times and end(); or whole(Document) for ready ids. The
/// text of a plain file comes in pieces, so that it need not fit into memory.
template <class Sink>
class CorpusFileReader {
 public:
  CorpusFileReader(const CorpusFile& file, const CorpusOptions& options, Sink& sink)
      : file_(file), options_(options), sink_(sink) {}

  void read() {
    const CorpusFormat by_name = options_.format == CorpusFormat::automatic
                                     ? detect_corpus_format(file_.path, "")
                                     : options_.format;
    if (holds_ready_ids(by_name)) return read_ready_ids();
    TextSource text = open_text(file_.path);
    constexpr std::size_t enough = std::size_t{1} << 16;
    read_text(options_.format == CorpusFormat::automatic
                  ? detect_corpus_format(file_.path, text.peek(enough))
                  : options_.format,
              text);
  }

 private:
  /// By the file itself, since the width of bare ids depends on all of them.
  void read_ready_ids() {
    if (is_standard_input(file_.path)) refuse_ready_ids("standard input");
    const MappedFile mapped(file_.path);
    if (compression_of(mapped.text()) != Compression::none) refuse_ready_ids("a packed file");
    const CorpusFormat format = options_.format == CorpusFormat::automatic
                                    ? detect_corpus_format(file_.path, mapped.text())
                                    : options_.format;
    if (format == CorpusFormat::npy_ids) return give_ids(read_npy_ids(file_.path));
    give_ids(format == CorpusFormat::uint16_ids ? read_bare_ids<std::uint16_t>(file_.path)
                                                : read_bare_ids<std::uint32_t>(file_.path));
  }

  void read_text(CorpusFormat format, TextSource& text) {
    switch (format) {
      case CorpusFormat::json_lines:
        return read_json_lines(text, options_.field);
      case CorpusFormat::lambada:
        return read_json_lines(text, options_.field.value_or("text"));
      case CorpusFormat::wikitext:
        return read_wikitext(text);
      case CorpusFormat::csv:
        return read_csv(text);
      default:
        return read_plain(text);
    }
  }

  void read_plain(TextSource& text) {
    sink_.begin({.name = file_.name, .source = name_of_input(file_.path)});
    for (std::string_view piece = text.next(); !piece.empty(); piece = text.next()) {
      sink_.text(piece);
    }
    sink_.end();
  }

  void read_wikitext(TextSource& text) {
    WikitextSplitter splitter(text.where(), options_.largest_document,
                              [&](WikitextArticle article) {
                                give(article.title.empty() ? file_.name : std::move(article.title),
                                     article.line, article.text);
                              });
    for_each_row(text, options_.largest_document, [&](const Row& row) { splitter.add(row); });
    splitter.finish();
  }

  void read_json_lines(TextSource& text, const std::optional<std::string>& field) {
    check_field(field);
    for_each_row(text, options_.largest_document, [&](const Row& row) {
      if (is_blank(row.text)) return;
      const JsonLine line(row.line(), place(row.number), field);
      Document document = line.document(numbered_name(row.number));
      if (!document.has_text()) return sink_.whole(std::move(document));
      const std::string content = std::get<std::string>(std::move(document.content));
      document.content = std::string();
      sink_.begin(std::move(document));
      sink_.text(content);
      sink_.end();
    });
  }

  void read_csv(TextSource& text) {
    std::optional<CsvColumns> columns;
    CsvReader reader(text.where(), options_.largest_document, [&](CsvRecord record) {
      if (!columns) {
        columns.emplace(std::move(record), options_.field.value_or("text"), text.where());
        return;
      }
      columns->check(record);
      const std::optional<std::size_t> name = columns->name();
      give(name ? record.fields[*name] : numbered_name(record.line), record.line,
           record.fields[columns->text()]);
    });
    for (std::string_view piece = text.next(); !piece.empty(); piece = text.next()) {
      reader.add(piece);
    }
    reader.finish();
  }

  void give(std::string name, Index line, std::string_view content) {
    sink_.begin({.name = std::move(name), .source = place(line)});
    sink_.text(content);
    sink_.end();
  }

  void give_ids(const std::vector<TokenId>& ids) {
    for (IdRun& run : split_ids(ids, options_.separator)) {
      const std::string element = std::to_string(run.begin);
      sink_.whole({.name = file_.name + (options_.separator ? ":" + element : ""),
                   .source = file_.path.string() + ", element " + element,
                   .content = std::move(run.ids)});
    }
  }

  [[noreturn]] void refuse_ready_ids(const std::string& found) const {
    throw FormatError({.id = "corpus/ids-not-plain",
                       .where = name_of_input(file_.path),
                       .what = "token ids cannot be read from here",
                       .expected = "a regular file that is not packed",
                       .found = found,
                       .mend = "unpack it, or give the ids as JSON lines"});
  }

  std::string place(Index line) const {
    return name_of_input(file_.path) + ", line " + std::to_string(line + 1);
  }
  std::string numbered_name(Index line) const {
    return file_.name + ":" + std::to_string(line + 1);
  }

  const CorpusFile& file_;
  const CorpusOptions& options_;
  Sink& sink_;
};

/// Passes parts on, and sees to it that documents are numbered and that some have content.
template <class Sink>
class CountingSink {
 public:
  explicit CountingSink(Sink& sink) : sink_(sink) {}

  void begin(Document document) {
    document.index = count_++;
    sink_.begin(std::move(document));
  }
  void text(std::string_view piece) {
    found_content_ = found_content_ || !is_blank(piece);
    sink_.text(piece);
  }
  void end() { sink_.end(); }
  void whole(Document document) {
    document.index = count_++;
    found_content_ = found_content_ || !document.is_empty();
    sink_.whole(std::move(document));
  }

  void check_content(const std::filesystem::path& path) {
    if (std::exchange(found_content_, false)) return;
    throw DataError({.id = "corpus/empty",
                     .where = name_of_input(path),
                     .what = "empty text",
                     .expected = "at least one word or token id",
                     .found = "none",
                     .mend = "give a file with text"});
  }

 private:
  Sink& sink_;
  Index count_ = 0;
  bool found_content_ = false;
};

/// Makes documents of parts.
template <class Visit>
class DocumentAssembler {
 public:
  DocumentAssembler(const CorpusOptions& options, Visit& visit)
      : options_(options), visit_(visit) {}

  void begin(Document document) {
    document_ = std::move(document);
    content_.clear();
  }
  void text(std::string_view piece) {
    if (content_.size() + piece.size() > options_.largest_document) {
      refuse_large_document(document_.source, options_.largest_document);
    }
    content_.append(piece);
  }
  void end() {
    if (options_.detokenisation != Detokenisation::none) {
      document_.given = TextSize{static_cast<Index>(content_.size()), count_words(content_)};
      content_ = detokenise(content_, options_.detokenisation);
    }
    document_.content = std::move(content_);
    visit_(std::move(document_));
  }
  void whole(Document document) { visit_(std::move(document)); }

 private:
  const CorpusOptions& options_;
  Visit& visit_;
  Document document_;
  std::string content_;
};

/// Reads the documents of several files and folders into a sink, as CorpusFileReader does, numbered
/// through.
template <class Sink>
void read_parts(std::span<const std::filesystem::path> paths, const CorpusOptions& options,
                Sink& sink) {
  if (std::count_if(paths.begin(), paths.end(), is_standard_input) > 1) {
    throw ProtocolError({.id = "protocol/standard-input-twice",
                         .where = "--text -",
                         .what = "standard input can be read only once",
                         .expected = "one -",
                         .found = "several",
                         .mend = "leave out all but one"});
  }
  CountingSink counting(sink);
  for (const std::filesystem::path& path : paths) {
    for (const CorpusFile& file : corpus_files(path)) {
      CorpusFileReader(file, options, counting).read();
      counting.check_content(file.path);
    }
  }
}

}  // namespace detail

/// Calls `visit(Document&&)` for each document of some files and folders in order, one in memory at
/// a time, with `index` counted from 0. "-" is standard input. Throws FileError, FormatError, and
/// DataError for invalid UTF-8, for a document beyond `largest_document` and for a file in which no
/// document has any text or ids; each names the file and the line, byte or element.
template <class Visit>
void for_each_document(std::span<const std::filesystem::path> paths, const CorpusOptions& options,
                       Visit&& visit) {
  detail::DocumentAssembler assembler(options, visit);
  detail::read_parts(paths, options, assembler);
}

/// The same of one file or folder.
template <class Visit>
void for_each_document(const std::filesystem::path& path, const CorpusOptions& options,
                       Visit&& visit) {
  for_each_document(std::span(&path, 1), options, visit);
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

/// All documents of several files and folders, in order, numbered through. Throws as
/// for_each_document.
inline Corpus read_corpus(std::span<const std::filesystem::path> paths,
                          const CorpusOptions& options = {}) {
  Corpus corpus;
  for_each_document(paths, options, [&corpus](Document document) {
    corpus.documents.push_back(std::move(document));
  });
  return corpus;
}

/// All documents of one file or folder. Throws as for_each_document.
inline Corpus read_corpus(const std::filesystem::path& path, const CorpusOptions& options = {}) {
  return read_corpus(std::span(&path, 1), options);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
