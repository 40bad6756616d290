// A gate of any type behind one, for ladders of gates.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "wanamaker/gate/gate.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Owns a gate. One indirect call per batch; an empty AnyGate must not be run.
template <class B>
class AnyGate {
 public:
  AnyGate() = default;
  template <Gate<B> G>
  requires(!std::same_as<G, AnyGate>) AnyGate(G gate)
      : gate_(std::make_unique<Model<G>>(std::move(gate))) {}

  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             VectorView<double> scores, Workspace<B>& workspace) const {
    gate_->score(backend, x, rows, scores, workspace);
  }
  MlpCost cost(Index tokens) const { return gate_->cost(tokens); }
  bool scores_are_probabilities() const { return gate_->probabilities(); }
  std::optional<double> natural_threshold() const { return gate_->threshold(); }

  /// The gate, where it is a G; null otherwise.
  template <class G>
  const G* get() const {
    const auto* model = dynamic_cast<const Model<G>*>(gate_.get());
    return model == nullptr ? nullptr : &model->gate;
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual void score(B&, const_matrix_view_t<B>, const RowContext<B>&, VectorView<double>,
                       Workspace<B>&) const = 0;
    virtual MlpCost cost(Index tokens) const = 0;
    virtual bool probabilities() const = 0;
    virtual std::optional<double> threshold() const = 0;
  };

  template <class G>
  struct Model final : Interface {
    explicit Model(G g) : gate(std::move(g)) {}
    void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
               VectorView<double> scores, Workspace<B>& workspace) const override {
      gate.score(backend, x, rows, scores, workspace);
    }
    MlpCost cost(Index tokens) const override { return gate.cost(tokens); }
    bool probabilities() const override { return wanamaker::scores_are_probabilities(gate); }
    std::optional<double> threshold() const override { return wanamaker::natural_threshold(gate); }
    G gate;
  };

  std::unique_ptr<Interface> gate_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
