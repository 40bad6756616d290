// What `generate` begins with and what it shows: the prompt, and texts as they are written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "options.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/study/generate_result.hpp"
#include "wanamaker/text/tokenizer.hpp"
#include "wanamaker/text/utf8_stream.hpp"

namespace study {

/// The text of --prompt, of --prompt-file or of standard input; of the latter two without the line
/// feed at their end. Throws wanamaker::FileError, and wanamaker::ProtocolError beyond 16 MiB.
std::string read_prompt(const Options& options);

/// Its ids, after the beginning-of-text token where the tokenizer or --bos asks for one. Throws
/// what Tokenizer::encode throws, and wanamaker::ProtocolError where --bos asks for a token that
/// the model has not.
std::vector<wanamaker::TokenId> prompt_ids(const Options& options, const std::string& prompt,
                                           const wanamaker::Tokenizer& tokenizer,
                                           const wanamaker::ModelConfig& config);

/// What stands in for MLPs: of --replace, and without it ridge where --beside or --layers asks for
/// something.
wanamaker::MlpReplacement replacement_of(const Options& options);

/// What is asked of the library. Throws wanamaker::ProtocolError where nothing is to be beside.
wanamaker::GenerateOptions generate_options(const Options& options,
                                            const wanamaker::Tokenizer& tokenizer,
                                            const wanamaker::ModelConfig& config);

/// Texts from ids as they come, by name; tokens that end texts are left out. Printed as they come
/// where `streams`, whole characters only.
class TextWriter {
 public:
  TextWriter(const wanamaker::Tokenizer& tokenizer, const std::vector<wanamaker::TokenId>& ends,
             bool streams)
      : tokenizer_(tokenizer), ends_(ends), streams_(streams) {}

  void add(const std::string& name, wanamaker::TokenId id);
  /// The whole of a text.
  std::string finish(const std::string& name);

 private:
  struct Written {
    wanamaker::Utf8Stream stream;
    std::string text;
  };
  void append(Written& written, const std::string& characters);

  const wanamaker::Tokenizer& tokenizer_;
  const std::vector<wanamaker::TokenId>& ends_;
  bool streams_;
  std::map<std::string, Written> texts_;
};

/// What is printed after the texts were written: both beside each other where there are two, and
/// their figures.
void print_generate(const wanamaker::GenerateResult& result);

}  // namespace study
