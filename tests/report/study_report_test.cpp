// The report of planted results: every section with its figures, nothing where there is nothing, no
// markup from outside, and verdicts that follow from what was planted.
#include "wanamaker/report/study_report.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "planted_results.hpp"
#include "testing.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

std::string report_html(const ModelResults& model) {
  return html_page(study_report({model}));
}

bool holds_text(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

// Names of elements that are open where the text ends or closed wrongly; empty: all is nested.
std::string badly_nested(const std::string& html) {
  const std::vector<std::string> alone = {"meta", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "an open tag";
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag.back() == '/' || std::count(alone.begin(), alone.end(), name) > 0) continue;
    if (tag.front() != '/') {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

ClaimState state_of(int number, const ModelResults& model) {
  return claim_answer(published_claims[static_cast<std::size_t>(number - 1)], model).state;
}

ModelResults with_result(const std::string& command, Json result) {
  ModelResults model;
  model.name = "planted";
  model.results.emplace(command, std::move(result));
  return model;
}

std::string thrown_id(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.id();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a report has every section, and the planted figures in it") {
  const ModelResults model = planted_model(3);
  const std::string html = report_html(model);
  const std::string markdown = markdown_page(study_report({model}));
  for (const char* section :
       {"Layer map", "Single layers, with intervals", "Cost against the share routed",
        "Many layers at once", "Where the decision lives", "Training against controls", "Cost",
        "Protocol", "The published claims"}) {
    CAPTURE(section);
    CHECK(holds_text(html, ">" + std::string(section) + "</h2>"));
    CHECK(holds_text(markdown, "## " + std::string(section) + "\n"));
  }
  for (const char* figure : {"+1.00",                      // ridge
                             "[+0.50, +1.50]",             // its interval
                             "–",                          // share of the oracle
                             "+0.93",                      // compound
                             "964",                        // documents that it needs
                             "0.610",                      // AUC of context
                             "does not transfer",          //
                             "−0.0012",                    // clusters, held out
                             "+0.0310",                    // features
                             "+12.50",                     // marginal
                             "+0.21 [+0.10, +0.30]",       // gate of marginal δ
                             "0.617",                      // forensics
                             "plain/final",                // control of training
                             "[+0.25, +2.25]",             // over seeds
                             "81.4",                       // seconds
                             "each document on its own",   // protocol
                             "15,074",                     // tokens of the fit split
                             "GPT-2 Large: 0.4–3.7 %"}) {  // published
    CAPTURE(figure);
    CHECK(holds_text(html, figure));
  }
  CHECK(!holds_text(html, "Not measured"));
  CHECK(badly_nested(html) == "");
}

TEST_CASE("a report begins with three sentences and needs nothing from elsewhere") {
  const std::string html = report_html(planted_model(3));
  std::size_t sentences = 0;
  for (std::size_t at = 0; (at = html.find("<p class=\"lead\">", at)) != std::string::npos; ++at) {
    ++sentences;
    CHECK(at < html.find("<nav"));
  }
  CHECK(sentences == 3);
  CHECK(holds_text(html, "a median of +1.00 % of perplexity"));
  CHECK(holds_text(html, "shown cheaper than a constant in 3 of 3 layers"));
  for (const char* foreign : {"http:", "https:", "<script", "<link", "src=", "url(", "@import"}) {
    CAPTURE(foreign);
    CHECK(!holds_text(html, foreign));
  }
}

TEST_CASE("a report of 48 layers stays below 2 MB") {
  CHECK(report_html(planted_model(48)).size() < 2000000);
}

TEST_CASE("the same results give the same bytes") {
  CHECK(report_html(planted_model(4)) == report_html(planted_model(4)));
}

TEST_CASE("markup in results is text in reports") {
  const std::string evil = "</td><script>alert('x')</script>&\"|*_[a](b)\n# ";
  ModelResults model = planted_model(3);
  model.name = evil;
  model.results["sweep"]["protocol"]["join_rule"] = evil;
  model.results["compound"]["variants"][1]["name"] = evil;
  model.results["gate-curve"]["layers"][0]["curves"][0]["gate"] = evil;
  model.results["probe"]["layers"][0]["probes"][0]["name"] = evil;
  model.results["transfer"]["layers"][0]["pairs"][1]["from"] = evil;
  model.results["progressive"]["comparisons"][0]["kind"] = evil;
  model.results["clusters"]["model"]["family"] = evil;
  const std::string html = report_html(model);
  CHECK(!holds_text(html, "<script"));
  CHECK(!holds_text(html, "</td><s"));
  CHECK(holds_text(html, "&lt;script&gt;"));
  CHECK(badly_nested(html) == "");
  const std::string markdown = markdown_page(study_report({model}));
  CHECK(!holds_text(markdown, "<"));
  CHECK(!holds_text(markdown, "[a](b)"));
  CHECK(!holds_text(markdown, "\n# \n"));
}

TEST_CASE("text that turns the direction of what follows is left out of HTML") {
  CHECK(html_text("a\u202eb\u2066c") == "abc");
  CHECK(html_text("ä–−漢") == "ä–−漢");
}

TEST_CASE("missing and null values are dashes") {
  ModelResults model = planted_model(3);
  for (auto& [command, result] : model.results) {
    for (const char* list : {"layers", "variants", "comparisons", "verdicts", "gaps"}) {
      if (!result.contains(list)) continue;
      for (Json& item : result[list]) {
        for (auto& value : item.items()) {
          if (value.key() != "variants") value.value() = nullptr;
        }
      }
    }
    result.erase("baseline");
    result["protocol"] = nullptr;
  }
  const std::string html = report_html(model);
  CHECK(badly_nested(html) == "");
  CHECK(!holds_text(html, "nan"));
  CHECK(!holds_text(html, "inf "));
  ModelResults bare = with_result("sweep", {{"schema", "wanamaker/1"}});
  CHECK(holds_text(report_html(bare), "Not measured. study sweep writes sweep.json."));
  for (const PublishedClaim& claim : published_claims) {
    CHECK(claim_answer(claim, bare).state == ClaimState::undecided);
    CHECK(!claim_answer(claim, bare).needed.empty());
  }
}

TEST_CASE("values of another type are refused with their place") {
  const auto id_with = [](const std::function<void(Json&)>& spoil) {
    ModelResults model = planted_model(3);
    spoil(model.results["sweep"]);
    return thrown_id([&] { study_report({model}); });
  };
  CHECK(id_with([](Json&) {}) == "nothing");
  CHECK(id_with([](Json& s) { s["layers"] = "many"; }) == "report/bad-value");
  CHECK(id_with([](Json& s) { s["layers"] = Json::object(); }) == "report/bad-value");
  CHECK(id_with([](Json& s) { s["layers"][0] = 3; }) == "report/bad-value");
  CHECK(id_with([](Json& s) { s["layers"][1]["r2"] = "NaN"; }) == "report/bad-value");
  CHECK(id_with([](Json& s) { s["layers"][1]["r2"] = std::numeric_limits<double>::quiet_NaN(); }) ==
        "report/bad-value");
  CHECK(id_with([](Json& s) { s["baseline"] = Json::array(); }) == "report/bad-value");
  CHECK(id_with([](Json& s) { s["layers"] = Json(Json::array_t(5000)); }) == "report/bad-value");
  ModelResults model = planted_model(3);
  model.results["sweep"]["layers"][1]["r2"] = true;
  try {
    study_report({model});
    FAIL("no error");
  } catch (const FormatError& error) {
    CHECK(holds_text(error.what(), "planted/sweep.json/layers/1/r2"));
  }
}

TEST_CASE("huge values are drawn at the edge and written short") {
  ModelResults model = planted_model(3);
  for (Json& layer : model.results["sweep"]["layers"]) {
    for (Json& variant : layer["variants"]) {
      variant["delta_percent"] = 1e308;
      variant["ci_low_percent"] = -1e308;
      variant["ci_high_percent"] = 1e308;
    }
  }
  model.results["compound"]["variants"][0]["flops_fraction_total"] = 1e300;
  const std::string html = report_html(model);
  CHECK(holds_text(html, "1e+308"));
  CHECK(!holds_text(html, "\"nan"));
  for (const char* infinite : {" inf ", ">inf", "+inf", "−inf", "\"inf"}) {
    CHECK(!holds_text(html, infinite));
  }
}

TEST_CASE("a result folder is read for one model and for several") {
  const TemporaryFolder folder;
  CHECK(thrown_id([&] { read_result_folder(folder.path()); }) == "report/no-results");
  CHECK(thrown_id([&] { read_result_folder(folder / "absent"); }) == "report/no-results");
  const ModelResults model = planted_model(2);
  for (const char* name : {"b", "a"}) {
    std::filesystem::create_directory(folder / name);
    Json sweep = model.results.at("sweep");
    sweep["model"]["name"] = std::string("model ") + name;
    write_bytes(folder / name / "sweep.json", sweep.dump());
    write_bytes(folder / name / "sweep.times.json", model.times.at("sweep").dump());
    write_bytes(folder / name / "sweep.state.json", "not JSON, not read");
  }
  const std::vector<ModelResults> models = read_result_folder(folder.path());
  REQUIRE(models.size() == 2);
  CHECK(models[0].name == "model a");
  CHECK(models[1].name == "model b");
  CHECK(models[0].times.size() == 1);
  CHECK(read_result_folder(folder / "a").size() == 1);
  write_bytes(folder / "a" / "compound.json", R"({"schema": "wanamaker/2"})");
  CHECK(thrown_id([&] { read_result_folder(folder.path()); }) == "report/schema");
  write_bytes(folder / "a" / "compound.json", R"(["schema"])");
  CHECK(thrown_id([&] { read_result_folder(folder.path()); }) == "report/bad-value");
  write_bytes(folder / "a" / "compound.json", "{");
  CHECK_THROWS_AS(read_result_folder(folder.path()), FormatError);
}

TEST_CASE("claim 1: the middle is linear and an end is not") {
  const PlantedLayer cheap, dear{.ridge = {12, 10, 14}}, open{.ridge = {4, 2, 6}};
  const PlantedLayer constant{.ridge = {1, 0.5, 1.5}, .mean = {0.2, 0.1, 0.3}};
  const auto state = [](const std::vector<PlantedLayer>& layers) {
    return state_of(1, with_result("sweep", planted_sweep(layers)));
  };
  CHECK(state({dear, cheap, cheap, cheap, dear}) == ClaimState::holds);
  CHECK(state({cheap, cheap, cheap, cheap, cheap}) == ClaimState::does_not_hold);
  CHECK(state({dear, dear, dear, cheap, dear}) == ClaimState::does_not_hold);
  CHECK(state({dear, constant, constant, cheap, dear}) == ClaimState::does_not_hold);
  CHECK(state({dear, open, open, cheap, dear}) == ClaimState::undecided);
  CHECK(state({dear, dear}) == ClaimState::undecided);
}

TEST_CASE("claim 2: few positions carry the cost") {
  const auto state = [](double below, double top) {
    const std::vector<PlantedLayer> layers(3, {.share_below = below, .top_share = top});
    return state_of(2, with_result("sweep", planted_sweep(layers)));
  };
  CHECK(state(0.97, 0.7) == ClaimState::holds);
  CHECK(state(0.97, 0.4) == ClaimState::does_not_hold);
  CHECK(state(0.5, 0.7) == ClaimState::does_not_hold);
  CHECK(state(0.905, 0.7) == ClaimState::undecided);  // 400 documents do not tell it from 0.9
}

TEST_CASE("claims 3 and 4: gates against random routing, and their AUC") {
  const auto state = [](int claim, const PlantedLayer& layer) {
    return state_of(claim, with_result("sweep", planted_sweep({layer, layer, layer})));
  };
  const PlantedLayer good;
  PlantedLayer overlapping = good, worse = good, few = good, predictable = good;
  overlapping.random = {0.3, 0.1, 0.5};
  worse.random = {0.05, 0.01, 0.09};
  few.routed = 0.1;
  predictable.auc = 0.8;
  CHECK(state(3, good) == ClaimState::holds);
  CHECK(state(3, overlapping) == ClaimState::undecided);
  CHECK(state(3, worse) == ClaimState::does_not_hold);
  CHECK(state(3, few) == ClaimState::undecided);
  CHECK(state(4, good) == ClaimState::holds);
  CHECK(state(4, predictable) == ClaimState::does_not_hold);
  CHECK(state(4, overlapping) == ClaimState::undecided);
}

TEST_CASE("claims 5 to 8 follow the verdicts of their commands") {
  const auto compound = [](const char* verdict, double flops) {
    return state_of(5, with_result("compound", planted_compound(verdict, flops)));
  };
  CHECK(compound("non-inferior", 0.6) == ClaimState::holds);
  CHECK(compound("non-inferior", 0.9) == ClaimState::undecided);  // saves too little
  CHECK(compound("inferior", 0.6) == ClaimState::does_not_hold);
  CHECK(compound("undecided", 0.6) == ClaimState::undecided);
  CHECK(compound("no interval", 0.6) == ClaimState::undecided);
  const auto probe = [](double low, double high) {
    return state_of(6, with_result("probe", planted_probe(low, high)));
  };
  CHECK(probe(0.01, 0.02) == ClaimState::holds);
  CHECK(probe(-0.02, -0.01) == ClaimState::does_not_hold);
  CHECK(probe(-0.01, 0.01) == ClaimState::undecided);
  const auto transfer = [](const char* verdict) {
    return state_of(7, with_result("transfer", planted_transfer(verdict)));
  };
  CHECK(transfer("does not transfer") == ClaimState::holds);
  CHECK(transfer("transfers in part") == ClaimState::does_not_hold);
  CHECK(transfer("no power") == ClaimState::undecided);
  const auto features = [](const char* verdict) {
    return state_of(8, with_result("features", planted_features(verdict)));
  };
  CHECK(features("less than the smallest effect") == ClaimState::holds);
  CHECK(features("explains") == ClaimState::does_not_hold);
  CHECK(features("no power") == ClaimState::undecided);
}

TEST_CASE("claims 10 to 12 follow the trained models") {
  const auto gains = [](const char* verdict) {
    return state_of(10, with_result("progressive",
                                    planted_training("progressive", "progressive/final", verdict)));
  };
  CHECK(gains("holds") == ClaimState::holds);
  CHECK(gains("does not hold") == ClaimState::does_not_hold);
  CHECK(gains("cannot be decided here") == ClaimState::undecided);
  const ModelResults model = planted_model(3);
  CHECK(state_of(11, model) == ClaimState::undecided);
  CHECK(state_of(12, model) == ClaimState::holds);
  ModelResults reversed = model;
  reversed.results.erase("two-phase");
  reversed.results["progressive"]["gaps"][0]["interval_nats"] = {-0.05, -0.01};
  CHECK(state_of(12, reversed) == ClaimState::does_not_hold);
  CHECK(state_of(9, model) == ClaimState::undecided);
  CHECK(state_of(13, model) == ClaimState::undecided);
}

TEST_CASE("claims 9 and 13 follow models from nothing") {
  const auto twins = [](const char* verdict) {
    return state_of(9, with_result("twins", planted_twins(verdict)));
  };
  CHECK(twins("worse") == ClaimState::does_not_hold);
  CHECK(twins("better") == ClaimState::undecided);  // the other half: a ladder of sizes
  CHECK(twins("undecided") == ClaimState::undecided);
  const auto budgets = [](const char* by_parameters, const char* by_flops) {
    return state_of(13, with_result("budgets", planted_budgets(by_parameters, by_flops)));
  };
  CHECK(budgets("better", "better") == ClaimState::holds);
  CHECK(budgets("better", "undecided") == ClaimState::undecided);
  CHECK(budgets("better", "worse") == ClaimState::undecided);
  CHECK(budgets("worse", "worse") == ClaimState::does_not_hold);
  Json two = planted_budgets("better", "better");
  two["comparisons"].push_back(two["comparisons"][0]);
  two["comparisons"][3]["verdict"] = "undecided";  // one of two is no majority
  CHECK(state_of(13, with_result("budgets", two)) == ClaimState::undecided);
  const ModelResults model = planted_model(3);
  const ClaimAnswer nine = claim_answer(published_claims[8], model);
  CHECK(nine.found.find("−2.75 points of perplexity [−5.50, +0.25]") != nine.found.npos);
  const ClaimAnswer thirteen = claim_answer(published_claims[12], model);
  CHECK(thirteen.found.find("equal parameters 1 of 1 better") != thirteen.found.npos);
  CHECK(thirteen.found.find("equal FLOPs 0 of 1 better") != thirteen.found.npos);
}

TEST_CASE("a published procedure, faults included, decides nothing about single layers") {
  Json sweep = planted_sweep({{}, {}, {}});
  sweep["protocol"]["name"] = "paper-rows";
  const ModelResults model = with_result("sweep", sweep);
  for (const int claim : {1, 2, 3, 4}) CHECK(state_of(claim, model) == ClaimState::undecided);
}

TEST_CASE("documents that would be needed follow the formula") {
  // Half width 1 at 100 documents, distance 1: n·((1.6449 + 0.8416)/1.9600)² = 160.9.
  CHECK(documents_to_tell({3, 2, 4}, 4, 100) == 161);
  CHECK(!documents_to_tell({4, 3, 5}, 4, 100));
  CHECK(!documents_to_tell({4, {}, {}}, 3, 100));
}

TEST_CASE("figures are written as they are read") {
  CHECK(change_text(-0.126) == "−0.13");
  CHECK(change_text(22779.86) == "+22780");
  CHECK(change_text(std::nullopt) == "–");
  CHECK(count_text(1234567.0) == "1,234,567");
  CHECK(count_text(-1234.0) == "−1,234");
  CHECK(count_text(999.0) == "999");
  CHECK(share_text(0.25) == "25 %");
}
