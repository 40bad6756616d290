// What wanamaker::compiled holds of models: it is not instantiated again where the library is
// linked.
#pragma once

#include <filesystem>
#include <span>

#include "wanamaker/backend/blas.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/perplexity.hpp"

#define WANAMAKER_COMPILED_MODELS(EXTERN, B)                                      \
  EXTERN template AnyTransformer<B> load_model(B&, const std::filesystem::path&); \
  EXTERN template AnyMlp<B> load_mlp(B&, const std::filesystem::path&, Index);    \
  EXTERN template double perplexity(B&, const AnyTransformer<B>&, std::span<const TokenId>);

namespace wanamaker::inline WANAMAKER_ABI {

#ifdef WANAMAKER_COMPILED
WANAMAKER_COMPILED_MODELS(extern, EigenBackend<float>)
WANAMAKER_COMPILED_MODELS(extern, BlasBackend<float>)
#endif

}  // namespace wanamaker::inline WANAMAKER_ABI
