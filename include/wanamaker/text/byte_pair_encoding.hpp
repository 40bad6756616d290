// Byte-level byte-pair encoding: a word's bytes, merged pair by pair in the order of rank
// (Sennrich et al. 2016; Radford et al. 2019).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// left followed by right becomes merged. A merge's rank is its place in the list, unless ranks are
/// given beside the list.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId merged = 0;
};

namespace detail {

inline constexpr std::int32_t no_rank = std::numeric_limits<std::int32_t>::max();

/// 64 bits spread by multiplication; the upper bits of the product are the good ones.
constexpr std::size_t slot_of(std::uint64_t key, int bits) {
  return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> (64 - bits));
}

/// Bits of a table that holds `count` keys at most half full.
constexpr int table_bits(std::size_t count) {
  return std::max(4, static_cast<int>(std::bit_width(2 * count)));
}

/// Pairs of tokens and what becomes of them: open addressing, linear probing.
class MergeTable {
 public:
  struct Result {
    std::int32_t rank = no_rank;
    TokenId merged = 0;
  };

  MergeTable() : MergeTable(std::span<const Merge>{}) {}

  /// Of equal pairs the last counts, as in the reference. `ranks`, where there are any, count in
  /// place of the merges' places in the list.
  explicit MergeTable(std::span<const Merge> merges, std::span<const std::int32_t> ranks = {})
      : bits_(table_bits(merges.size())), entries_(std::size_t{1} << bits_) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::uint64_t pair = key(merges[rank].left, merges[rank].right);
      std::size_t slot = slot_of(pair, bits_);
      while (entries_[slot].pair != vacant && entries_[slot].pair != pair) slot = next(slot);
      const std::int32_t own = ranks.empty() ? static_cast<std::int32_t>(rank) : ranks[rank];
      entries_[slot] = {pair, {own, merges[rank].merged}};
    }
  }

  /// rank == no_rank where the two do not merge.
  Result find(TokenId left, TokenId right) const {
    const std::uint64_t pair = key(left, right);
    std::size_t slot = slot_of(pair, bits_);
    while (entries_[slot].pair != pair) {
      if (entries_[slot].pair == vacant) return {};
      slot = next(slot);
    }
    return entries_[slot].result;
  }

 private:
  static constexpr std::uint64_t vacant = ~std::uint64_t{0};  // ids are not negative
  struct Entry {
    std::uint64_t pair = vacant;
    Result result{};
  };

  static std::uint64_t key(TokenId left, TokenId right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
           static_cast<std::uint32_t>(right);
  }
  std::size_t next(std::size_t slot) const { return (slot + 1) & (entries_.size() - 1); }

  int bits_;
  std::vector<Entry> entries_;
};

/// Merges a short word: searches all pairs for the least rank, again and again. Quadratic, and
/// quicker than a queue below a few dozen bytes.
class ShortMerger {
 public:
  static constexpr std::size_t longest = 48;

  ShortMerger(const MergeTable& table, std::span<TokenId> ids) : table_(table), ids_(ids.data()) {
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) pairs_[i] = table.find(ids_[i], ids_[i + 1]);
    count_ = ids.size();
  }

  /// Merges in place; returns how many tokens are left.
  std::size_t run() {
    while (count_ > 1) {
      const std::size_t at = least();
      if (pairs_[at].rank == no_rank) break;
      merge(at);
    }
    return count_;
  }

 private:
  std::size_t least() const {
    std::size_t at = 0;
    for (std::size_t i = 1; i + 1 < count_; ++i) {
      if (pairs_[i].rank < pairs_[at].rank) at = i;
    }
    return at;
  }

  void merge(std::size_t at) {
    ids_[at] = pairs_[at].merged;
    std::copy(ids_ + at + 2, ids_ + count_, ids_ + at + 1);
    std::copy(pairs_.data() + at + 1, pairs_.data() + count_ - 1, pairs_.data() + at);
    --count_;
    if (at > 0) pairs_[at - 1] = table_.find(ids_[at - 1], ids_[at]);
    if (at + 1 < count_) pairs_[at] = table_.find(ids_[at], ids_[at + 1]);
  }

  const MergeTable& table_;
  TokenId* ids_;
  std::size_t count_ = 0;
  std::array<MergeTable::Result, longest> pairs_;
};

/// Merges a word of any length in O(n log n): a queue of pairs by rank, then place, over a linked
/// list of tokens.
class LongMerger {
 public:
  LongMerger(const MergeTable& table, std::span<TokenId> ids) : table_(table), ids_(ids) {
    const std::size_t n = ids.size();
    next_.resize(n);
    previous_.resize(n);
    pairs_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      next_[i] = i + 1;
      previous_[i] = i == 0 ? n : i - 1;
    }
    for (std::size_t i = 0; i + 1 < n; ++i) look_at(i);
  }

  std::size_t run() {
    while (!queue_.empty()) {
      const auto [rank, at] = queue_.top();
      queue_.pop();
      // An entry whose rank is no longer that of its place is stale.
      if (pairs_[at].rank == rank) merge(at);
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < ids_.size(); i = next_[i]) ids_[count++] = ids_[i];
    return count;
  }

 private:
  void look_at(std::size_t i) {
    const std::size_t end = ids_.size();
    pairs_[i] = next_[i] < end ? table_.find(ids_[i], ids_[next_[i]]) : MergeTable::Result{};
    if (pairs_[i].rank != no_rank) queue_.emplace(pairs_[i].rank, i);
  }

  void merge(std::size_t at) {
    const std::size_t gone = next_[at];
    const std::size_t after = next_[gone];
    ids_[at] = pairs_[at].merged;
    pairs_[gone].rank = no_rank;
    next_[at] = after;
    if (after < ids_.size()) previous_[after] = at;
    look_at(at);
    if (previous_[at] < ids_.size()) look_at(previous_[at]);
  }

  using Candidate = std::pair<std::int32_t, std::size_t>;  // rank, place

  const MergeTable& table_;
  std::span<TokenId> ids_;
  std::vector<std::size_t> next_, previous_;  // size() where there is none
  std::vector<MergeTable::Result> pairs_;     // of each token with the next
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

/// Words of at most 16 bytes that are one token.
class WordTable {
 public:
  static constexpr std::size_t longest = 16;

  explicit WordTable(std::size_t words = 0)
      : bits_(table_bits(words)), entries_(std::size_t{1} << bits_) {}

  /// At most as many words as the constructor was told, none twice.
  void insert(std::string_view word, TokenId id) {
    const Key key = key_of(word);
    std::size_t slot = slot_of(key.mix(), bits_);
    while (entries_[slot].length != 0) slot = next(slot);
    entries_[slot] = {key, static_cast<std::uint32_t>(word.size()), id};
  }

  /// −1 where the word is not in the table.
  TokenId find(std::string_view word) const {
    const Key key = key_of(word);
    std::size_t slot = slot_of(key.mix(), bits_);
    for (; entries_[slot].length != 0; slot = next(slot)) {
      const Entry& entry = entries_[slot];
      if (entry.key == key && entry.length == word.size()) return entry.id;
    }
    return -1;
  }

 private:
  struct Key {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Key&) const = default;
    std::uint64_t mix() const { return low ^ std::rotl(high * 0xD6E8FEB86659FD93u, 32); }
  };
  struct Entry {
    Key key{};
    std::uint32_t length = 0;  // 0: vacant
    TokenId id = 0;
  };

  template <class Word>
  static std::uint64_t load(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
    return word;
  }

  /// The first n ≤ 8 bytes, zeros after them, by loads that may overlap: no byte outside is read.
  static std::uint64_t load_part(const char* p, std::size_t n) {
    if (n == 8) return load<std::uint64_t>(p);
    if (n >= 4) {
      return load<std::uint32_t>(p) | (load<std::uint32_t>(p + n - 4) << (8 * (n - 4)));
    }
    if (n == 0) return 0;
    return load<std::uint8_t>(p) | (load<std::uint8_t>(p + n / 2) << (8 * (n / 2))) |
           (load<std::uint8_t>(p + n - 1) << (8 * (n - 1)));
  }

  static Key key_of(std::string_view word) {
    const std::size_t n = word.size();
    if (n <= 8) return {load_part(word.data(), n), 0};
    return {load<std::uint64_t>(word.data()),
            load<std::uint64_t>(word.data() + n - 8) >> (8 * (longest - n))};
  }
  std::size_t next(std::size_t slot) const { return (slot + 1) & (entries_.size() - 1); }

  static_assert(std::endian::native == std::endian::little);

  int bits_;
  std::vector<Entry> entries_;
};

}  // namespace detail

/// Encodes words. Immutable, so that any number of threads may use one object.
class BytePairEncoding {
 public:
  BytePairEncoding() : byte_ids_(no_bytes()) {}

  /// `tokens`: bytes by id, empty where an id is no mergeable token. `ignore_merges`: a word that
  /// is a token stays whole even where merges would not reach it. Every id in `merges` must be one
  /// of `tokens`.
  BytePairEncoding(std::span<const std::string_view> tokens, std::span<const Merge> merges,
                   bool ignore_merges)
      : byte_ids_(no_bytes()), merges_(merges), words_(count_short(tokens)) {
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id].size() == 1) {
        byte_ids_[static_cast<unsigned char>(tokens[id][0])] = static_cast<TokenId>(id);
      }
    }
    std::vector<TokenId> scratch;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      add_word(tokens[id], static_cast<TokenId>(id), ignore_merges, scratch);
    }
  }

  /// Adds the tokens of a non-empty word, all of whose bytes have tokens.
  void append(std::string_view word, std::vector<TokenId>& ids) const {
    if (word.size() <= detail::WordTable::longest) {
      if (const TokenId id = words_.find(word); id >= 0) {
        ids.push_back(id);
        return;
      }
    } else if (!long_words_.empty()) {
      if (const auto found = long_words_.find(std::string(word)); found != long_words_.end()) {
        ids.push_back(found->second);
        return;
      }
    }
    append_merged(word, ids);
  }

  /// True where every byte that occurs in valid UTF-8 has a token.
  bool covers_all_text() const {
    for (unsigned byte = 0; byte < 0xf5; ++byte) {
      if (byte != 0xc0 && byte != 0xc1 && byte_ids_[byte] < 0) return false;
    }
    return true;
  }

  /// Place of the first byte without a token, or the text's size.
  std::size_t first_uncovered(std::string_view text) const {
    const auto is_uncovered = [this](char byte) { return byte_id(byte) < 0; };
    return static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_uncovered) -
                                    text.begin());
  }

 private:
  static std::array<TokenId, 256> no_bytes() {
    std::array<TokenId, 256> ids{};
    ids.fill(-1);
    return ids;
  }

  /// How many words the table may have to hold.
  static std::size_t count_short(std::span<const std::string_view> tokens) {
    return static_cast<std::size_t>(
        std::count_if(tokens.begin(), tokens.end(), [](std::string_view token) {
          return !token.empty() && token.size() <= detail::WordTable::longest;
        }));
  }

  /// Merging is done once here for all words that are tokens: most words of real text.
  void add_word(std::string_view word, TokenId id, bool ignore_merges,
                std::vector<TokenId>& scratch) {
    const bool is_short = word.size() <= detail::WordTable::longest;
    if (word.empty() || !(ignore_merges || (is_short && merges_to(word, id, scratch)))) return;
    if (is_short) {
      words_.insert(word, id);
    } else {
      long_words_.emplace(word, id);
    }
  }

  bool merges_to(std::string_view word, TokenId id, std::vector<TokenId>& scratch) const {
    if (first_uncovered(word) < word.size()) return false;
    scratch.clear();
    append_merged(word, scratch);
    return scratch.size() == 1 && scratch[0] == id;
  }

  void append_merged(std::string_view word, std::vector<TokenId>& ids) const {
    const std::size_t begin = ids.size();
    for (const char byte : word) ids.push_back(byte_id(byte));
    const std::span<TokenId> symbols = std::span(ids).subspan(begin);
    const std::size_t count = word.size() <= detail::ShortMerger::longest
                                  ? detail::ShortMerger(merges_, symbols).run()
                                  : detail::LongMerger(merges_, symbols).run();
    ids.resize(begin + count);
  }

  TokenId byte_id(char byte) const { return byte_ids_[static_cast<unsigned char>(byte)]; }

  std::array<TokenId, 256> byte_ids_;  // −1: none
  detail::MergeTable merges_;
  detail::WordTable words_;
  std::unordered_map<std::string, TokenId> long_words_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
