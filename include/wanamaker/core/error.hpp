// The catalogue of exceptions. Every message says where, what, expected, found and how to mend it,
// on one line. docs/errors.md lists all ids.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What went wrong, in the parts that a reader needs. Empty parts are left out of the message.
struct Problem {
  std::string_view id{};   ///< stable, for example "format/truncated"; listed in docs/errors.md
  std::string where{};     ///< file and place in it, or function and argument
  std::string what{};      ///< the fault in a few words
  std::string expected{};  ///< what would have been right
  std::string found{};     ///< what was there
  std::string mend{};      ///< what the user can do about it
};

/// One line: `where: what: expected …, found …; mend [id]`. Line breaks inside parts (they may come
/// from an untrusted file) become spaces.
inline std::string one_line(const Problem& problem) {
  std::string line = problem.where;
  const auto add = [&line](std::string_view separator, std::string_view word,
                           std::string_view text) {
    if (text.empty()) return;
    if (!line.empty()) line.append(separator);
    line.append(word).append(text);
  };
  add(": ", "", problem.what);
  add(": ", "expected ", problem.expected);
  add(problem.expected.empty() ? ": " : ", ", "found ", problem.found);
  add("; ", "", problem.mend);
  line.append(" [").append(problem.id).append("]");
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

/// Base of everything this library throws on purpose.
class Error : public std::runtime_error {
 public:
  explicit Error(const Problem& problem) : std::runtime_error(one_line(problem)), id_(problem.id) {}
  /// Stable identifier of the fault, see docs/errors.md.
  const std::string& id() const noexcept { return id_; }

 private:
  std::string id_;
};

/// Matrix or tensor shapes that do not fit together.
class ShapeError : public Error {
  using Error::Error;
};
/// A file that is not what its format demands, or asks for something not implemented.
class FormatError : public Error {
  using Error::Error;
};
/// Readable input that cannot be used: empty text, NaN weights, ids outside the vocabulary.
class DataError : public Error {
  using Error::Error;
};
/// A computation that cannot give a finite answer.
class NumericalError : public Error {
  using Error::Error;
};
/// A backend that fails or lacks something.
class BackendError : public Error {
  using Error::Error;
};
/// Settings of a measurement that contradict each other or the model.
class ProtocolError : public Error {
  using Error::Error;
};
/// The operating system refuses: missing, unreadable or full files and folders.
class FileError : public Error {
  using Error::Error;
};
/// The user or the host program asked to stop. Not a fault: state can be resumed.
class Cancelled : public Error {
 public:
  Cancelled()
      : Error({.id = "run/cancelled", .what = "interrupted", .mend = "run again with --resume"}) {}
};

}  // namespace wanamaker::inline WANAMAKER_ABI
