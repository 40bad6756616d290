// Compressed data for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/text/decompression.hpp"

namespace wanamaker_test {

#if WANAMAKER_HAS_ZLIB
/// One gzip member.
inline std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int window_bits = 15, gzip_header = 16, memory_level = 8;
  REQUIRE(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits + gzip_header,
                       memory_level, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}
#endif

#if WANAMAKER_HAS_ZSTD
/// One zstd frame, with a checksum as the program zstd writes it.
inline std::string zstd(std::string_view bytes) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return packed;
}
#endif

using Pack = std::string (*)(std::string_view);

/// The compressions of this build.
inline std::vector<Pack> packings() {
  std::vector<Pack> all;
#if WANAMAKER_HAS_ZLIB
  all.push_back(gzip);
#endif
#if WANAMAKER_HAS_ZSTD
  all.push_back(zstd);
#endif
  return all;
}

/// Several members or frames that together hold the bytes, cut at random; some may be empty.
inline std::string packed_in_parts(std::string_view bytes, Pack pack,
                                   wanamaker::RandomStream& random) {
  std::string packed;
  for (std::uint64_t parts = random.below(4); parts-- > 0;) {
    const std::size_t cut = random.below(bytes.size() + 1);
    packed += pack(bytes.substr(0, cut));
    bytes.remove_prefix(cut);
  }
  return packed + pack(bytes);
}

}  // namespace wanamaker_test
