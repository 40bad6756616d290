// What a tokenizer does to a text before it splits it: the steps that `normalizer` of a
// tokenizer.json declares.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/text/normalizer.hpp"
#include "wanamaker/text/regex.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// A text made by replacements. A few steps could otherwise make gigabytes of a short text: each
/// may put 256 bytes for every character.
class ReplacedText {
 public:
  /// `longest`: bytes, at most.
  explicit ReplacedText(std::size_t longest) : longest_(longest) {}

  /// Throws DataError where the text becomes too long.
  void append(std::string_view part) {
    if (text_.size() + part.size() > longest_) refuse();
    text_.append(part);
  }
  std::string take() { return std::move(text_); }

 private:
  [[noreturn]] void refuse() const {
    throw DataError({.id = "text/normalised-length",
                     .where = "normalizer",
                     .what = "the tokenizer's replacements make a text too long",
                     .expected = "at most " + std::to_string(longest_) + " bytes",
                     .mend = "use another tokenizer"});
  }

  std::string text_;
  std::size_t longest_;
};

}  // namespace detail

/// `NFC`
struct NfcStep {
  std::string apply(std::string_view text) const { return nfc(text); }
  bool changes(std::string_view text) const { return !is_surely_nfc(text); }
};

/// `NFKC`
struct NfkcStep {
  std::string apply(std::string_view text) const { return nfkc(text); }
  bool changes(std::string_view text) const {
    return detail::next_beyond_ascii(text, 0) < text.size();
  }
};

/// `Lowercase`
struct LowercaseStep {
  std::string apply(std::string_view text) const { return lower_case(text); }
  bool changes(std::string_view) const { return true; }
};

/// `Replace`: every match becomes `content`.
struct ReplaceStep {
  Regex pattern;
  std::string content;

  /// Throws DataError for a result of more than `longest` bytes.
  std::string apply(std::string_view text, std::size_t longest = std::string::npos) const {
    detail::ReplacedText result(longest);
    std::size_t done = 0;
    pattern.for_each_match(text, [&](std::size_t begin, std::size_t end) {
      result.append(text.substr(done, begin - done));
      result.append(content);
      done = end;
    });
    result.append(text.substr(done));
    return result.take();
  }
  bool changes(std::string_view) const { return true; }
};

/// `Replace` of a text by another.
struct ReplaceTextStep {
  std::string text;  ///< not empty
  std::string content;

  /// Throws DataError for a result of more than `longest` bytes.
  std::string apply(std::string_view input, std::size_t longest = std::string::npos) const {
    detail::ReplacedText result(longest);
    std::size_t done = 0;
    for (std::size_t at; (at = input.find(text, done)) != input.npos; done = at + text.size()) {
      result.append(input.substr(done, at - done));
      result.append(content);
    }
    result.append(input.substr(done));
    return result.take();
  }
  bool changes(std::string_view input) const { return input.find(text) != input.npos; }
};

/// `Prepend`: a text put before whatever is not empty.
struct PrependStep {
  std::string text;

  std::string apply(std::string_view input) const { return text + std::string(input); }
  bool changes(std::string_view input) const { return !input.empty(); }
};

/// Steps, each on the result of the one before.
class Normalizer {
 public:
  using Step =
      std::variant<NfcStep, NfkcStep, LowercaseStep, ReplaceStep, ReplaceTextStep, PrependStep>;

  /// No step: texts stay as they are.
  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }

  const std::vector<Step>& steps() const { return steps_; }

  /// NFC and nothing else.
  bool is_nfc() const { return steps_.size() == 1 && std::holds_alternative<NfcStep>(steps_[0]); }

  /// Bytes that replacements may make of a text of n bytes: 64 n, and 64 KiB.
  static constexpr std::size_t longest_result(std::size_t n) {
    return 64 * n + (std::size_t{1} << 16);
  }

  /// The normalised text: `text` itself where nothing changes, else a view of `storage`.
  /// `continues`: the text goes on from an earlier part, so that nothing is put before it. Throws
  /// DataError where replacements make more than longest_result of it.
  std::string_view apply(std::string_view text, std::string& storage,
                         bool continues = false) const {
    const std::size_t longest = longest_result(text.size());
    for (const Step& step : steps_) {
      if (continues && std::holds_alternative<PrependStep>(step)) continue;
      std::visit(
          [&](const auto& s) {
            if (!s.changes(text)) return;
            if constexpr (requires { s.apply(text, longest); }) {
              storage = s.apply(text, longest);
            } else {
              storage = s.apply(text);
            }
            text = storage;
          },
          step);
    }
    return text;
  }

  /// Adds all that determines results.
  void add_to(Sha256& hash) const {
    hash.update_number(steps_.empty() ? 0u : is_nfc() ? 1u : 1u + steps_.size());
    if (is_nfc()) return;
    for (const Step& step : steps_) {
      hash.update_number(step.index());
      if (const auto* replace = std::get_if<ReplaceStep>(&step)) {
        hash.update_field(replace->pattern.pattern()).update_field(replace->content);
      } else if (const auto* text = std::get_if<ReplaceTextStep>(&step)) {
        hash.update_field(text->text).update_field(text->content);
      } else if (const auto* prepend = std::get_if<PrependStep>(&step)) {
        hash.update_field(prepend->text);
      }
    }
  }

 private:
  std::vector<Step> steps_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
