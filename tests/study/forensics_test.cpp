// Examples for reading on a planted model whose streams are functions of the token, and their
// pages.
#include "wanamaker/study/forensics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/report/forensics_pages.hpp"

namespace {

using namespace wanamaker_test;

std::vector<std::string> made_spellings() {
  std::vector<std::string> spellings;
  for (Index id = 0; id < PlantedModel::vocabulary; ++id) {
    spellings.push_back(id % 2 == 0 ? " the" : "<" + std::to_string(id) + ">\n");
  }
  return spellings;
}

ForensicsResult examine(ForensicsOptions options, Index documents = 80) {
  B backend;
  PlantedModel planted(backend, 0);
  const AnyTransformer<B> model = planted.make(dense_mlps(planted, 1));
  const TokenizedCorpus corpus = random_corpus(documents, 30, PlantedModel::vocabulary);
  const Splits splits = some_splits(documents);
  Workspace<B> workspace(backend);
  const StudyInput<B> input = planted_study(backend, model, corpus, splits, workspace);
  return run_forensics(input, options);
}

double logit(double probability) {
  return std::log(probability / (1 - probability));
}

}  // namespace

TEST_CASE("passages are the begins of the report documents, each position with what it predicts") {
  const ForensicsResult result = examine({.passages = 2, .positions = 7});
  const TokenizedCorpus corpus = random_corpus(80, 30, PlantedModel::vocabulary);
  REQUIRE(result.passages.size() == 2);
  for (std::size_t p = 0; p < 2; ++p) {
    const std::vector<TokenId>& ids = corpus.documents[4 * p + 3].ids;  // every fourth is reported
    CHECK(result.passages[p].tokens == std::vector<TokenId>(ids.begin(), ids.begin() + 7));
    CHECK(result.passages[p].targets == std::vector<TokenId>(ids.begin() + 1, ids.begin() + 8));
  }
  CHECK(result.layers.at(0).delta.size() == 14);
  CHECK(result.layers.at(0).probability.size() == 14);
}

TEST_CASE("shares, AUC and means over types are those of the positions that are shown") {
  const auto spellings = made_spellings();
  const ForensicsResult result = examine(
      {.passages = 100, .positions = 100, .shown = 5, .least_count = 1, .spellings = spellings});
  const ForensicsLayer& layer = result.layers.at(0);
  std::map<TokenId, double> probabilities;
  std::vector<double> words, others;
  std::vector<std::uint8_t> labels;
  double routed = 0;
  for_each_position(
      result, [&](const ForensicsLayer& l, const Passage& p, std::size_t i, std::size_t at) {
        // Nothing but the token is in the stream, so one type has one probability.
        const auto known = probabilities.emplace(p.tokens[i], l.probability[at]).first;
        CHECK(std::abs(known->second - l.probability[at]) < 1e-12);
        (p.tokens[i] % 2 == 0 ? words : others).push_back(logit(l.probability[at]));
        labels.push_back(l.delta[at] <= 0 ? 1 : 0);
        routed += l.probability[at] > 0.5 ? 1 : 0;
      });
  const double positions = static_cast<double>(layer.delta.size());
  CHECK(positions == 20 * 29);
  CHECK(std::abs(layer.fraction_linear - routed / positions) < 1e-12);
  CHECK(std::abs(*layer.auc - area_under_roc(layer.probability, labels)->auc) < 1e-12);
  CHECK(layer.types == static_cast<Index>(probabilities.size()));
  REQUIRE(layer.top.size() == 5);
  for (const TypeScore& t : layer.top) {
    CHECK(std::abs(t.logit - logit(probabilities.at(t.type))) < 1e-8);
  }
  CHECK(layer.top[0].logit >= layer.top[4].logit);
  CHECK(layer.top[4].logit >= layer.bottom[4].logit);
  CHECK(layer.bottom[0].logit <= layer.bottom[4].logit);
  CHECK(std::abs(*layer.function_words - (detail::mean_of(words) - detail::mean_of(others))) <
        1e-8);
  CHECK(layer.direction.size() == static_cast<std::size_t>(PlantedModel::width));
}

TEST_CASE(
    "a stored layer reads back; the page is complete and safe; the terminal needs no colours") {
  const auto spellings = made_spellings();
  const ForensicsResult result = examine({.passages = 2, .positions = 10, .spellings = spellings});
  const OrderedJson written = json_of(result.layers.at(0));
  CHECK(json_of(forensics_layer_from_json(Json(written), "test")).dump() == written.dump());
  CHECK(json_of(result).dump().find("nan") == std::string::npos);

  const std::string page = forensics_html(result, spellings);
  std::size_t titles = 0;
  for (std::size_t at = 0; (at = page.find(" title=\"δ ", at)) != page.npos; ++at) ++titles;
  CHECK(titles == 20);
  CHECK(page.find("&lt;") != page.npos);
  for (Index id = 1; id < PlantedModel::vocabulary; id += 2) {
    CHECK(page.find("<" + std::to_string(id) + ">") == page.npos);
  }
  CHECK(page.find("<script") == page.npos);
  CHECK(page.find("http") == page.npos);

  const std::string plain = forensics_text(result, result.layers.at(0), spellings, false);
  CHECK(plain.find('\x1b') == plain.npos);
  CHECK(std::count(plain.begin(), plain.end(), '\n') == 1);
  const std::string coloured = forensics_text(result, result.layers.at(0), spellings, true);
  CHECK(coloured.find("\x1b[0m") != coloured.npos);
  const TextTable rows(forensics_csv(result, spellings));
  const std::string csv = rows.csv();
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 21);
}
