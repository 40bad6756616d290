// Models and texts of a run: the user's, or those that come with the program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine.hpp"
#include "options.hpp"
#include "wanamaker/text/tokenized_corpus.hpp"

namespace study {

/// Folders (or GGUF files) of the models to run: one, or the two that come with the program.
std::vector<std::filesystem::path> model_folders(const Options& options);

/// The three corpora that come with the program: encyclopaedic, narrative, technical.
std::vector<std::filesystem::path> default_text_files();

/// Prints {"ids": […]} for every document on standard output as it is read.
void print_token_ids(const Options& options, const std::filesystem::path& model_folder,
                     wanamaker::ExecutorRef executor, const wanamaker::Progress& progress);

/// The documents of the texts, as the options have them.
wanamaker::Corpus read_documents(const Options& options);

/// The texts, encoded with the model's tokenizer (none is needed where all are ready ids), and what
/// the protocol has to say about them.
struct Texts {
  wanamaker::TokenizedCorpus corpus;
  std::string corpus_hash;
  std::string tokenizer_hash;
  std::vector<wanamaker::Index> last_word_tokens{};  // of passages whose last word is wanted
  wanamaker::Index tokenizer_size = 0;  ///< learned tokens; 0 where no text was encoded
};
Texts encode_documents(const wanamaker::Corpus& corpus, const std::filesystem::path& model_folder,
                       wanamaker::ExecutorRef executor, const wanamaker::Progress& progress);

/// The documents as passages whose last words are to be predicted, each one window by the rule.
Texts encode_passages(const wanamaker::Corpus& corpus, const std::filesystem::path& model_folder,
                      const wanamaker::WindowRule& rule, wanamaker::ExecutorRef executor,
                      const wanamaker::Progress& progress);

/// The options' texts as rows, each with its line feed and as a document of its own; blank rows
/// have no ids. As one stream: rows that are not blank, joined by a blank line, as one document.
Texts read_rows_as_documents(const Options& options, const std::filesystem::path& model_folder,
                             wanamaker::ExecutorRef executor, const wanamaker::Progress& progress);
Texts read_stream(const Options& options, const std::filesystem::path& model_folder,
                  wanamaker::ExecutorRef executor, const wanamaker::Progress& progress);

/// The documents that one --text gave.
struct TextRange {
  std::string name{};  ///< of the file or folder, without its ending
  wanamaker::Index first = 0;
  wanamaker::Index end = 0;  ///< one past the last
};

/// The documents of each text in turn; texts that gave none are left out.
std::vector<TextRange> text_ranges(const Options& options,
                                   const wanamaker::TokenizedCorpus& corpus);

/// Documents as make_splits sees them.
std::vector<wanamaker::SplitCandidate> split_candidates(const wanamaker::TokenizedCorpus& corpus);

/// Windows by the options and the model.
wanamaker::WindowRule window_rule(const Options& options, const wanamaker::ModelConfig& config);

/// The protocol of a run, token_ids_hash still empty.
wanamaker::Protocol make_protocol(const Options& options, const wanamaker::WindowRule& rule,
                                  const Texts& texts, const std::string& arithmetic);

}  // namespace study
