// What a model is trained towards: the next token, or another model's distribution over it. Logits
// of a block of rows become the gradient in place.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/nn/backward/pass.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Some scored positions, in the backend's memory.
struct LossBlock {
  ConstVectorView<TokenId> rows;     ///< of the final stream
  ConstVectorView<TokenId> targets;  ///< tokens that they predict
  Index vocabulary = 0;
  double weight = 1;  ///< of one position's loss
};

/// Σ −log p(target), in nats.
template <class B>
class CrossEntropyLoss {
 public:
  /// logits ← weight·(softmax(logits) − onehot(target)).
  void operator()(BackwardPass<B>& pass, const LossBlock& block, matrix_view_t<B> logits) {
    const typename Workspace<B>::Frame frame(pass.workspace);
    const VectorView<double> nll = pass.workspace.template vector<double>(logits.rows);
    ops::token_loss_backward(pass.backend, logits, block.targets, block.vocabulary, block.weight,
                             nll);
    for (const double loss : detail::host_copy(pass.backend, nll)) sum_ += loss;
  }

  double nll_sum() const { return sum_; }

 private:
  double sum_ = 0;
};

/// Cross-entropy and the divergence from a teacher's distribution, whose final stream [T × d'] of
/// the same batch is at hand. Teacher: a model of the same vocabulary.
template <class B, class Teacher>
class DistillationLoss {
 public:
  /// Throws ProtocolError ("training/distillation") for a share outside [0, 1], a temperature that
  /// is not positive, or another vocabulary. `teacher` must outlive this.
  DistillationLoss(const Teacher& teacher, const_matrix_view_t<B> stream, Index vocabulary,
                   ops::DistillationMix mix)
      : teacher_(teacher), stream_(stream), mix_(mix) {
    if (!(mix.share >= 0 && mix.share <= 1)) {
      throw_wrong("the share is not one", "0 to 1", std::to_string(mix.share));
    }
    if (!(mix.temperature > 0)) {
      throw_wrong("the temperature is not one", "above 0", std::to_string(mix.temperature));
    }
    if (teacher.config().vocabulary != vocabulary) {
      throw_wrong("the teacher has another vocabulary", std::to_string(vocabulary) + " tokens",
                  std::to_string(teacher.config().vocabulary));
    }
  }

  /// logits ← weight·gradient of (1 − share)·nll + share·divergence.
  void operator()(BackwardPass<B>& pass, const LossBlock& block, matrix_view_t<B> logits) {
    const typename Workspace<B>::Frame frame(pass.workspace);
    const matrix_view_t<B> chosen = pass.workspace.matrix(logits.rows, stream_.cols);
    const matrix_view_t<B> wanted = pass.workspace.matrix(logits.rows, teacher_.logit_columns());
    ops::gather_rows(pass.backend, stream_, block.rows, chosen);
    teacher_.logits(pass.backend, chosen, wanted, pass.workspace);
    const VectorView<double> nll = pass.workspace.template vector<double>(logits.rows);
    const VectorView<double> divergence = pass.workspace.template vector<double>(logits.rows);
    ops::distillation_backward<B>(pass.backend, logits, wanted, block.targets, block.vocabulary,
                                  block.weight, mix_, nll, divergence);
    for (const double loss : detail::host_copy(pass.backend, nll)) nll_sum_ += loss;
    for (const double d : detail::host_copy(pass.backend, divergence)) divergence_sum_ += d;
  }

  double nll_sum() const { return nll_sum_; }
  double divergence_sum() const { return divergence_sum_; }

 private:
  [[noreturn]] static void throw_wrong(const char* what, std::string expected, std::string found) {
    throw ProtocolError({.id = "training/distillation",
                         .where = "DistillationLoss",
                         .what = what,
                         .expected = std::move(expected),
                         .found = std::move(found),
                         .mend = "check the options and the teacher"});
  }

  const Teacher& teacher_;
  const_matrix_view_t<B> stream_;
  ops::DistillationMix mix_;
  double nll_sum_ = 0;
  double divergence_sum_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
