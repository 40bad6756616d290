#include "writing.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>

#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/report/result_tables.hpp"
#include "wanamaker/report/side_by_side.hpp"

namespace study {

using wanamaker::TokenId;

namespace {

constexpr std::size_t largest_prompt = std::size_t{16} << 20;

void check_prompt_size(std::size_t bytes, const std::string& where) {
  if (bytes <= largest_prompt) return;
  throw wanamaker::ProtocolError({.id = "protocol/prompt-too-long",
                                  .where = where,
                                  .what = "longer than any model's positions",
                                  .expected = "at most 16 MiB",
                                  .found = "more",
                                  .mend = "give a shorter text"});
}

// Texts to fit on may come from there, too.
void check_not_read_twice(const Options& options) {
  const auto& texts = options.texts;
  if (std::find(texts.begin(), texts.end(), "-") == texts.end()) return;
  throw wanamaker::ProtocolError({.id = "protocol/standard-input-twice",
                                  .where = "--text -",
                                  .what = "standard input is asked for the prompt, too",
                                  .expected = "one use of it",
                                  .found = "two",
                                  .mend = "give the prompt with --prompt or --prompt-file"});
}

std::string read_standard_input() {
  if (isatty(STDIN_FILENO) != 0) std::cerr << "prompt (end it with Ctrl-D): " << std::flush;
  std::string text;
  std::vector<char> block(1 << 16);
  while (std::cin && text.size() <= largest_prompt) {
    std::cin.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(std::cin.gcount()));
  }
  check_prompt_size(text.size(), "standard input");
  return text;
}

std::string read_prompt_file(const std::string& path) {
  const wanamaker::MappedFile file(path);
  check_prompt_size(file.text().size(), path);
  return std::string(file.text());
}

std::string without_last_line_feed(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// "ridge in layers 0, 3, 4".
std::string title_of(const wanamaker::WrittenText& text) {
  if (text.replaced.empty()) return text.name;
  std::string title = text.name + (text.replaced.size() > 1 ? " in layers" : " in layer");
  for (const wanamaker::ReplacedLayer& l : text.replaced) {
    title += (&l == &text.replaced.front() ? " " : ", ") + std::to_string(l.layer);
  }
  return title;
}

}  // namespace

wanamaker::MlpReplacement replacement_of(const Options& options) {
  std::string name = options.replace;
  if (name.empty()) name = options.beside || !options.layers.empty() ? "ridge" : "none";
  return wanamaker::replacement_named(name).value_or(wanamaker::MlpReplacement{});
}

std::string read_prompt(const Options& options) {
  if (options.prompt) return *options.prompt;
  if (options.prompt_file.empty()) check_not_read_twice(options);
  return without_last_line_feed(
      options.prompt_file.empty() ? read_standard_input() : read_prompt_file(options.prompt_file));
}

std::vector<TokenId> prompt_ids(const Options& options, const std::string& prompt,
                                const wanamaker::Tokenizer& tokenizer,
                                const wanamaker::ModelConfig& config) {
  std::vector<TokenId> ids = tokenizer.encode(prompt, "prompt");
  const std::optional<TokenId> bos = tokenizer.bos_id() ? tokenizer.bos_id() : config.bos;
  if (options.bos && !bos) {
    throw wanamaker::ProtocolError({.id = "protocol/no-bos",
                                    .where = "--bos",
                                    .what = "the model names no beginning-of-text token",
                                    .expected = "bos_token in tokenizer_config.json",
                                    .found = "none",
                                    .mend = "leave --bos out"});
  }
  if (bos && (options.bos || tokenizer.adds_bos())) ids.insert(ids.begin(), *bos);
  return ids;
}

wanamaker::GenerateOptions generate_options(const Options& options,
                                            const wanamaker::Tokenizer& tokenizer,
                                            const wanamaker::ModelConfig& config) {
  wanamaker::GenerateOptions asked{.replacement = replacement_of(options),
                                   .beside = options.beside};
  if (asked.beside && asked.replacement.is_none()) {
    throw wanamaker::ProtocolError({.id = "protocol/nothing-beside",
                                    .where = "--beside",
                                    .what = "nothing stands in, so both texts would be one",
                                    .expected = "--replace zero, mean, ridge, rank-R or a gate",
                                    .found = "none",
                                    .mend = "choose one of these, or leave --beside out"});
  }
  wanamaker::GenerationOptions& generation = asked.generation;
  generation.tokens = options.new_tokens;
  generation.sampling = {options.temperature, options.top_k, options.top_p, options.seed};
  generation.ends = config.eos;
  const std::optional<TokenId> eos = tokenizer.eos_id();
  const std::vector<TokenId>& ends = generation.ends;
  if (eos && std::find(ends.begin(), ends.end(), *eos) == ends.end()) {
    generation.ends.push_back(*eos);
  }
  return asked;
}

void TextWriter::add(const std::string& name, TokenId id) {
  if (std::find(ends_.begin(), ends_.end(), id) != ends_.end()) return;
  Written& written = texts_[name];
  // Models may have ids that no token has; U+FFFD stands for their text.
  const std::string unknown = "\xef\xbf\xbd";
  append(written, written.stream.add(tokenizer_.has_token(id) ? tokenizer_.token_bytes(id)
                                                              : std::string_view(unknown)));
}

std::string TextWriter::finish(const std::string& name) {
  Written& written = texts_[name];
  append(written, written.stream.finish());
  return written.text;
}

void TextWriter::append(Written& written, const std::string& characters) {
  written.text += characters;
  if (streams_) std::cout << wanamaker::terminal_text(characters) << std::flush;
}

void print_generate(const wanamaker::GenerateResult& result) {
  if (result.texts.size() == 2) {
    const wanamaker::WrittenText& original = result.texts[0];
    const wanamaker::WrittenText& changed = result.texts[1];
    std::cout << wanamaker::side_by_side({title_of(original), original.text},
                                         {title_of(changed), changed.text});
    const wanamaker::Index common = wanamaker::common_ids(original, changed);
    std::cout << "\nThe same for " << common << (common == 1 ? " token.\n" : " tokens.\n");
  }
  std::cout << "\n" << wanamaker::generate_table(result).aligned();
}

}  // namespace study
