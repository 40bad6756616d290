// Compressed files, told by their first bytes and unpacked as they are read. Target wanamaker::text
// defines WANAMAKER_HAS_ZLIB and WANAMAKER_HAS_ZSTD for what it found.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/byte_source.hpp"

#if !defined(WANAMAKER_HAS_ZLIB)
#define WANAMAKER_HAS_ZLIB 0
#endif
#if !defined(WANAMAKER_HAS_ZSTD)
#define WANAMAKER_HAS_ZSTD 0
#endif
#if WANAMAKER_HAS_ZLIB
#include "wanamaker/text/third_party/zlib.hpp"
#endif
#if WANAMAKER_HAS_ZSTD
#include "wanamaker/text/third_party/zstd.hpp"
#endif

namespace wanamaker::inline WANAMAKER_ABI {

/// How a file is packed.
enum class Compression : std::uint8_t { none, gzip, zstd, bzip2, xz, zip };

/// As many of a file's first bytes tell its compression.
inline constexpr std::size_t longest_compression_mark = 6;

/// Compression by a file's first bytes.
inline Compression compression_of(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\x1f\x8b"sv)) return Compression::gzip;
  if (bytes.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::zstd;
  // A skippable frame, 0x184D2A50 to 0x184D2A5F, which zstd files may begin with.
  if (bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) & 0xf0u) == 0x50u &&
      bytes.substr(1, 3) == "\x2a\x4d\x18"sv) {
    return Compression::zstd;
  }
  if (bytes.starts_with("\xfd"
                        "7zXZ\0"sv)) {
    return Compression::xz;
  }
  if (bytes.starts_with("BZh"sv) && bytes.size() >= 6 && bytes.substr(4, 2) == "1A"sv) {
    return Compression::bzip2;
  }
  return bytes.starts_with("PK\x03\x04"sv) ? Compression::zip : Compression::none;
}

/// The path without an ending .gz, .gzip, .bgz, .zst or .zstd: "x.jsonl.gz" is "x.jsonl".
inline std::filesystem::path without_compression_ending(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  for (const char* known : {".gz", ".gzip", ".bgz", ".zst", ".zstd"}) {
    if (extension == known) return std::filesystem::path(path).replace_extension();
  }
  return path;
}

namespace detail {

/// Packed bytes, piece by piece, and how many were taken.
class PackedInput {
 public:
  PackedInput(std::unique_ptr<ByteSource> source, std::string where)
      : source_(std::move(source)), where_(std::move(where)), buffer_(std::size_t{1} << 16) {}

  /// What is not taken yet; of the next piece where all is. Empty at the end.
  std::string_view next() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = source_->read(buffer_);
    }
    return {buffer_.data() + begin_, end_ - begin_};
  }
  void take(std::size_t count) {
    begin_ += count;
    taken_ += count;
  }

  [[noreturn]] void refuse_cut() const {
    throw FormatError({.id = "corpus/compressed-cut",
                       .where = where_ + ", byte " + std::to_string(taken_),
                       .what = "compressed data end early",
                       .expected = "more bytes",
                       .found = "the end of the file",
                       .mend = "copy or download the file again"});
  }
  [[noreturn]] void refuse_corrupt(std::string_view reason) const {
    throw FormatError({.id = "corpus/compressed-corrupt",
                       .where = where_ + ", byte " + std::to_string(taken_),
                       .what = "compressed data are corrupt",
                       .found = shortened(reason),
                       .mend = "copy or download the file again"});
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string where_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t taken_ = 0;
};

#if WANAMAKER_HAS_ZLIB
/// The members of a gzip file (RFC 1952), one after the other; zeros after the last are padding.
class GzipSource final : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> packed, std::string where)
      : input_(std::move(packed), std::move(where)) {
    constexpr int largest_window = 15, gzip_only = 16;
    if (inflateInit2(&stream_, largest_window + gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t read(std::span<char> to) override {
    while (!ended_) {
      const std::string_view packed = input_.next();
      const std::size_t written = inflate_into(to, packed);
      if (written > 0) return written;
      if (packed.empty() && !ended_) input_.refuse_cut();
    }
    return 0;
  }

 private:
  std::size_t inflate_into(std::span<char> to, std::string_view packed) {
    stream_.next_in = reinterpret_cast<const Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
    const std::size_t room = std::min(to.size(), std::size_t{1} << 24);
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    input_.take(packed.size() - stream_.avail_in);
    if (status == Z_STREAM_END) {
      begin_next_member();
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      input_.refuse_corrupt(stream_.msg != nullptr ? stream_.msg : "an invalid stream");
    }
    return room - stream_.avail_out;
  }

  void begin_next_member() {
    for (;;) {
      const std::string_view packed = input_.next();
      const std::size_t padding = std::min(packed.find_first_not_of('\0'), packed.size());
      input_.take(padding);
      if (padding < packed.size()) break;
      ended_ = packed.empty();
      if (ended_) return;
    }
    inflateReset(&stream_);
  }

  PackedInput input_;
  z_stream stream_{};
  bool ended_ = false;
};
#endif

#if WANAMAKER_HAS_ZSTD
/// The frames of a Zstandard file (RFC 8878), one after the other. Frames that need windows beyond
/// 128 MiB are refused by the library.
class ZstdSource final : public ByteSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> packed, std::string where)
      : input_(std::move(packed), std::move(where)), context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
  }

  std::size_t read(std::span<char> to) override {
    for (;;) {
      const std::string_view packed = input_.next();
      if (packed.empty() && !inside_frame_) return 0;
      ZSTD_inBuffer in{packed.data(), packed.size(), 0};
      ZSTD_outBuffer out{to.data(), to.size(), 0};
      const std::size_t status = ZSTD_decompressStream(context_.get(), &out, &in);
      if (ZSTD_isError(status) != 0) input_.refuse_corrupt(ZSTD_getErrorName(status));
      input_.take(in.pos);
      inside_frame_ = status != 0;
      if (out.pos > 0) return out.pos;
      if (packed.empty() && inside_frame_) input_.refuse_cut();
    }
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  PackedInput input_;
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool inside_frame_ = false;
};
#endif

[[noreturn]] inline void refuse_compression(const std::string& where, std::string_view name,
                                            std::string_view mend) {
  throw FormatError({.id = "corpus/compression",
                     .where = where,
                     .what = "compressed in a way that this program cannot read",
                     .expected = "no compression, gzip or zstd",
                     .found = std::string(name),
                     .mend = std::string(mend)});
}

inline std::unique_ptr<ByteSource> open_gzip(std::unique_ptr<ByteSource> packed,
                                             const std::string& where) {
#if WANAMAKER_HAS_ZLIB
  return std::make_unique<GzipSource>(std::move(packed), where);
#else
  (void)packed;
  refuse_compression(where, "gzip", "install zlib1g-dev (or zlib-devel, zlib) and build again");
#endif
}

inline std::unique_ptr<ByteSource> open_zstd(std::unique_ptr<ByteSource> packed,
                                             const std::string& where) {
#if WANAMAKER_HAS_ZSTD
  return std::make_unique<ZstdSource>(std::move(packed), where);
#else
  (void)packed;
  refuse_compression(where, "zstd", "install libzstd-dev (or libzstd-devel, zstd) and build again");
#endif
}

}  // namespace detail

/// The bytes of a source, unpacked where they are gzip or zstd. `where` names it in messages, whose
/// byte offsets are of the packed data. Reading holds at most 64 KiB of them, and what the format
/// itself needs (gzip 32 KiB, zstd at most 128 MiB). Throws FormatError for other compression, for
/// gzip and zstd where the build lacks the library, and, while reading, for data that are cut or
/// corrupt.
inline std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> source,
                                            const std::string& where) {
  auto packed = std::make_unique<PeekableSource>(std::move(source));
  const char* const elsewhere = "unpack the file, or pack it with gzip or zstd";
  switch (compression_of(packed->peek(longest_compression_mark))) {
    case Compression::gzip:
      return detail::open_gzip(std::move(packed), where);
    case Compression::zstd:
      return detail::open_zstd(std::move(packed), where);
    case Compression::bzip2:
      detail::refuse_compression(where, "bzip2", elsewhere);
    case Compression::xz:
      detail::refuse_compression(where, "xz", elsewhere);
    case Compression::zip:
      detail::refuse_compression(where, "zip", elsewhere);
    case Compression::none:
      break;
  }
  return packed;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
