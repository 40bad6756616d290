// Groups of parameters by name, rules that choose among them, and windows drawn from tokens.
#include <set>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/train/batches.hpp"
#include "wanamaker/train/parameter_selection.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

constexpr const char* some_names[] = {"transformer.wte.weight", "transformer.h.3.attn.c_attn.bias",
                                      "transformer.h.3.ln_2.weight",
                                      "transformer.h.12.mlp.c_fc.weight", "lm_head.weight"};

/// Which of the names above a rule chooses, as digits.
std::string chosen(const char* rules) {
  const ParameterSelection selection(rules);
  std::string digits;
  for (int i = 0; i < 5; ++i) {
    if (selection(some_names[i])) digits += static_cast<char>('0' + i);
  }
  return digits;
}

}  // namespace

TEST_CASE("parameters of all families belong to the group that their names say") {
  const std::pair<const char*, const char*> cases[] = {
      {"transformer.wte.weight", "embeddings"},
      {"transformer.wpe.weight", "embeddings"},
      {"transformer.h.0.attn.c_proj.weight", "attention of layer 0"},
      {"transformer.h.11.ln_1.bias", "norms of layer 11"},
      {"transformer.ln_f.weight", "norms"},
      {"lm_head.weight", "head"},
      {"gpt_neox.embed_in.weight", "embeddings"},
      {"gpt_neox.layers.4.attention.dense.bias", "attention of layer 4"},
      {"gpt_neox.layers.4.post_attention_layernorm.weight", "norms of layer 4"},
      {"gpt_neox.layers.4.mlp.dense_h_to_4h.weight", "mlp of layer 4"},
      {"embed_out.weight", "head"},
      {"model.embed_tokens.weight", "embeddings"},
      {"model.layers.7.self_attn.qkv_proj.weight", "attention of layer 7"},
      {"model.layers.7.mlp.gate_proj.weight", "mlp of layer 7"},
      {"model.norm.weight", "norms"}};
  for (const auto& [name, group] : cases) CHECK(parameter_group_text(name) == group);
}

TEST_CASE("rules choose by group, layer and pattern") {
  CHECK(chosen("") == "");
  CHECK(chosen("embeddings") == "0");
  CHECK(chosen("embeddings,head") == "04");
  CHECK(chosen("mlp:12") == "3");
  CHECK(chosen("mlp:3") == "");
  CHECK(chosen("layers:3-12") == "123");
  CHECK(chosen("norms:0-3,attention:3-3") == "12");
  CHECK(chosen("*.weight") == "0234");
  CHECK(chosen("transformer.h.*.bias") == "1");
  CHECK(chosen("*ln*,lm_head.weight") == "24");
  CHECK(chosen("weight") == "");
}

TEST_CASE("rules that cannot be read or choose nothing are refused") {
  for (const char* rule : {"mlp:", "mlp:x", "layers:5-2", "layers:-1", "attention,,mlp"}) {
    CAPTURE(rule);
    CHECK(error_id([&] { ParameterSelection{rule}; }) == "training/selection");
  }
  using B = ReferenceBackend<double>;
  ParameterList<B> list;
  for (const char* name : some_names) list.push_back({.name = name});
  CHECK(error_id([&] { ParameterSelection("mlp,*.bias").check_used(list); }) == "");
  CHECK(error_id([&] { ParameterSelection("mlp,layers:4").check_used(list); }) ==
        "training/selection");
}

TEST_CASE("windows hold neighbouring tokens and what follows each") {
  std::vector<TokenId> tokens(50);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(3 * i);
  const WindowSampler sampler(tokens, 7, 4, 9);
  const TrainingBatch batch = sampler(5);
  CHECK(batch.offsets == std::vector<Index>{0, 7, 14, 21, 28});
  REQUIRE(batch.scored.targets.size() == 28);
  for (std::size_t i = 0; i < 28; ++i) {
    CHECK(batch.scored.rows[i] == static_cast<TokenId>(i));
    CHECK(batch.scored.targets[i] == batch.tokens[i] + 3);
    if (i % 7 > 0) CHECK(batch.tokens[i] == batch.tokens[i - 1] + 3);
  }
}

TEST_CASE("batches depend on number, seed and tokens alone, and begin everywhere") {
  const std::vector<TokenId> tokens = {4, 1, 3, 0, 2, 5};
  const WindowSampler sampler(tokens, 2, 3, 9), same(tokens, 2, 3, 9), other(tokens, 2, 3, 10);
  std::set<TokenId> begins;
  bool differs = false;
  for (Index number = 0; number < 40; ++number) {
    const TrainingBatch batch = sampler(number);
    CHECK(batch.tokens == same(number).tokens);
    differs |= batch.tokens != other(number).tokens;
    begins.insert({batch.tokens[0], batch.tokens[2], batch.tokens[4]});
  }
  CHECK(differs);
  CHECK(begins == std::set<TokenId>{4, 1, 3, 0});  // 4 places have two tokens and a successor
  CHECK(sampler.hash() == same.hash());
  CHECK(sampler.hash() != other.hash());
  CHECK(sampler.hash() != WindowSampler(tokens, 3, 3, 9).hash());
  CHECK(error_id([&] { WindowSampler(tokens, 6, 1, 0); }) == "training/too-few-tokens");
  CHECK(error_id([&] { WindowSampler(tokens, 0, 1, 0); }) == "training/too-few-tokens");
}

TEST_CASE("documents are joined with a separator before each") {
  TokenizedCorpus corpus;
  for (const std::vector<TokenId>& ids : {std::vector<TokenId>{5, 6}, {}, {7}}) {
    corpus.documents.emplace_back().ids = ids;
  }
  CHECK(joined_documents(corpus, 1) == std::vector<TokenId>{1, 5, 6, 1, 1, 7});
}
