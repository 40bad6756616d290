#include "inputs.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <span>
#include <system_error>

#include "console.hpp"
#include "wanamaker/study/paper_protocol.hpp"
#include "wanamaker/text/last_word.hpp"
#include "wanamaker/text/rows.hpp"
#include "wanamaker/text/token_stream.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

constexpr std::array default_models{"books-gpt2", "books-neox"};
constexpr std::array default_texts{"encyclopaedic.txt", "narrative.txt", "technical.txt"};

// The folder of embedded data: named by WANAMAKER_DATA, beside an installed program, or in the
// source tree that the program was built from.
fs::path data_folder() {
  std::vector<fs::path> places;
  if (const char* named = std::getenv("WANAMAKER_DATA")) places.emplace_back(named);
  std::error_code unreadable;
  const fs::path program = fs::read_symlink("/proc/self/exe", unreadable);
  if (!unreadable) places.push_back(program.parent_path() / "../share/wanamaker/data");
  places.emplace_back(WANAMAKER_EXAMPLES_DATA);
  for (const fs::path& place : places) {
    if (fs::exists(place / default_texts[0], unreadable)) return place;
  }
  throw wanamaker::FileError({.id = "file/no-default-data",
                              .where = places.back().string(),
                              .what = "the models and texts that come with the program are missing",
                              .mend = "name their folder in WANAMAKER_DATA, or use --model and "
                                      "--text"});
}

wanamaker::CorpusOptions corpus_options(const Options& options) {
  wanamaker::CorpusOptions corpus;
  const auto format = wanamaker::corpus_format_of_name(options.format);
  if (!format) {
    throw wanamaker::ProtocolError(
        {.id = "protocol/bad-format",
         .where = "--format",
         .what = "unknown format",
         .expected = "auto, plain, wikitext, jsonl, csv, lambada, npy, uint16, uint32",
         .found = options.format,
         .mend = "choose one of these"});
  }
  corpus.format = *format;
  if (!options.field.empty()) corpus.field = options.field;
  corpus.detokenisation = wanamaker::detokenisation_of_name(options.detokenise).value();
  if (options.separator >= 0) {
    corpus.separator = static_cast<wanamaker::TokenId>(options.separator);
  }
  return corpus;
}

std::vector<fs::path> text_paths(const Options& options) {
  return options.texts.empty() ? default_text_files() : options.texts;
}

}  // namespace

std::vector<fs::path> default_text_files() {
  const fs::path folder = data_folder();
  std::vector<fs::path> paths;
  for (const char* name : default_texts) paths.push_back(folder / name);
  return paths;
}

std::vector<fs::path> model_folders(const Options& options) {
  if (options.model != "default") return {options.model};
  const fs::path folder = data_folder() / "models";
  std::vector<fs::path> folders;
  for (const char* name : default_models) folders.push_back(folder / name);
  return folders;
}

namespace {

// One line of JSON for each document, written as its ids come.
class IdPrinter {
 public:
  void begin(const wanamaker::Document&) {
    std::cout << "{\"ids\":[";
    separator_ = "";
  }
  void add(std::span<const wanamaker::TokenId> ids) {
    text_.clear();
    for (const wanamaker::TokenId id : ids) {
      text_.append(separator_).append(std::to_string(id));
      separator_ = ",";
    }
    std::cout << text_;
  }
  void end() {
    std::cout << "]}\n";
    if (!std::cout) check_output_written();  // nobody reads on: no need to go on
  }

 private:
  std::string text_;
  const char* separator_ = "";
};

}  // namespace

void print_token_ids(const Options& options, const fs::path& model_folder,
                     wanamaker::ExecutorRef executor, const wanamaker::Progress& progress) {
  std::optional<wanamaker::Tokenizer> tokenizer;
  const auto get_tokenizer = [&]() -> const wanamaker::Tokenizer* {
    return &tokenizer.emplace(wanamaker::Tokenizer::of_model(model_folder));
  };
  IdPrinter printer;
  wanamaker::stream_tokens(text_paths(options), corpus_options(options), get_tokenizer, executor,
                           progress, printer);
}

wanamaker::Corpus read_documents(const Options& options) {
  return wanamaker::read_corpus(text_paths(options), corpus_options(options));
}

Texts encode_documents(const wanamaker::Corpus& corpus, const fs::path& model_folder,
                       wanamaker::ExecutorRef executor, const wanamaker::Progress& progress) {
  const bool needs_tokenizer =
      std::any_of(corpus.documents.begin(), corpus.documents.end(),
                  [](const wanamaker::Document& d) { return d.has_text(); });
  Texts texts;
  texts.corpus_hash = corpus.content_hash();
  if (needs_tokenizer) {
    const auto tokenizer = wanamaker::Tokenizer::of_model(model_folder);
    texts.tokenizer_hash = tokenizer.content_hash();
    texts.tokenizer_size = tokenizer.learned_vocabulary_size();
    texts.corpus = wanamaker::tokenize(corpus, &tokenizer, executor, progress);
  } else {
    texts.corpus = wanamaker::tokenize(corpus, nullptr, executor, progress);
  }
  return texts;
}

Texts encode_passages(const wanamaker::Corpus& corpus, const fs::path& model_folder,
                      const wanamaker::WindowRule& rule, wanamaker::ExecutorRef executor,
                      const wanamaker::Progress& progress) {
  Index longest = rule.window - (rule.bos ? 1 : 0);
  if (rule.truncation > 0) longest = std::min(longest, rule.truncation);
  const auto tokenizer = wanamaker::Tokenizer::of_model(model_folder);
  wanamaker::PassageCorpus passages =
      wanamaker::tokenize_passages(corpus, tokenizer, longest, executor, progress);
  return {.corpus = std::move(passages.corpus),
          .corpus_hash = corpus.content_hash(),
          .tokenizer_hash = tokenizer.content_hash(),
          .last_word_tokens = std::move(passages.target_tokens),
          .tokenizer_size = tokenizer.learned_vocabulary_size()};
}

namespace {

// The published procedures read rows of files, for each model anew, and leave them as they are.
void check_published_texts(const Options& options) {
  const bool piped =
      std::any_of(options.texts.begin(), options.texts.end(), wanamaker::is_standard_input);
  if (!piped && options.detokenise == "none") return;
  throw wanamaker::ProtocolError({.id = "protocol/published-texts",
                                  .where = piped ? "--text -" : "--detokenise",
                                  .what = "not with --protocol " + options.protocol,
                                  .expected = "texts in files, left as they are",
                                  .found = piped ? "standard input" : options.detokenise,
                                  .mend = "leave it out, or use --protocol rigorous"});
}

std::vector<std::string> all_rows(const Options& options) {
  check_published_texts(options);
  std::vector<std::string> rows;
  for (const fs::path& path : text_paths(options)) {
    for (const wanamaker::CorpusFile& file : wanamaker::corpus_files(path)) {
      std::vector<std::string> own = wanamaker::read_rows(file.path);
      std::move(own.begin(), own.end(), std::back_inserter(rows));
    }
  }
  return rows;
}

Texts encode_texts(const std::vector<std::string>& texts, const fs::path& model_folder,
                   wanamaker::ExecutorRef executor, const wanamaker::Progress& progress) {
  wanamaker::Corpus corpus;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    wanamaker::Document document{.name = "row " + std::to_string(i),
                                 .index = static_cast<Index>(i),
                                 .source = "row " + std::to_string(i)};
    if (wanamaker::is_blank(texts[i])) {
      document.content = std::vector<wanamaker::TokenId>{};
    } else {
      document.content = texts[i];
    }
    corpus.documents.push_back(std::move(document));
  }
  const auto tokenizer = wanamaker::Tokenizer::of_model(model_folder);
  return {.corpus = wanamaker::tokenize(corpus, &tokenizer, executor, progress),
          .corpus_hash = corpus.content_hash(),
          .tokenizer_hash = tokenizer.content_hash(),
          .tokenizer_size = tokenizer.learned_vocabulary_size()};
}

}  // namespace

Texts read_rows_as_documents(const Options& options, const fs::path& model_folder,
                             wanamaker::ExecutorRef executor, const wanamaker::Progress& progress) {
  std::vector<std::string> rows = all_rows(options);
  const std::size_t used =
      static_cast<std::size_t>(wanamaker::rows_used(wanamaker::PaperFigures{}));
  if (rows.size() > used) rows.resize(used);
  return encode_texts(rows, model_folder, executor, progress);
}

Texts read_stream(const Options& options, const fs::path& model_folder,
                  wanamaker::ExecutorRef executor, const wanamaker::Progress& progress) {
  std::string stream;
  for (const std::string& row : all_rows(options)) {
    if (wanamaker::is_blank(row)) continue;
    if (!stream.empty()) stream += "\n\n";
    stream += row;
  }
  return encode_texts({stream}, model_folder, executor, progress);
}

namespace {

// Whether a document comes from this file, or from a file of this folder.
bool comes_from(const wanamaker::TokenizedDocument& document, const fs::path& text) {
  const std::string name = wanamaker::name_of_input(text);
  if (!document.source.starts_with(name)) return false;
  const bool ends = document.source.size() == name.size() || name.ends_with('/');
  return ends || std::string_view("/:,").find(document.source[name.size()]) != std::string::npos;
}

}  // namespace

std::vector<TextRange> text_ranges(const Options& options,
                                   const wanamaker::TokenizedCorpus& corpus) {
  std::vector<TextRange> ranges;
  const Index count = static_cast<Index>(corpus.documents.size());
  Index next = 0;
  for (const fs::path& text : text_paths(options)) {
    TextRange range{wanamaker::is_standard_input(text) ? "standard input" : text.stem().string(),
                    next, next};
    while (range.end < count &&
           comes_from(corpus.documents[static_cast<std::size_t>(range.end)], text)) {
      ++range.end;
    }
    next = range.end;
    if (range.end > range.first) ranges.push_back(range);
  }
  return ranges;
}

std::vector<wanamaker::SplitCandidate> split_candidates(const wanamaker::TokenizedCorpus& corpus) {
  std::vector<wanamaker::SplitCandidate> candidates;
  for (const wanamaker::TokenizedDocument& document : corpus.documents) {
    wanamaker::Sha256 hash;
    for (const wanamaker::TokenId id : document.ids) {
      hash.update_number(static_cast<std::uint64_t>(id));
    }
    candidates.push_back({hash.hex(), static_cast<Index>(document.ids.size())});
  }
  return candidates;
}

wanamaker::WindowRule window_rule(const Options& options, const wanamaker::ModelConfig& config) {
  constexpr Index longest_default = 1024;
  wanamaker::WindowRule rule;
  rule.window = options.window > 0 ? options.window : std::min(config.positions, longest_default);
  if (rule.window > config.positions) {
    throw wanamaker::ProtocolError({.id = "protocol/window-too-long",
                                    .where = "--window",
                                    .what = "longer than the model's positions",
                                    .expected = "at most " + std::to_string(config.positions),
                                    .found = std::to_string(rule.window),
                                    .mend = "use a shorter window"});
  }
  if (options.bos) {
    rule.bos = config.bos;
    if (!rule.bos) {
      throw wanamaker::ProtocolError({.id = "protocol/no-bos",
                                      .where = "--bos",
                                      .what = "the model names no beginning-of-text token",
                                      .expected = "bos_token_id in config.json",
                                      .mend = "leave --bos out"});
    }
  }
  rule.stride = options.stride > 0 ? options.stride : rule.window - (rule.bos ? 1 : 0);
  rule.truncation = options.truncation;
  return rule;
}

wanamaker::Protocol make_protocol(const Options& options, const wanamaker::WindowRule& rule,
                                  const Texts& texts, const std::string& arithmetic) {
  wanamaker::Protocol protocol;
  protocol.name = options.protocol;
  protocol.detokenisation = options.detokenise;
  protocol.window = rule.window;
  protocol.stride = rule.stride;
  protocol.bos = rule.bos.has_value();
  protocol.truncation = rule.truncation;
  if (protocol.bos) protocol.first_token_rule = "every token is scored, the first after BOS";
  protocol.arithmetic = arithmetic;
  protocol.seed = options.seed;
  protocol.corpus_hash = texts.corpus_hash;
  protocol.tokenizer_hash = texts.tokenizer_hash;
  return protocol;
}

}  // namespace study
