// Backward passes through type-erased MLP policies: those of nn as they are, any other where it was
// wrapped by trainable_mlp.
#pragma once

#include <memory>
#include <utility>

#include "wanamaker/nn/any_mlp.hpp"
#include "wanamaker/nn/backward/mlp.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

template <class B>
struct TrainableInterface {
  virtual ~TrainableInterface() = default;
  virtual void forward_taped(BackwardPass<B>&, const_matrix_view_t<B>, const RowContext<B>&,
                             matrix_view_t<B>) const = 0;
  virtual void backward(BackwardPass<B>&, const_matrix_view_t<B>, const RowContext<B>&,
                        const_matrix_view_t<B>, matrix_view_t<B>) const = 0;
  virtual void parameters(const ParameterCollector<B>&) = 0;
};

template <class B, class P>
struct TrainableModel final : MlpModel<B, P>, TrainableInterface<B> {
  using MlpModel<B, P>::MlpModel;
  void forward_taped(BackwardPass<B>& pass, const_matrix_view_t<B> x, const RowContext<B>& rows,
                     matrix_view_t<B> y) const override {
    mlp_forward_taped(this->policy, pass, x, rows, y);
  }
  void backward(BackwardPass<B>& pass, const_matrix_view_t<B> x, const RowContext<B>& rows,
                const_matrix_view_t<B> dy, matrix_view_t<B> dx) const override {
    mlp_backward(this->policy, pass, x, rows, dy, dx);
  }
  void parameters(const ParameterCollector<B>& collector) override {
    collect(this->policy, collector);
  }
};

[[noreturn]] inline void throw_not_trainable() {
  throw ProtocolError({.id = "training/no-backward",
                       .where = "AnyMlp",
                       .what = "the MLP policy has no backward pass",
                       .expected = "a policy of nn, or one that trainable_mlp made an AnyMlp",
                       .mend = "wrap the policy by trainable_mlp (docs/policies/mlp.md)"});
}

/// f(policy) if the policy is a P.
template <class P, class Any, class F>
bool visit_if(Any& mlp, F& f) {
  auto* policy = mlp.template get<P>();
  if (policy != nullptr) f(*policy);
  return policy != nullptr;
}

/// f(policy) with the policy's own type, or with its TrainableInterface. Throws ProtocolError where
/// it has no backward pass.
template <class B, class Any, class F>
void visit_trainable(Any& mlp, F&& f) {
  if (auto* trainable = mlp.template interface_as<TrainableInterface<B>>()) return f(*trainable);
  const bool known = visit_if<DenseMlp<B, GeluTanh>>(mlp, f) ||
                     visit_if<DenseMlp<B, GeluErf>>(mlp, f) ||
                     visit_if<DenseMlp<B, Silu>>(mlp, f) || visit_if<DenseMlp<B, Relu>>(mlp, f) ||
                     visit_if<GatedLinearUnitMlp<B, Silu>>(mlp, f) ||
                     visit_if<GatedLinearUnitMlp<B, GeluTanh>>(mlp, f) ||
                     visit_if<GatedLinearUnitMlp<B, GeluErf>>(mlp, f) ||
                     visit_if<GatedLinearUnitMlp<B, Relu>>(mlp, f) ||
                     visit_if<AffineMlp<B>>(mlp, f) || visit_if<LowRankMlp<B>>(mlp, f) ||
                     visit_if<MeanMlp<B>>(mlp, f) || visit_if<ZeroMlp<B>>(mlp, f);
  if (!known) throw_not_trainable();
}

}  // namespace detail

/// A policy behind AnyMlp with its backward pass. Those of nn need it not.
template <class B, class P>
AnyMlp<B> trainable_mlp(P policy) {
  static_assert(TrainableMlp<P, B>,
                "wanamaker: a trainable MLP policy needs backward(pass, x, rows, dy, dx) const and "
                "parameters(collector) (docs/policies/mlp.md)");
  return AnyMlp<B>(std::make_unique<detail::TrainableModel<B, P>>(std::move(policy)));
}

/// Throw ProtocolError ("training/no-backward") for a policy that has none.
template <class B>
void forward_taped(const AnyMlp<B>& mlp, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                   const RowContext<B>& rows, matrix_view_t<B> y) {
  detail::visit_trainable<B>(mlp, [&](const auto& p) { mlp_forward_taped(p, pass, x, rows, y); });
}
template <class B>
void backward(const AnyMlp<B>& mlp, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>& rows, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  detail::visit_trainable<B>(mlp, [&](const auto& p) { mlp_backward(p, pass, x, rows, dy, dx); });
}
template <class B>
void collect_parameters(AnyMlp<B>& mlp, const ParameterCollector<B>& collector) {
  detail::visit_trainable<B>(mlp, [&](auto& p) { detail::collect(p, collector); });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
