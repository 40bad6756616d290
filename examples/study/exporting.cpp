#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "commands.hpp"
#include "run.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/gate/gated_layers.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/text/gguf_tokenizer_writing.hpp"
#include "wanamaker/text/tokenizer.hpp"
#include "wanamaker/text/tokenizer_json_writing.hpp"

namespace study {

namespace fs = std::filesystem;

namespace {

wanamaker::TokenizerDefinition tokenizer_definition(const fs::path& model) {
  if (!fs::is_directory(model)) {
    return wanamaker::read_gguf_tokenizer(wanamaker::GgufFile::open(model));
  }
  const fs::path json = model / "tokenizer.json", vocab = model / "vocab.json";
  const fs::path merges = model / "merges.txt";
  if (fs::exists(json)) {
    return wanamaker::read_tokenizer_json(wanamaker::MappedFile(json).text(), json.string());
  }
  return wanamaker::read_vocab_and_merges(wanamaker::MappedFile(vocab).text(), vocab.string(),
                                          wanamaker::MappedFile(merges).text(), merges.string());
}

// A GGUF file has its tokenizer within; only plain byte-level ones can be written.
void write_tokenizer_of_gguf(const fs::path& from, const fs::path& to) {
  try {
    wanamaker::write_tokenizer_json(to / "tokenizer.json", tokenizer_definition(from));
  } catch (const wanamaker::DataError& error) {
    std::cerr << "study: exported without a tokenizer: " << error.what() << '\n';
  }
}

// The tokenizer as GGUF has it, with the ends of texts that the model's files name.
wanamaker::GgufMetadataToWrite gguf_tokenizer_of(const fs::path& model) {
  const auto tokenizer = wanamaker::Tokenizer::of_model(model);
  wanamaker::TokenizerDefinition definition = tokenizer_definition(model);
  if (tokenizer.bos_id()) definition.bos = tokenizer.token_text(*tokenizer.bos_id());
  if (tokenizer.eos_id()) definition.eos = tokenizer.token_text(*tokenizer.eos_id());
  return wanamaker::gguf_tokenizer_metadata(definition);
}

wanamaker::ExportResult export_of_run(Run& run) {
  const Stopwatch watch;
  const fs::path folder = run.out / "model";
  make_folder(folder);
  copy_tokenizer_files(run.folder, folder);
  wanamaker::ExportOptions options{.replacement = *wanamaker::replacement_named(
                                       run.options.replace.empty() ? "ridge" : run.options.replace),
                                   .as_float16 = run.options.dtype == "float16"};
  if (run.options.gguf) options.gguf_tokenizer = gguf_tokenizer_of(run.folder);
  wanamaker::ExportResult result = run.engine->export_model(layer_task(run), options, folder);
  wanamaker::write_json(run.out / "export.json", wanamaker::json_of(result));
  write_times(run.out, "export", run.options, watch);
  return result;
}

void print_export(const Run& run, const wanamaker::ExportResult& result) {
  std::cout << (run.out / "model").string()
            << "/: " << wanamaker::name_of(result.options.replacement) << " in "
            << result.layers.size() << " of " << result.model.layers << " layers, fitted on "
            << result.fit_tokens << " tokens, weights as " << run.options.dtype
            << "; losses differ from those of what was fitted by " << result.largest_difference
            << " nats a token at most.\n"
            << "study verify " << (run.out / "model").string() << " checks what is read back; "
            << (result.options.replacement.is_gated()
                    ? "other commands see the model without its gates.\n"
                    : "study perplexity --model … measures it.\n");
}

}  // namespace

void copy_tokenizer_files(const fs::path& from, const fs::path& to) {
  if (!fs::is_directory(from)) return write_tokenizer_of_gguf(from, to);
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "added_tokens.json",
        "special_tokens_map.json", "generation_config.json", "chat_template.jinja"}) {
    if (!fs::exists(from / name)) continue;
    wanamaker::write_atomically(to / name, wanamaker::MappedFile(from / name).text());
  }
}

void run_export(const Options& options) {
  for_each_model(options, [&](Run& run) {
    const wanamaker::ExportResult result = export_of_run(run);
    run.progress.clear();
    print_export(run, result);
  });
}

void run_verify(const Options& options) {
  const wanamaker::CheckVectors check = wanamaker::read_check_vectors(options.exported);
  wanamaker::ThreadPool pool(thread_count(options));
  const std::unique_ptr<Engine> engine = engine_maker(options)(options.exported, pool);
  if (wanamaker::has_gated_layers(options.exported)) engine->install_gates(options.exported);
  const double difference =
      wanamaker::largest_difference(engine->sequence_losses(check.ids), check.nats);
  if (!(difference <= options.tolerance)) {
    throw wanamaker::DataError({.id = "check/mismatch",
                                .where = options.exported.string(),
                                .what = "the model does not compute what it was written to compute",
                                .expected = "losses within " + std::to_string(options.tolerance) +
                                            " nats of those in wanamaker_check.json",
                                .found = "a difference of " + std::to_string(difference),
                                .mend = "export it again, or see what changed its files"});
  }
  std::cout << options.exported.string() << ": " << check.nats.size()
            << " losses as they must be; the largest difference is " << difference
            << " nats (tolerance " << options.tolerance << ").\n";
}

}  // namespace study
