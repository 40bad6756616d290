// Bytes that come in pieces, as whole characters: tokens may end within one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// How many of the bytes from `at` on (at most 4) begin some well-formed sequence together;
/// Unicode 15, table 3-7 ("maximal subpart", section 3.9).
inline std::size_t utf8_beginning(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  std::size_t fit = 1;
  for (; fit < length && at + fit < text.size(); ++fit) {
    const unsigned char low = fit > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = fit > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(fit) < low || byte(fit) > high) break;
  }
  return fit;
}

}  // namespace detail

/// Gives out valid UTF-8 only, each character once all of its bytes are there. What cannot become
/// one is U+FFFD, one for each longest beginning of a character or byte that begins none.
class Utf8Stream {
 public:
  /// The characters that are whole now.
  std::string add(std::string_view bytes) {
    held_.append(bytes);
    return take(false);
  }

  /// What was held back: nothing, or U+FFFD for a character that was cut.
  std::string finish() { return take(true); }

 private:
  std::string take(bool all) {
    std::string text;
    std::size_t at = 0;
    while (at < held_.size()) {
      const std::size_t length = detail::utf8_sequence_length(held_, at);
      if (length > 0) {
        text.append(held_, at, length);
        at += length;
        continue;
      }
      const std::size_t begun = detail::utf8_beginning(held_, at);
      if (!all && begun > 0 && at + begun == held_.size()) break;
      text += "\xef\xbf\xbd";
      at += begun > 0 ? begun : 1;
    }
    held_.erase(0, at);
    return text;
  }

  std::string held_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
