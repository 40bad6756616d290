// wanamaker::compiled: the functions that programs use most, compiled once (docs/embedding.md).
#define WANAMAKER_COMPILED_SOURCE
#include "wanamaker/io/compiled_models.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

WANAMAKER_COMPILED_MODELS(, EigenBackend<float>)
WANAMAKER_COMPILED_MODELS(, BlasBackend<float>)

}  // namespace wanamaker::inline WANAMAKER_ABI
