// The files in which tokenizers come, read whole: what a Tokenizer is made from.
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/gguf.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/text/gguf_tokenizer.hpp"
#include "wanamaker/text/gpt2_files.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"
#include "wanamaker/text/tokenizer_json.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline TokenizerConfig tokenizer_config_in(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) return {};
  return read_tokenizer_config(MappedFile(path).text(), path.string());
}

inline void apply_tokenizer_config(const TokenizerConfig& config, TokenizerDefinition& definition) {
  definition.bos = config.bos;
  definition.eos = config.eos;
  definition.adds_bos = config.add_bos_token;
}

/// Other tokenizers use files of the same names with another pattern.
inline void check_tokenizer_class(const TokenizerConfig& config,
                                  const std::filesystem::path& folder) {
  const std::string& name = config.tokenizer_class;
  for (const char* known : {"", "GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast"}) {
    if (name == known) return;
  }
  throw FormatError({.id = "tokenizer/unsupported",
                     .where = (folder / "tokenizer_config.json").string(),
                     .what = "unsupported tokenizer_class for vocab.json and merges.txt",
                     .expected = "GPT2Tokenizer",
                     .found = in_quotes(name),
                     .mend = "add the model's tokenizer.json to the folder"});
}

/// The two files may contradict each other; which one counts depends on who reads them.
inline void check_prefix_space(const TokenizerDefinition& definition,
                               const TokenizerConfig& config) {
  if (definition.symbols != SymbolKind::bytes) return;
  const auto* last = std::get_if<ByteLevelSplit>(&definition.pre_tokenizer.steps().back());
  if (last == nullptr || !config.add_prefix_space) return;
  if (*config.add_prefix_space == last->add_prefix_space) return;
  throw FormatError({.id = "tokenizer/contradiction",
                     .where = definition.where,
                     .what = "add_prefix_space differs from tokenizer_config.json",
                     .expected = *config.add_prefix_space ? "true" : "false",
                     .found = last->add_prefix_space ? "true" : "false",
                     .mend = "make the two files agree"});
}

[[noreturn]] inline void refuse_tokenizer_folder(const std::filesystem::path& folder) {
  throw FileError({.id = "tokenizer/missing",
                   .where = folder.string(),
                   .what = "no tokenizer here",
                   .expected = "tokenizer.json, or vocab.json and merges.txt",
                   .mend = "give a folder that has them"});
}

}  // namespace detail

/// One tokenizer.json. Throws FileError, FormatError.
inline TokenizerDefinition read_tokenizer_json_file(const std::filesystem::path& path) {
  return read_tokenizer_json(MappedFile(path).text(), path.string());
}

/// GPT-2's two files, with what tokenizer_config.json says. Throws FileError, FormatError.
inline TokenizerDefinition read_vocab_and_merges_files(const std::filesystem::path& vocab,
                                                       const std::filesystem::path& merges,
                                                       const TokenizerConfig& config = {}) {
  TokenizerDefinition definition = read_vocab_and_merges(
      MappedFile(vocab).text(), vocab.string(), MappedFile(merges).text(), merges.string(), config);
  detail::apply_tokenizer_config(config, definition);
  return definition;
}

/// A model's folder: tokenizer.json, else vocab.json and merges.txt; tokenizer_config.json where it
/// is there. Throws FileError, FormatError.
inline TokenizerDefinition read_tokenizer_folder(const std::filesystem::path& folder) {
  const TokenizerConfig config = detail::tokenizer_config_in(folder);
  const std::filesystem::path json = folder / "tokenizer.json";
  if (std::filesystem::exists(json)) {
    TokenizerDefinition definition = read_tokenizer_json_file(json);
    detail::check_prefix_space(definition, config);
    detail::apply_tokenizer_config(config, definition);
    return definition;
  }
  if (!std::filesystem::exists(folder / "vocab.json")) detail::refuse_tokenizer_folder(folder);
  detail::check_tokenizer_class(config, folder);
  return read_vocab_and_merges_files(folder / "vocab.json", folder / "merges.txt", config);
}

/// The metadata of a GGUF file. Throws FileError, FormatError.
inline TokenizerDefinition read_tokenizer_gguf_file(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  return read_gguf_tokenizer(file);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
