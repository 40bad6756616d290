// What the operating system refuses, as a FileError with the place, its own words, and the mend.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "wanamaker/core/error.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Text from an untrusted file for use in a message: at most `limit` bytes, never cut inside a
/// UTF-8 sequence.
inline std::string shortened(std::string_view text, std::size_t limit = 120) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return std::string(text.substr(0, end)) + "…";
}

inline std::string in_quotes(std::string_view text) {
  return "'" + shortened(text) + "'";
}

struct SystemFault {
  std::string_view id;
  std::string_view mend;
};

inline SystemFault system_fault(int code) {
  switch (code) {
    case ENOENT:
      return {"file/missing", "check the path; folders are not created on the way"};
    case ENOTDIR:
      return {"file/not-a-folder", "a part of the path is a file: choose another path"};
    case EISDIR:
      return {"file/is-a-folder", "give the path of a file"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {"file/permission", "choose a path with the needed permission"};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {"file/full", "make room, or choose another disk"};
    case ENOMEM:
      return {"file/out-of-memory", "free some memory, or allow more"};
    case ENAMETOOLONG:
    case ELOOP:
      return {"file/bad-name", "choose another path"};
    default:
      return {"file/system", "see the system's message"};
  }
}

/// `what` is what was tried ("cannot read"), `expected` what would have been right, `code` errno.
inline Problem file_problem(int code, const std::filesystem::path& path, std::string_view what,
                            std::string_view expected) {
  const SystemFault fault = system_fault(code);
  return {.id = fault.id,
          .where = path.string(),
          .what = std::string(what),
          .expected = std::string(expected),
          .found = std::system_category().message(code),
          .mend = std::string(fault.mend)};
}

[[noreturn]] inline void throw_file_error(int code, const std::filesystem::path& path,
                                          std::string_view what, std::string_view expected) {
  throw FileError(file_problem(code, path, what, expected));
}

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
