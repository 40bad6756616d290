// An MLP policy of any type behind one, for models read from files and for sweeps.
#pragma once

#include <memory>
#include <utility>

#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

template <class B>
struct MlpInterface {
  virtual ~MlpInterface() = default;
  virtual void forward(B&, const_matrix_view_t<B>, const RowContext<B>&, matrix_view_t<B>,
                       Workspace<B>&) const = 0;
  virtual MlpCost cost(Index tokens) const = 0;
};

template <class B, class P>
struct MlpModel : MlpInterface<B> {
  explicit MlpModel(P p) : policy(std::move(p)) {}
  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const override {
    mlp_forward(policy, backend, x, rows, y, workspace);
  }
  MlpCost cost(Index tokens) const override { return policy.cost(tokens); }
  P policy;
};

}  // namespace detail

/// Owns a policy. One indirect call per forward; an empty AnyMlp must not be run.
template <class B>
class AnyMlp {
 public:
  AnyMlp() = default;
  template <MlpPolicy<B> P>
  requires(!std::same_as<P, AnyMlp>) AnyMlp(P policy)
      : policy_(std::make_unique<detail::MlpModel<B, P>>(std::move(policy))) {}
  /// A policy behind an interface that may have more than this type asks for.
  explicit AnyMlp(std::unique_ptr<detail::MlpInterface<B>> policy) : policy_(std::move(policy)) {}

  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    policy_->forward(backend, x, rows, y, workspace);
  }
  MlpCost cost(Index tokens) const { return policy_->cost(tokens); }

  /// The policy, where it is a P; null otherwise.
  template <class P>
  const P* get() const {
    const auto* model = dynamic_cast<const detail::MlpModel<B, P>*>(policy_.get());
    return model == nullptr ? nullptr : &model->policy;
  }
  template <class P>
  P* get() {
    auto* model = dynamic_cast<detail::MlpModel<B, P>*>(policy_.get());
    return model == nullptr ? nullptr : &model->policy;
  }

  /// The policy's interface, where it is an I too; null otherwise.
  template <class I>
  I* interface_as() const {
    return dynamic_cast<I*>(policy_.get());
  }

 private:
  std::unique_ptr<detail::MlpInterface<B>> policy_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
