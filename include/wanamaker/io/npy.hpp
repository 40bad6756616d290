// Arrays in numpy's .npy format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/io/mapped_values.hpp"
#include "wanamaker/io/npy_header.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// An array in a mapped .npy file, in row-major order. Several threads may read at once.
class NpyArray {
 public:
  /// Throws FileError, and FormatError as read_npy_header.
  explicit NpyArray(const std::filesystem::path& path)
      : file_(path), header_(read_npy_header(file_.text(), path.string())) {}

  const std::filesystem::path& path() const { return file_.path(); }
  DType dtype() const { return header_.dtype; }
  const Shape& shape() const { return header_.shape; }
  /// Number of elements.
  std::size_t size() const {
    return (file_.bytes().size() - header_.data_begin) / size_in_bytes(header_.dtype);
  }
  /// The elements as they are in the file, at any alignment.
  std::span<const std::byte> bytes() const { return values().bytes(); }

  /// Elements of a floating type, converted as SafetensorsFile::read does. Throws FormatError for
  /// other types, DataError (element) for NaN and infinities unless they are allowed.
  template <FloatElement T>
  std::vector<T> read(NonFinite non_finite = NonFinite::refuse) const {
    return values().template read<T>(non_finite);
  }
  /// As read, into out[0 … size()).
  template <FloatElement T>
  void read_into(T* out, NonFinite non_finite = NonFinite::refuse) const {
    values().read_into(out, non_finite);
  }
  /// Elements of an integer type, or booleans as 0 and 1. Throws FormatError for a floating type,
  /// DataError for a value beyond int64.
  std::vector<std::int64_t> read_integers() const { return values().read_integers(); }

 private:
  MappedValues values() const {
    return {file_, path().string(), header_.dtype, header_.data_begin, size()};
  }

  MappedFile file_;
  NpyHeader header_;
};

/// Opens a .npy file. Throws as NpyArray's constructor.
inline NpyArray read_npy(const std::filesystem::path& path) {
  return NpyArray(path);
}

namespace detail {

/// Version 1.0, laid out as numpy does: the data begin at a multiple of 64 bytes.
inline std::string npy_header_text(DType dtype, const Shape& shape) {
  std::string text =
      "{'descr': '" + std::string(dtype_entry(dtype).npy) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(shape[i]);
    if (i + 1 < shape.size() || i == 0) text += ",";
  }
  text += "), }";
  const std::size_t prefix = npy_magic.size() + 4;
  const std::size_t total = (prefix + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - prefix - 1, ' ');
  text += '\n';
  std::string header(npy_magic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

inline void check_npy_shape(const Shape& shape, std::size_t size) {
  const std::optional<Index> elements = element_count(shape);
  const bool fits = elements && static_cast<std::size_t>(*elements) == size;
  if (fits && shape.size() <= npy_dimension_limit) return;
  throw ShapeError({.id = "npy/write-shape",
                    .where = "write_npy",
                    .what = "shape does not fit the values",
                    .expected = "a shape of " + std::to_string(size) + " elements",
                    .found = shape_text(shape),
                    .mend = "pass as many values as the shape has"});
}

}  // namespace detail

/// Writes an array [shape], row-major, in its own type (not bfloat16, which numpy lacks), the same
/// bytes as numpy.save, atomically. Throws ShapeError where the shape does not fit, and FileError.
template <TensorElement T>
requires(dtype_of<T> != DType::bfloat16) void write_npy(const std::filesystem::path& path,
                                                        std::span<const T> values,
                                                        const Shape& shape) {
  detail::check_npy_shape(shape, values.size());
  AtomicFile file(path);
  file.write(detail::npy_header_text(dtype_of<T>, shape));
  file.write(std::as_bytes(values));
  file.commit();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
