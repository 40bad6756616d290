// Plans of the layers' MLPs: how they are read, what they take, sizes solved for, and models made
// of them: gradients, initial values, gates made hard.
#include "wanamaker/train/planned_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "nn/gradient_testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/train/initialise.hpp"
#include "wanamaker/train/mlp_budget.hpp"
#include "wanamaker/train/model_loss.hpp"

namespace {

using namespace wanamaker_test;
using PlanBackend = ReferenceBackend<double>;

ModelConfig plan_config(Family family = Family::gpt2, Index layers = 6, bool parallel = true) {
  return model_config({.family = family,
                       .vocabulary = 19,
                       .width = 8,
                       .layers = layers,
                       .heads = 2,
                       .positions = 16,
                       .hidden = 32,
                       .parallel_residual = parallel});
}

MlpPlan plan_of(const std::string& text, Index layers = 6) {
  return parse_mlp_plan(text, plan_config(Family::gpt2, layers));
}

/// One layer of each kind.
const char* const every_kind = "0:dense:5,1:affine,2:low-rank:3,3:hybrid:4,4:gated:6,5:zero";

/// The message of a plan that is refused.
std::string plan_refusal(const std::string& text, Index layers = 6) {
  try {
    plan_of(text, layers);
  } catch (const DataError& error) {
    CHECK(error.id() == "training/mlp-plan");
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("plans name layers by number, range, ends and middle; later items override") {
  const LayerMlp usual{MlpKind::dense, 32}, affine{MlpKind::affine, 0};
  CHECK(plan_of("") == MlpPlan(6, usual));
  CHECK(plan_of("ends:affine") == MlpPlan{affine, usual, usual, usual, usual, affine});
  CHECK(plan_of("middle:affine,2-3:gated") ==
        MlpPlan{usual, affine, {MlpKind::gated, 32}, {MlpKind::gated, 32}, affine, usual});
  CHECK(plan_of("all:affine,5:low-rank:7").back() == LayerMlp{MlpKind::low_rank, 7});
  CHECK(text_of(plan_of("ends:hybrid:?,middle:zero")) == "0:hybrid:?,1-4:zero,5:hybrid:?");
  // A quarter of the layers at either end.
  CHECK(text_of(plan_of("ends:zero", 12)) == "0-2:zero,3-8:dense:32,9-11:zero");
  CHECK(text_of(plan_of("ends:zero", 1)) == "0:zero");
  CHECK(text_of(plan_of(every_kind)) == every_kind);
}

TEST_CASE("a plan that was written is read as the same plan") {
  RandomStream random(5);
  for (int trial = 0; trial < 50; ++trial) {
    MlpPlan plan(6);
    for (LayerMlp& mlp : plan) {
      mlp.kind = static_cast<MlpKind>(random.below(6));
      const bool has_size = mlp.kind != MlpKind::affine && mlp.kind != MlpKind::zero;
      if (has_size) mlp.size = 1 + static_cast<Index>(random.below(90));
    }
    CHECK(plan_of(text_of(plan)) == plan);
  }
}

TEST_CASE("plans that cannot be read say which item, what was expected and the mend") {
  const std::map<std::string, std::string> faults{
      {"0", "no kind of MLP"},
      {"6:dense", "from 0 to 5"},
      {"3-1:dense", "no such layers"},
      {"middel:dense", "ends or middle"},
      {"0:dens", "low-rank, hybrid"},
      {"0:affine:3", "has no size"},
      {"0:low-rank", "a rank of"},
      {"0:hybrid", "hidden units"},
      {"0:dense:0", "no usable size"},
      {"0:dense:x", "no usable size"},
      {"0:dense:", "no usable size"},
      {"0:dense,", "no kind of MLP"},
      {"0:dense:-4", "no usable size"},
      {"-1:dense", "no such layers"},
      {"0:dense:9999999999999999999", "no usable size"}};
  for (const auto& fault : faults) {
    CAPTURE(fault.first);
    const std::string message = plan_refusal("1:zero," + fault.first);
    CAPTURE(message);
    CHECK(message.find(fault.second) != message.npos);
    CHECK(message.find("0:dense:1024,1-4:affine") != message.npos);
  }
  CHECK(plan_refusal("middle:affine", 2).find("three layers") != std::string::npos);
}

TEST_CASE("what a plan takes is what the model's policies say") {
  PlanBackend backend;
  for (const Family family : {Family::gpt2, Family::gpt_neox, Family::llama}) {
    const ModelConfig config = plan_config(family);
    const MlpPlan plan = parse_mlp_plan(every_kind, config);
    const AnyTransformer<PlanBackend> model = make_model(backend, config, plan);
    for (std::size_t l = 0; l < plan.size(); ++l) {
      CAPTURE(text_of(plan[l]));
      const auto& mlp = model.mlp(static_cast<Index>(l));
      const PlannedCost cost = planned_cost(config, plan[l], 0.25);
      CHECK(cost.parameters == mlp.cost(1).parameters);
      const auto* routing = mlp.get<LearnedRouting<PlanBackend>>();
      CHECK((routing != nullptr) == (plan[l].kind == MlpKind::gated));
      CHECK(cost.flops == (routing ? routing->cost_per_token().flops(0.25) : mlp.cost(1).flops));
    }
  }
}

// GPT-2 type, d = 8, four layers with h = 32. By hand, in one layer: a dense MLP of s units has
// 17·s + 8 parameters and takes 32·s FLOPs a token, an affine map 72 and 128, a gate 9 and 16. All
// four take 4·552 = 2208 parameters and 4096 FLOPs.
TEST_CASE("sizes are solved for as by hand") {
  const ModelConfig config = plan_config(Family::gpt2, 4);
  const auto solved = [&](const std::string& text, BudgetKind kind) {
    const double target = planned_cost(config, dense_plan(config), 0.5).of(kind);
    CHECK(target == (kind == BudgetKind::parameters ? 2208 : 4096));
    return text_of(solve_plan(config, parse_mlp_plan(text, config), kind, target, 0.5));
  };
  // 2·(17·s + 8) + 2·280 = 2208.
  CHECK(solved("ends:dense:?,middle:dense:16", BudgetKind::parameters) ==
        "0:dense:48,1-2:dense:16,3:dense:48");
  // 2·(17·s + 8) + 2·72 = 2208: s = 60.2; 64·s + 256 = 4096: s = 60.
  for (const BudgetKind kind : {BudgetKind::parameters, BudgetKind::flops}) {
    CHECK(solved("ends:dense:?,middle:affine", kind) == "0:dense:60,1-2:affine,3:dense:60");
  }
  // 2·(72 + 9 + 17·s + 8) = 1104: s = 27.2; 2·(16 + 128/2 + 32·s/2) = 2048: s = 59.
  CHECK(solved("middle:gated:?", BudgetKind::parameters) == "0:dense:32,1-2:gated:27,3:dense:32");
  CHECK(solved("middle:gated:?", BudgetKind::flops) == "0:dense:32,1-2:gated:59,3:dense:32");
  // 2·16·s of rank s against 2048, twice.
  CHECK(solved("middle:low-rank:?", BudgetKind::flops) == "0:dense:32,1-2:low-rank:32,3:dense:32");
  CHECK(solved("all:dense", BudgetKind::flops) == "0-3:dense:32");
  CHECK_THROWS_AS(solved("all:dense:44,0:dense:?", BudgetKind::parameters), DataError);
}

TEST_CASE("no other size comes nearer to the budget") {
  RandomStream random(8);
  for (const Family family : {Family::gpt2, Family::llama}) {
    const ModelConfig config = plan_config(family);
    for (const std::string open : {"dense", "low-rank", "hybrid", "gated"}) {
      for (int trial = 0; trial < 10; ++trial) {
        CAPTURE(open);
        const double target = 4000 + 9000 * random.uniform();
        const double routed = random.uniform();
        const BudgetKind kind = random.below(2) == 0 ? BudgetKind::parameters : BudgetKind::flops;
        const MlpPlan plan =
            parse_mlp_plan("0-4:affine,5:zero,1:" + open + ":?,4:" + open + ":?", config);
        const MlpPlan solved = solve_plan(config, plan, kind, target, routed);
        const Index size = solved[1].size;
        const auto miss = [&](Index s) {
          return std::abs(planned_cost(config, with_size(plan, s), routed).of(kind) - target);
        };
        CHECK(solved == with_size(plan, size));
        CHECK(miss(size) <= miss(size + 1));
        CHECK(miss(size) <= miss(size - 1));
      }
    }
  }
}

TEST_CASE("gradients of models with a policy of its own in every layer equal central differences") {
  PlanBackend backend;
  for (const ModelConfig& config : {plan_config(), plan_config(Family::gpt_neox, 6, true),
                                    plan_config(Family::gpt_neox, 6, false)}) {
    CAPTURE(config.name);
    CAPTURE(config.parallel_residual);
    AnyTransformer<PlanBackend> model =
        make_model(backend, config, parse_mlp_plan(every_kind, config));
    RandomStream random(12);
    for (const auto& p : parameters<PlanBackend>(model)) {
      for (Index i = 0; i < p.value.size(); ++i) p.value.data[i] = 0.6 * random.normal();
    }
    std::vector<TokenId> tokens;
    for (int i = 0; i < 11; ++i) tokens.push_back(static_cast<TokenId>(random.below(19)));
    const std::vector<Index> offsets{0, 7, 11};
    const PackedBatch<PlanBackend> batch(backend, tokens, offsets);
    const ScoredPositions scored = all_next_tokens(batch);
    Workspace<PlanBackend> workspace(backend);
    const auto loss = [&] {
      auto residual = make_matrix(backend, batch.rows(), config.width);
      model.forward(backend, batch, residual.view(), workspace);
      double sum = 0;
      for (const double nll : model.token_losses(backend, residual.view(), scored, workspace)) {
        sum += nll / static_cast<double>(scored.rows.size());
      }
      return sum;
    };
    const Gradients<PlanBackend> gradients(backend, model);
    CHECK(std::abs(loss_and_gradients(model, backend, batch, scored, gradients, workspace) -
                   loss()) < 1e-13);
    int of_mlps = 0;
    for (const auto& p : parameters(model, gradients)) {
      check_gradient(loss, p.value, p.gradient, p.name, 2);
      of_mlps += p.name.find(".mlp.") != p.name.npos ? 1 : 0;
    }
    // Weights and biases: dense 4, affine 2, low rank 3, hybrid 6, gated 8.
    CHECK(of_mlps == 23);
  }
}

TEST_CASE("models of two plans begin equal wherever they have the same parameter") {
  PlanBackend backend;
  const ModelConfig config = plan_config();
  const auto values_of = [&](const char* text) {
    AnyTransformer<PlanBackend> model = make_model(backend, config, parse_mlp_plan(text, config));
    initialise(backend, model, 3);
    std::map<std::string, std::vector<double>> values;
    for (const auto& p : parameters<PlanBackend>(model)) {
      values[p.name].assign(p.value.data, p.value.data + p.value.size());
    }
    return values;
  };
  const auto plain = values_of(""), mixed = values_of("2:affine,3:hybrid:32,4:gated,5:dense:31");
  for (const auto& entry : plain) {
    const std::string& name = entry.first;
    CAPTURE(name);
    if (name.find("h.5.mlp") != name.npos) continue;
    if (name.find("h.2.mlp") != name.npos) {
      CHECK(mixed.count(name) == 0);
    } else {
      CHECK(mixed.at(name) == entry.second);
    }
  }
  // Maps write into the stream as what they stand beside does: 0.02/√12; gates begin with g = ½.
  for (const char* map : {"h.2.mlp.affine", "h.3.mlp.linear.affine", "h.4.mlp.surrogate.affine"}) {
    double squares = 0;
    for (const double v : mixed.at("transformer." + std::string(map) + ".weight")) squares += v * v;
    const double deviation = std::sqrt(squares / 64);
    // 64 draws: off by less than 5 standard errors of 1/√128.
    CHECK(std::abs(deviation / (0.02 / std::sqrt(12.0)) - 1) < 5 / std::sqrt(128.0));
  }
  CHECK(mixed.at("transformer.h.4.mlp.gate.weight") == std::vector<double>(8));
}

TEST_CASE("a hard gate that routes nothing is the dense model, one that routes all runs no MLP") {
  PlanBackend backend;
  const ModelConfig config = plan_config(Family::gpt_neox);
  const std::vector<TokenId> tokens{3, 1, 4, 1, 5, 9, 2};
  const PackedBatch<PlanBackend> batch(backend, tokens);
  Workspace<PlanBackend> workspace(backend);
  const auto losses_of = [&](const char* plan, double intercept, Index& routed) {
    AnyTransformer<PlanBackend> model = make_model(backend, config, parse_mlp_plan(plan, config));
    initialise(backend, model, 4);
    for_each_routing(model, [&](Index, LearnedRouting<PlanBackend>& routing) {
      routing.gate().intercept().view()(0, 0) = intercept;
    });
    harden_gates(model, [&](Index layer, ConstVectorView<TokenId> choices) {
      CHECK(layer == 2);
      for (Index i = 0; i < choices.size; ++i) routed += choices[i];
    });
    auto residual = make_matrix(backend, batch.rows(), config.width);
    model.forward(backend, batch, residual.view(), workspace);
    return model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
  };
  Index none = 0, all = 0;
  const std::vector<double> dense = losses_of("", 0, none);
  CHECK(losses_of("2:gated", -9, none) == dense);
  CHECK(none == 0);
  CHECK(losses_of("2:gated", 9, all) != dense);
  CHECK(all == 7);
}

TEST_CASE("a model by a plan computes the same in the family's own form, of one width") {
  PlanBackend backend;
  const std::vector<TokenId> tokens{3, 1, 4, 1, 5, 9, 2};
  const PackedBatch<PlanBackend> batch(backend, tokens);
  Workspace<PlanBackend> workspace(backend);
  const auto check = [&](Family family, const std::string& text, Index hidden) {
    ModelConfig config = plan_config(family);
    config.layers = 3;
    CAPTURE(text);
    const MlpPlan plan = parse_mlp_plan(text, config);
    CHECK(is_stock(plan));
    AnyTransformer<PlanBackend> model = make_model(backend, config, plan);
    RandomStream random(13);
    for (const auto& p : parameters<PlanBackend>(model)) {
      for (Index i = 0; i < p.value.size(); ++i) p.value.data[i] = 0.4 * random.normal();
    }
    const auto stock = stock_model(backend, model, plan, StockScale::for_float);
    CHECK(stock.config.hidden == hidden);
    CHECK(stock.model.mlp(1).cost(1).parameters == stock.model.mlp(2).cost(1).parameters);
    for (Index l = 0; l < config.layers; ++l) {
      CHECK(stock.model.mlp(l).template get<AffineMlp<PlanBackend>>() == nullptr);
    }
    const auto losses = [&](const AnyTransformer<PlanBackend>& of) {
      auto residual = make_matrix(backend, batch.rows(), config.width);
      of.forward(backend, batch, residual.view(), workspace);
      return of.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
    };
    // Maps in activations: some ε of the inputs' size times the weights'.
    CHECK(all_close(losses(stock.model), losses(model), 0, 1e-12));
  };
  const Index d = plan_config().width;
  for (const Family family : {Family::gpt2, Family::gpt_neox, Family::llama}) {
    const Index map = family == Family::llama ? d : 2 * d;
    check(family, "0:dense:5,1:zero,2:dense:41", 41);
    check(family, "0:affine,1:zero,2:low-rank:3", map);
    check(family, "0:dense:5,1:hybrid:6,2:affine", map + 6);
  }
  CHECK_FALSE(is_stock(plan_of(every_kind)));
}

TEST_CASE("the weight of sparsity rises to its value and reaches every learned gate") {
  const SparsityOptions options{.weight = 0.6, .warm_up = 3};
  CHECK(options.at(0) == 0.6 * 1.0 / 3.0);
  CHECK(options.at(2) == 0.6);
  CHECK(options.at(7) == 0.6);
  PlanBackend backend;
  const ModelConfig config = plan_config();
  auto model = make_model(backend, config, parse_mlp_plan("middle:gated", config));
  set_sparsity(model, 0.25);
  int gates = 0;
  for_each_routing(model, [&](Index, LearnedRouting<PlanBackend>& routing) {
    CHECK(routing.sparsity_weight() == 0.25);
    ++gates;
  });
  CHECK(gates == 4);
}
