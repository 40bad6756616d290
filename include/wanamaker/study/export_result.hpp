// What an export of a model asks and what it says of itself.
#pragma once

#include <optional>
#include <vector>

#include "wanamaker/io/check_vectors.hpp"
#include "wanamaker/io/gguf_writer.hpp"
#include "wanamaker/study/mlp_replacement.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/protocol.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_export.
struct ExportOptions {
  MlpReplacement replacement{};  ///< maps, or a gate of one linear score
  bool as_float16 = false;       ///< weights in the file; float32 otherwise
  Index check_tokens = 64;       ///< at most, of the first document
  /// Where model.gguf is to be written, too: its tokenizer (gguf_tokenizer_metadata).
  std::optional<GgufMetadataToWrite> gguf_tokenizer{};
};

/// What was written.
struct ExportResult {
  Protocol protocol{};
  ModelSummary model{};
  ExportOptions options{};
  std::vector<Index> layers{};  ///< with a map in the MLP's place, or a gate before both
  Index fit_documents = 0;
  Index fit_tokens = 0;
  double scale = 0;  ///< s of stock_mlp; 0 with gates
  CheckVectors check{};
  /// Nats between losses with what was fitted and with what the files have of it, in memory.
  double largest_difference = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
