// The blocks of the model families, with the MLP open.
#pragma once

#include "wanamaker/nn/any_mlp.hpp"
#include "wanamaker/nn/block.hpp"
#include "wanamaker/nn/mlp.hpp"
#include "wanamaker/nn/norm.hpp"
#include "wanamaker/nn/surrogate_mlp.hpp"
#include "wanamaker/nn/transformer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// GPT-2, Radford et al. 2019.
template <class B, class Mlp = DenseMlp<B, GeluTanh>>
using Gpt2Block = TransformerBlock<B, LayerNorm<B>, CausalSelfAttention<B, LearnedPositions>, Mlp,
                                   SequentialResidual>;

/// GPT-NeoX and Pythia, Black et al. 2022, Biderman et al. 2023. Sequential residual: the same with
/// SequentialResidual.
template <class B, class Mlp = DenseMlp<B, GeluErf>, class Topology = ParallelResidual>
using GptNeoXBlock =
    TransformerBlock<B, LayerNorm<B>, CausalSelfAttention<B, RotaryPositions<B>>, Mlp, Topology>;

/// Llama, Touvron et al. 2023, and its kin.
template <class B, class Mlp = GatedLinearUnitMlp<B, Silu>>
using LlamaBlock =
    TransformerBlock<B, RmsNorm<B>, GroupedQueryAttention<B>, Mlp, SequentialResidual>;

}  // namespace wanamaker::inline WANAMAKER_ABI
