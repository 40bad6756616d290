// The header of a .npy file (versions 1 to 3): a Python dictionary of three keys, read strictly.
// xtensor has a reader of its own, but it trusts the header: no check of lengths against the file
// and no bound on what it allocates. So it is not used for files here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What the header of a .npy file says.
struct NpyHeader {
  DType dtype = DType::float64;
  bool fortran_order = false;
  Shape shape;
  std::size_t data_begin = 0;  ///< first byte of the elements in the file
};

namespace detail {

inline constexpr std::string_view npy_magic = "\x93NUMPY";
inline constexpr std::size_t npy_header_limit = std::size_t{1} << 16;
inline constexpr std::size_t npy_dimension_limit = 64;  // as numpy 2 has

inline std::optional<DType> dtype_from_npy(std::string_view descr) {
  for (const DTypeEntry& entry : dtype_table) {
    if (!entry.npy.empty() && entry.npy == descr) return entry.dtype;
  }
  return std::nullopt;
}

[[noreturn]] inline void throw_npy(std::string_view id, const std::string& where, std::string what,
                                   std::string expected, std::string found, std::string mend) {
  throw FormatError({.id = id,
                     .where = where,
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = std::move(mend)});
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }` and nothing else.
class NpyDictionaryReader {
 public:
  NpyDictionaryReader(std::string_view text, const std::string& where)
      : text_(text), where_(where) {}

  NpyHeader read() {
    demand('{');
    while (!take('}')) {
      read_item();
      if (take('}')) break;
      demand(',');
    }
    skip_blanks();
    if (position_ != text_.size()) fail("nothing after the dictionary");
    if (!seen_descr_ || !seen_order_ || !seen_shape_) {
      fail("the keys descr, fortran_order and shape");
    }
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw_npy("npy/header", where_, "not a .npy header", expected,
              in_quotes(text_.substr(std::min(position_, text_.size()), 40)) + " at byte " +
                  std::to_string(position_) + " of the header",
              "write the file again with numpy.save");
  }

  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
  }
  bool take(char c) {
    skip_blanks();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void demand(char c) {
    if (!take(c)) fail(std::string(1, c));
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  std::string_view read_text() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') demand('"');
    const std::size_t end = text_.find(quote, position_);
    if (end == text_.npos) fail("the end of a text");
    const std::string_view text = text_.substr(position_, end - position_);
    position_ = end + 1;
    return text;
  }

  Index read_size() {
    skip_blanks();
    const std::size_t begin = position_;
    Index size = 0;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9';
         ++position_) {
      const Index digit = text_[position_] - '0';
      if (size > (std::numeric_limits<Index>::max() - digit) / 10) fail("a size within 63 bits");
      size = size * 10 + digit;
    }
    if (position_ == begin) fail("a size");
    return size;
  }

  void read_item() {
    const std::string_view key = read_text();
    demand(':');
    if (key == "descr" && !std::exchange(seen_descr_, true)) {
      read_descr();
    } else if (key == "fortran_order" && !std::exchange(seen_order_, true)) {
      header_.fortran_order = take_word("True");
      if (!header_.fortran_order && !take_word("False")) fail("True or False");
    } else if (key == "shape" && !std::exchange(seen_shape_, true)) {
      read_shape();
    } else {
      fail("the keys descr, fortran_order and shape, each once");
    }
  }

  void read_descr() {
    const std::string_view descr = read_text();
    const std::optional<DType> dtype = dtype_from_npy(descr);
    if (!dtype) {
      throw_npy("npy/dtype", where_, "type of element that is not read",
                "little-endian <f8 <f4 <f2 <i8 <i4 <i2 |i1 <u8 <u4 <u2 |u1 or |b1",
                in_quotes(descr), "convert it first, for example with array.astype('<f4')");
    }
    header_.dtype = *dtype;
  }

  /// (), (3,), (3, 4) or (3, 4,)
  void read_shape() {
    demand('(');
    bool ended_by_comma = true;
    while (!take(')')) {
      if (!ended_by_comma) fail(", or )");
      if (header_.shape.size() == npy_dimension_limit) fail("at most 64 dimensions");
      header_.shape.push_back(read_size());
      ended_by_comma = take(',');
    }
    if (header_.shape.size() == 1 && !ended_by_comma) fail("a tuple, as (3,)");
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t position_ = 0;
  NpyHeader header_;
  bool seen_descr_ = false, seen_order_ = false, seen_shape_ = false;
};

/// First byte and length of the dictionary.
inline std::pair<std::size_t, std::size_t> npy_dictionary_place(std::string_view file,
                                                                const std::string& where) {
  constexpr std::size_t version_at = npy_magic.size();
  if (!file.starts_with(npy_magic) || file.size() < version_at + 6) {
    throw_npy("npy/magic", where, "not a .npy file", "\\x93NUMPY and a header", "something else",
              "write the file with numpy.save");
  }
  const int major = static_cast<unsigned char>(file[version_at]);
  if (major < 1 || major > 3 || file[version_at + 1] != 0) {
    throw_npy("npy/version", where, "unknown version of .npy", "1.0, 2.0 or 3.0",
              std::to_string(major) + "." +
                  std::to_string(static_cast<unsigned char>(file[version_at + 1])),
              "write the file again with numpy.save");
  }
  const std::size_t width = major == 1 ? 2 : 4;
  std::uint32_t size = 0;
  std::memcpy(&size, file.data() + version_at + 2, width);
  const std::size_t begin = version_at + 2 + width;
  if (size > npy_header_limit || file.size() < begin || size > file.size() - begin) {
    throw_npy("npy/header-size", where, "header longer than the file or than 65536 bytes",
              "at most " + std::to_string(std::min(npy_header_limit, file.size())) + " bytes",
              std::to_string(size), "write the file again with numpy.save");
  }
  return {begin, size};
}

inline void check_npy_size(const NpyHeader& header, std::size_t file_size,
                           const std::string& where) {
  const std::optional<Index> elements = element_count(header.shape);
  const auto bytes = checked_multiply(static_cast<std::uint64_t>(elements.value_or(0)),
                                      size_in_bytes(header.dtype));
  if (!elements || !bytes) {
    throw_npy("npy/shape", where, "impossible shape", "a product of sizes within 63 bits",
              shape_text(header.shape), "write the file again with numpy.save");
  }
  const std::size_t available = file_size - header.data_begin;
  if (*bytes == available) return;
  throw_npy(*bytes > available ? "npy/truncated" : "npy/trailing-bytes", where,
            "shape and length of the file differ",
            std::to_string(*bytes) + " bytes for " + shape_text(header.shape),
            std::to_string(available), "write the file again with numpy.save");
}

}  // namespace detail

/// Reads and checks the header of a whole .npy file in memory; `where` names the file in messages.
/// Throws FormatError: no .npy file, unknown version or type, Fortran order of two and more
/// dimensions, a shape that overflows or that the file's length does not match.
inline NpyHeader read_npy_header(std::string_view file, const std::string& where) {
  const auto [begin, size] = detail::npy_dictionary_place(file, where);
  NpyHeader header = detail::NpyDictionaryReader(file.substr(begin, size), where).read();
  header.data_begin = begin + size;
  if (header.fortran_order && header.shape.size() > 1) {
    detail::throw_npy("npy/fortran-order", where, "Fortran order is not read", "C order",
                      "fortran_order: True", "save numpy.ascontiguousarray(array)");
  }
  detail::check_npy_size(header, file.size(), where);
  return header;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
