// CSV (RFC 4180), read piece by piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/rows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One record of a CSV file.
struct CsvRecord {
  std::vector<std::string> fields{};
  Index line = 0;  ///< where it begins, from 0; quoted fields may have line feeds
};

/// Fields are separated by commas, records end with LF or CRLF; a field in quotes may have commas,
/// line feeds, and quotes written twice. Blank lines are no records.
template <class Visit>
class CsvReader {
 public:
  /// `visit(record)` is called for each; `where` names the file, and more than `largest` bytes of a
  /// record throw DataError.
  CsvReader(std::string where, std::size_t largest, Visit visit)
      : where_(std::move(where)), largest_(largest), visit_(std::move(visit)) {}

  /// The next piece of the file, cut anywhere. Throws FormatError with the line for quotes that
  /// stand where none may.
  void add(std::string_view piece) {
    while (!piece.empty()) {
      const std::size_t plain = std::min(piece.find_first_of(stops()), piece.size());
      add_plain(piece.substr(0, plain));
      piece.remove_prefix(plain);
      if (piece.empty()) return;
      add_special(piece.front());
      piece.remove_prefix(1);
    }
  }

  /// The file has ended. Throws FormatError, naming the line where it began, for a quote that is
  /// never closed.
  void finish() {
    if (state_ == State::quoted) {
      refuse(quote_line_, "a quoted field is never closed", "a closing quote",
             "the end of the file");
    }
    if (state_ != State::begin || !record_.fields.empty()) end_record();
  }

 private:
  static constexpr std::size_t most_fields = 65536;

  enum class State : std::uint8_t {
    begin,     // of a field
    plain,     // in a field without quotes
    quoted,    // between quotes
    closed,    // after a quote that closes, or is the first of two
    returned,  // after such a quote and a carriage return
  };

  /// What ends a run of bytes that are the field's own.
  std::string_view stops() const { return state_ == State::quoted ? "\"" : ",\"\n\r"; }

  void add_plain(std::string_view bytes) {
    if (bytes.empty()) return;
    if (state_ == State::closed || state_ == State::returned) refuse_after_quote();
    if (state_ == State::begin) state_ = State::plain;
    size_ += bytes.size();
    if (size_ > largest_) detail::refuse_large_document(place(record_.line), largest_);
    line_ += static_cast<Index>(std::count(bytes.begin(), bytes.end(), '\n'));
    field_ += bytes;
  }

  void add_special(char c) {
    if (c == '"') return add_quote();
    if (c == ',') return end_field();
    if (c == '\n') return end_line();
    // A carriage return is part of the line's end, or of the field.
    if (state_ == State::closed) {
      state_ = State::returned;
    } else {
      add_plain("\r");
    }
  }

  void add_quote() {
    switch (state_) {
      case State::begin:
        state_ = State::quoted;
        quote_line_ = line_;
        return;
      case State::quoted:
        state_ = State::closed;
        return;
      case State::closed:
        state_ = State::quoted;
        field_ += '"';
        return;
      case State::plain:
        refuse(line_, "a quote inside a field without quotes", "the whole field in quotes", "\"");
      case State::returned:
        refuse_after_quote();
    }
  }

  void end_field() {
    if (state_ == State::returned) refuse_after_quote();
    if (record_.fields.size() == most_fields) {
      refuse(line_, "too many fields", std::to_string(most_fields) + " at most", "more");
    }
    record_.fields.push_back(std::move(field_));
    field_.clear();
    state_ = State::begin;
  }

  void end_line() {
    if (state_ == State::plain && field_.ends_with('\r')) field_.pop_back();
    const bool is_blank_line = record_.fields.empty() && field_.empty() && state_ <= State::plain;
    if (!is_blank_line) end_record();
    state_ = State::begin;
    size_ = 0;
    record_.line = ++line_;
  }

  void end_record() {
    record_.fields.push_back(std::move(field_));
    field_.clear();
    visit_(std::move(record_));
    record_.fields.clear();
  }

  [[noreturn]] void refuse_after_quote() const {
    refuse(line_, "text after a closing quote", "a comma or the line's end", "other text");
  }
  std::string place(Index line) const { return where_ + ", line " + std::to_string(line + 1); }
  [[noreturn]] void refuse(Index line, std::string what, std::string expected,
                           std::string found) const {
    throw FormatError({.id = "corpus/csv-syntax",
                       .where = place(line),
                       .what = std::move(what),
                       .expected = std::move(expected),
                       .found = std::move(found),
                       .mend = "write quotes within quoted fields twice, as RFC 4180 has it"});
  }

  std::string where_;
  std::size_t largest_;
  Visit visit_;
  CsvRecord record_;
  std::string field_;
  State state_ = State::begin;
  std::size_t size_ = 0;  // of the record so far
  Index line_ = 0;        // from 0
  Index quote_line_ = 0;
};

/// The header of a CSV file: which column is the text, and which names the record.
class CsvColumns {
 public:
  /// Throws FormatError unless exactly one column is called `text`; the names that there are stand
  /// in the message.
  CsvColumns(CsvRecord header, const std::string& text, std::string where)
      : where_(std::move(where)), line_(header.line), names_(std::move(header.fields)) {
    constexpr std::string_view byte_order_mark = "\ufeff";
    if (names_.front().starts_with(byte_order_mark))
      names_.front().erase(0, byte_order_mark.size());
    const auto found = std::find(names_.begin(), names_.end(), text);
    if (std::count(names_.begin(), names_.end(), text) != 1) refuse_column(text);
    text_ = static_cast<std::size_t>(found - names_.begin());
    for (const char* name : {"name", "title", "id"}) {
      const auto place = std::find(names_.begin(), names_.end(), name);
      if (place == names_.end() || place == found || name_) continue;
      name_ = static_cast<std::size_t>(place - names_.begin());
    }
  }

  std::size_t text() const { return text_; }
  /// The column `name`, `title` or `id`, if there is one.
  std::optional<std::size_t> name() const { return name_; }

  /// Throws FormatError for a record that has not as many fields as the header.
  void check(const CsvRecord& record) const {
    if (record.fields.size() == names_.size()) return;
    throw FormatError({.id = "corpus/csv-fields",
                       .where = where_ + ", line " + std::to_string(record.line + 1),
                       .what = "a record has not as many fields as the header",
                       .expected = std::to_string(names_.size()),
                       .found = std::to_string(record.fields.size()),
                       .mend = "put fields that have commas or line breaks in quotes"});
  }

 private:
  [[noreturn]] void refuse_column(const std::string& text) const {
    std::string list;
    for (const std::string& name : names_) {
      list += (list.empty() ? "" : ", ") + detail::in_quotes(name);
      if (list.size() > 200) break;
    }
    throw FormatError({.id = "corpus/csv-column",
                       .where = where_ + ", line " + std::to_string(line_ + 1),
                       .what = "no such column, or several",
                       .expected = "one column " + detail::in_quotes(text),
                       .found = list,
                       .mend = "choose the text's column with --field"});
  }

  std::string where_;
  Index line_;
  std::vector<std::string> names_;
  std::size_t text_ = 0;
  std::optional<std::size_t> name_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
