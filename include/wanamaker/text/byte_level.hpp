// GPT-2's spelling of bytes as printable characters: vocabularies hold "Ġthe" for " the".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// True for bytes that stand for themselves: the printable ones of Latin-1 without the two blanks
/// and the soft hyphen.
constexpr bool byte_spells_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/// The character of each byte: itself where printable, else U+0100, U+0101, … in order of bytes
/// (Radford et al. 2019, `bytes_to_unicode`).
constexpr std::array<char32_t, 256> byte_level_characters() {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    characters[byte] = byte_spells_itself(byte) ? static_cast<char32_t>(byte) : next++;
  }
  return characters;
}

/// The byte of each character below U+0144; −1 for characters that stand for none.
constexpr std::array<std::int16_t, 0x144> byte_level_bytes() {
  std::array<std::int16_t, 0x144> bytes{};
  for (std::int16_t& b : bytes) b = -1;
  const std::array<char32_t, 256> characters = byte_level_characters();
  for (std::size_t b = 0; b < 256; ++b) bytes[characters[b]] = static_cast<std::int16_t>(b);
  return bytes;
}

/// Bytes in a vocabulary's spelling.
inline std::string byte_level_spelling(std::string_view bytes) {
  static constexpr std::array<char32_t, 256> characters = byte_level_characters();
  std::string spelling;
  for (const char c : bytes) append_utf8(characters[static_cast<unsigned char>(c)], spelling);
  return spelling;
}

/// The bytes that a vocabulary's (valid UTF-8) spelling stands for; nothing where one of its
/// characters stands for no byte.
inline std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  static constexpr std::array<std::int16_t, 0x144> bytes_by_character = byte_level_bytes();
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const CodePoint c = decode_utf8(spelling, at);
    if (c.value >= bytes_by_character.size() || bytes_by_character[c.value] < 0)
      return std::nullopt;
    bytes += static_cast<char>(bytes_by_character[c.value]);
    at += c.length;
  }
  return bytes;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
