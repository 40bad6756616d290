// An MLP policy of any type behind one, for models read from files and for sweeps.
#pragma once

#include <memory>
#include <utility>

#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Owns a policy. One indirect call per forward; an empty AnyMlp must not be run.
template <class B>
class AnyMlp {
 public:
  AnyMlp() = default;
  template <MlpPolicy<B> P>
  requires(!std::same_as<P, AnyMlp>) AnyMlp(P policy)
      : policy_(std::make_unique<Model<P>>(std::move(policy))) {}

  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    policy_->forward(backend, x, rows, y, workspace);
  }
  MlpCost cost(Index tokens) const { return policy_->cost(tokens); }

  /// The policy, where it is a P; null otherwise.
  template <class P>
  const P* get() const {
    const auto* model = dynamic_cast<const Model<P>*>(policy_.get());
    return model == nullptr ? nullptr : &model->policy;
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual void forward(B&, const_matrix_view_t<B>, const RowContext<B>&, matrix_view_t<B>,
                         Workspace<B>&) const = 0;
    virtual MlpCost cost(Index tokens) const = 0;
  };

  template <class P>
  struct Model final : Interface {
    explicit Model(P p) : policy(std::move(p)) {}
    void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
                 matrix_view_t<B> y, Workspace<B>& workspace) const override {
      mlp_forward(policy, backend, x, rows, y, workspace);
    }
    MlpCost cost(Index tokens) const override { return policy.cost(tokens); }
    P policy;
  };

  std::unique_ptr<Interface> policy_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
