// Numbers out of a mapped file: converted piece by piece, checked, and their pages given back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/convert.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/mapped_file.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

[[noreturn]] inline void throw_missing_tensor(const std::filesystem::path& path,
                                              std::string_view name, std::size_t others) {
  throw FormatError({.id = "tensor/missing",
                     .where = path.string(),
                     .what = "missing tensor",
                     .expected = in_quotes(name),
                     .found = std::to_string(others) + " tensors of other names",
                     .mend = "check that the file belongs to this model"});
}

}  // namespace detail

/// What a reader does about NaN and infinities.
enum class NonFinite : std::uint8_t { refuse, allow };

/// `count` elements of one type that begin at byte `begin` of a mapped file, whose size was
/// checked. Reading gives each piece's pages back, so that memory beyond the result stays near 1
/// MB.
class MappedValues {
 public:
  /// `where` names the file and the tensor in messages. The file must outlive this view.
  MappedValues(const MappedFile& file, std::string where, DType dtype, std::size_t begin,
               std::size_t count)
      : file_(&file), where_(std::move(where)), dtype_(dtype), begin_(begin), count_(count) {}

  std::size_t count() const { return count_; }
  std::span<const std::byte> bytes() const { return piece(0, count_); }

  /// Floating elements into out[0 … count()). Throws FormatError where converts_to<T> does not hold
  /// and DataError (with the element) for NaN and infinities unless they are allowed.
  template <FloatElement T>
  void read_into(T* out, NonFinite non_finite = NonFinite::refuse) const {
    if (!converts_to<T>(dtype_)) fail_type("a type that reads as " + name_of(dtype_of<T>));
    for (std::size_t first = 0; first < count_; first += piece_elements) {
      const std::size_t n = std::min(piece_elements, count_ - first);
      convert_floats(dtype_, piece(first, n).data(), n, out + first);
      if (non_finite == NonFinite::refuse) {
        if (const auto at = first_non_finite<T>({out + first, n})) fail_float(first + *at);
      }
      release(first, n);
    }
  }

  template <FloatElement T>
  std::vector<T> read(NonFinite non_finite = NonFinite::refuse) const {
    std::vector<T> values(count_);
    read_into(values.data(), non_finite);
    return values;
  }

  /// Integer elements; booleans are 0 and 1. Throws FormatError for a floating type, DataError for
  /// a value beyond int64 and for a boolean that is neither 0 nor 1.
  std::vector<std::int64_t> read_integers() const {
    if (is_floating(dtype_)) fail_type("an integer type");
    std::vector<std::int64_t> values(count_);
    for (std::size_t first = 0; first < count_; first += piece_elements) {
      const std::size_t n = std::min(piece_elements, count_ - first);
      const auto at = convert_integers(dtype_, piece(first, n).data(), n, values.data() + first);
      if (at) {
        fail_value(first + *at, dtype_ == DType::boolean ? "0 or 1" : "an integer below 2^63",
                   "another");
      }
      release(first, n);
    }
    return values;
  }

 private:
  static constexpr std::size_t piece_elements = std::size_t{1} << 17;

  static std::string name_of(DType dtype) { return std::string(dtype_name(dtype)); }

  std::span<const std::byte> piece(std::size_t first, std::size_t count) const {
    const std::size_t size = size_in_bytes(dtype_);
    return file_->bytes().subspan(begin_ + first * size, count * size);
  }
  void release(std::size_t first, std::size_t count) const {
    const std::size_t size = size_in_bytes(dtype_);
    file_->release(begin_ + first * size, count * size);
  }

  [[noreturn]] void fail_type(std::string expected) const {
    throw FormatError({.id = "tensor/dtype",
                       .where = where_,
                       .what = "wrong type of element",
                       .expected = std::move(expected),
                       .found = name_of(dtype_),
                       .mend = "write the file with another dtype"});
  }
  [[noreturn]] void fail_value(std::size_t position, std::string expected,
                               std::string found) const {
    throw DataError({.id = "tensor/value",
                     .where = where_ + ", element " + std::to_string(position),
                     .what = "value that cannot be used",
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "use a file without damaged values"});
  }
  [[noreturn]] void fail_float(std::size_t position) const {
    double value = 0;
    convert_floats(dtype_, piece(position, 1).data(), 1, &value);
    fail_value(position, "a finite number",
               std::isnan(value)   ? "NaN"
               : std::isinf(value) ? "an infinity"
                                   : "a number beyond the range of float");
  }

  const MappedFile* file_;
  std::string where_;
  DType dtype_;
  std::size_t begin_;
  std::size_t count_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
