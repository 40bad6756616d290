// Token ids of texts as they are read: memory for a few pieces, however long the texts are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/core/progress.hpp"
#include "wanamaker/text/corpus.hpp"
#include "wanamaker/text/document.hpp"
#include "wanamaker/text/tokenized_corpus.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Receives the ids of documents in order: begin(document), whose content is not there, then
/// add(ids) any number of times, then end().
template <class S>
concept TokenSink = requires(S& sink, const Document& document, std::span<const TokenId> ids) {
  sink.begin(document);
  sink.add(ids);
  sink.end();
};

namespace detail {

/// Encodes parts of documents, many at a time where the executor is parallel, and passes their ids
/// on in order. A text is cut where the tokenizer allows it (Tokenizer::last_cut).
template <TokenSink Sink, class GetTokenizer>
class PartEncoder {
 public:
  PartEncoder(const CorpusOptions& options, GetTokenizer& get_tokenizer, ExecutorRef executor,
              const Progress& progress, Sink& sink)
      : options_(options),
        get_tokenizer_(get_tokenizer),
        executor_(executor),
        progress_(progress),
        sink_(sink),
        batch_bytes_(piece_bytes * 8 * static_cast<std::size_t>(executor.concurrency())) {}

  void begin(Document document) {
    open_ = {.begins = true, .document = std::move(document)};
    where_ = open_.document.source;
  }
  void text(std::string_view piece) {
    const std::size_t before = open_.text.size();
    open_.text += piece;
    if (open_.text.size() < piece_bytes) return;
    if (const auto cut = tokenizer(where_)->last_cut(open_.text, before)) {
      Part rest{.text = open_.text.substr(*cut)};
      open_.text.resize(*cut);
      add_part(std::exchange(open_, std::move(rest)));
    } else if (open_.text.size() > options_.largest_document) {
      refuse_large_document(where_, options_.largest_document);
    }
  }
  void end() {
    open_.ends = true;
    add_part(std::exchange(open_, {}));
  }
  void whole(Document document) {
    Part part{.begins = true, .ends = true, .ids = document.ids()};
    document.content = std::string();
    part.document = std::move(document);
    add_part(std::move(part));
  }

  /// Passes on what is left.
  void flush() {
    executor_.run(static_cast<Index>(parts_.size()),
                  [&](Index i) { encode(parts_[static_cast<std::size_t>(i)]); });
    for (const Part& part : parts_) {
      if (part.begins) sink_.begin(part.document);
      sink_.add(part.ids);
      if (part.ends) sink_.end();
    }
    parts_.clear();
    held_bytes_ = 0;
    progress_.poll();
  }

 private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 18;
  static constexpr std::size_t most_parts = 4096;

  struct Part {
    bool begins = false, ends = false;
    Document document{};
    std::string where{};
    std::string text{};
    std::vector<TokenId> ids{};
  };

  const Tokenizer* tokenizer(const std::string& where) {
    if (!tokenizer_) tokenizer_ = get_tokenizer_();
    if (*tokenizer_ == nullptr) refuse_without_tokenizer(where);
    return *tokenizer_;
  }

  void add_part(Part part) {
    part.where = part.begins ? part.document.source : where_;
    if (!part.text.empty()) tokenizer(part.where);
    held_bytes_ += part.text.size() + part.ids.size() * sizeof(TokenId);
    parts_.push_back(std::move(part));
    if (held_bytes_ >= batch_bytes_ || parts_.size() >= most_parts) flush();
  }

  void encode(Part& part) const {
    if (part.text.empty()) return;
    part.ids = part.begins ? (*tokenizer_)->encode(part.text, part.where)
                           : (*tokenizer_)->encode_rest(part.text, part.where);
    part.text = std::string();
  }

  const CorpusOptions& options_;
  GetTokenizer& get_tokenizer_;
  ExecutorRef executor_;
  const Progress& progress_;
  Sink& sink_;
  std::size_t batch_bytes_;
  std::optional<const Tokenizer*> tokenizer_;
  Part open_;
  std::string where_;  // of the open document
  std::vector<Part> parts_;
  std::size_t held_bytes_ = 0;
};

}  // namespace detail

/// Encodes the documents of some files and folders into a sink as they are read; the ids are those
/// of `tokenize`, whatever the executor. `get_tokenizer()` gives a `const Tokenizer*`, null where
/// there is none; it is called once, before the first text. Memory is for about 2 MiB of text and
/// its ids for each thread, and for the longest document that cannot be cut: one that a form or
/// detokenisation needs whole, or a plain text whose tokenizer may not cut it. Throws as
/// for_each_document and tokenize; what came before the fault is in the sink then.
template <TokenSink Sink, class GetTokenizer>
void stream_tokens(std::span<const std::filesystem::path> paths, const CorpusOptions& options,
                   GetTokenizer&& get_tokenizer, ExecutorRef executor, const Progress& progress,
                   Sink& sink) {
  detail::PartEncoder encoder(options, get_tokenizer, executor, progress, sink);
  if (options.detokenisation == Detokenisation::none) {
    detail::read_parts(paths, options, encoder);
  } else {
    for_each_document(paths, options, [&](Document document) {
      if (!document.has_text()) return encoder.whole(std::move(document));
      const std::string content = std::get<std::string>(std::move(document.content));
      document.content = std::string();
      encoder.begin(std::move(document));
      encoder.text(content);
      encoder.end();
    });
  }
  encoder.flush();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
