// A text that is read piece by piece and checked to be UTF-8 on the way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/text/byte_source.hpp"
#include "wanamaker/text/decompression.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Valid UTF-8 out of bytes, in pieces that end between characters.
class TextSource {
 public:
  /// `where` names the text in messages; offsets there are of the (unpacked) text.
  TextSource(std::unique_ptr<ByteSource> bytes, std::string where,
             std::size_t piece = std::size_t{1} << 18)
      : bytes_(std::move(bytes)), where_(std::move(where)), piece_(piece) {}

  const std::string& where() const { return where_; }

  /// The next piece, empty at the end; valid until the next call. Throws DataError with the byte
  /// offset of the first fault, and what the bytes' source throws.
  std::string_view next() {
    drop_given();
    while (checked_ == 0 && fill()) {
    }
    given_ = checked_;
    return std::string_view(buffer_).substr(0, given_);
  }

  /// The next `count` bytes, fewer only before the end; `next` gives them again. Throws as `next`.
  std::string_view peek(std::size_t count) {
    drop_given();
    while (checked_ < count && fill()) {
    }
    return std::string_view(buffer_).substr(0, std::min(count, checked_));
  }

 private:
  void drop_given() {
    buffer_.erase(0, given_);
    offset_ += given_;
    checked_ -= given_;
    given_ = 0;
  }

  /// False at the end of the bytes.
  bool fill() {
    const std::size_t old = buffer_.size();
    buffer_.resize(old + piece_);
    const std::size_t got = bytes_->read(std::span(buffer_).subspan(old));
    buffer_.resize(old + got);
    const std::string_view rest = std::string_view(buffer_).substr(checked_);
    const std::optional<std::size_t> fault = first_invalid_utf8(rest);
    const bool may_go_on = fault && got > 0 && rest.size() - *fault < 4;
    if (fault && !may_go_on) check_utf8(rest, where_, offset_ + checked_);
    checked_ += fault.value_or(rest.size());
    return got > 0;
  }

  std::unique_ptr<ByteSource> bytes_;
  std::string where_;
  std::size_t piece_;
  std::string buffer_;       // what was given last, then what is checked, then at most 3 bytes
  std::size_t checked_ = 0;  // bytes of the buffer that are whole characters
  std::size_t given_ = 0;
  std::size_t offset_ = 0;  // of the buffer in the text
};

/// The text of a file, or of standard input for "-", unpacked where it is gzip or zstd. Throws
/// FileError, FormatError, and while it is read DataError for invalid UTF-8.
inline TextSource open_text(const std::filesystem::path& path) {
  const std::string where = name_of_input(path);
  auto bytes = std::make_unique<PeekableSource>(open_bytes(path));
  const bool is_packed = compression_of(bytes->peek(longest_compression_mark)) != Compression::none;
  return {unpacked(std::move(bytes), where), is_packed ? where + " (unpacked)" : where};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
