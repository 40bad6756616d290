// The report of a folder of results: everything that was measured, on one page.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/report/report_claims.hpp"
#include "wanamaker/report/report_compound.hpp"
#include "wanamaker/report/report_cost.hpp"
#include "wanamaker/report/report_curves.hpp"
#include "wanamaker/report/report_decision.hpp"
#include "wanamaker/report/report_html.hpp"
#include "wanamaker/report/report_layers.hpp"
#include "wanamaker/report/report_markdown.hpp"
#include "wanamaker/report/report_overview.hpp"
#include "wanamaker/report/report_protocol.hpp"
#include "wanamaker/report/report_training.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Throws FormatError where a result has a value of another type than docs/results.md says.
inline ReportDocument study_report(const std::vector<ModelResults>& models) {
  ReportDocument document;
  document.title = "Which half of the MLPs' nonlinearity is wasted?";
  for (const std::string& sentence : overview_sentences(models)) {
    document.text(sentence, TextRole::lead);
  }
  add_layer_map(document, models);
  add_layer_forest(document, models);
  add_gate_curves(document, models);
  add_compound(document, models);
  add_decision(document, models);
  add_training(document, models);
  add_cost(document, models);
  add_protocol(document, models);
  add_claims(document, models);
  return document;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
