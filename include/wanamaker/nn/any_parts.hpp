// The parts in which model families differ, each of any kind: known only when a file is read.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "wanamaker/nn/any_mlp.hpp"
#include "wanamaker/nn/block.hpp"
#include "wanamaker/nn/norm.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A LayerNorm or an RmsNorm.
template <class B>
class AnyNorm {
 public:
  AnyNorm() = default;
  AnyNorm(LayerNorm<B> norm) : norm_(std::move(norm)) {}
  AnyNorm(RmsNorm<B> norm) : norm_(std::move(norm)) {}

  /// f(norm) with the norm's own type.
  template <class F>
  decltype(auto) visit(F&& f) const {
    if (const auto* layer_norm = std::get_if<LayerNorm<B>>(&norm_)) return f(*layer_norm);
    return f(*std::get_if<RmsNorm<B>>(&norm_));
  }
  template <class F>
  decltype(auto) visit(F&& f) {
    if (auto* layer_norm = std::get_if<LayerNorm<B>>(&norm_)) return f(*layer_norm);
    return f(*std::get_if<RmsNorm<B>>(&norm_));
  }

  /// x, y [T × d]; y may be x.
  void forward(B& backend, const_matrix_view_t<B> x, matrix_view_t<B> y) const {
    visit([&](const auto& norm) { norm.forward(backend, x, y); });
  }
  /// [1 × d].
  const matrix_t<B>& gain() const {
    return visit([](const auto& norm) -> const matrix_t<B>& { return norm.gain(); });
  }
  Index parameters() const {
    return visit([](const auto& norm) { return norm.parameters(); });
  }

 private:
  std::variant<LayerNorm<B>, RmsNorm<B>> norm_{};
};

/// Learned or rotary positions.
template <class B>
class AnyPositions {
 public:
  AnyPositions() = default;
  AnyPositions(LearnedPositions) {}
  AnyPositions(RotaryPositions<B> rotary) : rotary_(std::move(rotary)) {}

  /// Nothing where positions are learned.
  const std::optional<RotaryPositions<B>>& rotary() const { return rotary_; }

  /// As RotaryPositions::apply.
  void apply(B& backend, ConstVectorView<TokenId> positions, Index heads,
             matrix_view_t<B> x) const {
    if (rotary_) rotary_->apply(backend, positions, heads, x);
  }

 private:
  std::optional<RotaryPositions<B>> rotary_{};
};

/// Sequential or parallel.
class AnyResidual {
 public:
  AnyResidual() = default;
  AnyResidual(SequentialResidual) {}
  AnyResidual(ParallelResidual) : reads_carry_(false) {}

  bool reads_carry() const { return reads_carry_; }

 private:
  bool reads_carry_ = true;
};

/// A block of any family.
template <class B>
using AnyBlock = TransformerBlock<B, AnyNorm<B>, CausalSelfAttention<B, AnyPositions<B>>, AnyMlp<B>,
                                  AnyResidual>;

}  // namespace wanamaker::inline WANAMAKER_ABI
