// Ids and the losses that a model must give them, kept beside its files, so that whoever loads the
// model can see that it computes what was meant.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/json_writing.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One sequence. nats[i] is −log p of ids[i + 1] given ids[0] … ids[i].
struct CheckVectors {
  std::vector<TokenId> ids{};
  std::vector<double> nats{};
};

inline constexpr const char* check_vectors_file = "wanamaker_check.json";

/// FOLDER/wanamaker_check.json, atomically. Throws FileError.
inline void write_check_vectors(const std::filesystem::path& folder, const CheckVectors& check) {
  write_json(folder / check_vectors_file,
             {{"format", "wanamaker/check/1"}, {"ids", check.ids}, {"nats", check.nats}});
}

namespace detail {

[[noreturn]] inline void throw_bad_check(const std::string& where, std::string expected,
                                         std::string found) {
  throw FormatError({.id = "check/malformed",
                     .where = where,
                     .what = "these are no check vectors",
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "export the model again"});
}

inline bool is_token_id(const Json& value) {
  return value.is_number_unsigned() &&
         value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<TokenId>::max()};
}
inline bool is_number(const Json& value) {
  return value.is_number();
}

template <class Number>
std::vector<Number> check_array(const Json& json, const char* key, bool (*fits)(const Json&),
                                const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) {
    throw_bad_check(where, std::string("an array '") + key + "'", "none");
  }
  std::vector<Number> values;
  for (const Json& value : *found) {
    if (!fits(value)) {
      throw_bad_check(where, std::string("numbers in '") + key + "'", shortened(value.dump(), 40));
    }
    values.push_back(value.get<Number>());
  }
  return values;
}

}  // namespace detail

/// What write_check_vectors wrote. Throws FormatError ("check/malformed", and those of JSON),
/// FileError.
inline CheckVectors read_check_vectors(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / check_vectors_file;
  const std::string where = path.string();
  const Json json = parse_json_file(path);
  if (!json.is_object()) detail::throw_bad_check(where, "an object", "something else");
  const std::string format = json.value("format", Json()).is_string()
                                 ? json.at("format").template get<std::string>()
                                 : std::string("nothing");
  if (format != "wanamaker/check/1") {
    detail::throw_bad_check(where, "format wanamaker/check/1", detail::shortened(format));
  }
  CheckVectors check{detail::check_array<TokenId>(json, "ids", detail::is_token_id, where),
                     detail::check_array<double>(json, "nats", detail::is_number, where)};
  if (check.ids.size() < 2 || check.nats.size() + 1 != check.ids.size()) {
    detail::throw_bad_check(
        where, "two ids at least, and a loss for each but the first",
        std::to_string(check.ids.size()) + " ids, " + std::to_string(check.nats.size()));
  }
  return check;
}

/// max |a − b| of two lists of losses of one length; infinite where a loss is not finite.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = std::isnan(difference) ? HUGE_VAL : difference;
  }
  return largest;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
