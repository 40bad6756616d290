// Section: each published claim, its figures, ours, and a verdict.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/report/claim_answers.hpp"
#include "wanamaker/report/report_blocks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline ReportTable claims_overview(const std::vector<ModelResults>& models) {
  ReportTable table{{"", "claim"}, {}};
  for (const ModelResults& model : models) table.header.push_back(model.name);
  for (const PublishedClaim& claim : published_claims) {
    table.rows.push_back({std::to_string(claim.number), std::string(claim.claim)});
    for (const ModelResults& model : models) {
      table.rows.back().push_back(std::string(text_of(claim_answer(claim, model).state)));
    }
  }
  return table;
}

inline void add_claim(ReportDocument& document, const PublishedClaim& claim,
                      const std::vector<ModelResults>& models) {
  document.heading(3, std::to_string(claim.number) + ". " + std::string(claim.claim));
  document.text("Published: " + std::string(claim.figures) +
                    ". Its own result files: " + std::string(claim.own_files) + ".",
                TextRole::note);
  document.text("What decides: " + std::string(claim.test), TextRole::note);
  ReportTable table{{"model", "verdict", "found here", "power, or what it would take"}, {}};
  for (const ModelResults& model : models) {
    const ClaimAnswer answer = claim_answer(claim, model);
    table.rows.push_back({model.name, std::string(text_of(answer.state)),
                          text_or_dash(answer.found), text_or_dash(answer.needed)});
  }
  document.table(table);
}

}  // namespace detail

inline void add_claims(ReportDocument& document, const std::vector<ModelResults>& models) {
  document.heading(2, "The published claims");
  document.text(
      "P. Balogh, Half the Nonlinearity Is Wasted (arXiv 2603.03459), claim by claim. "
      "The published models are larger than what may have been measured here; a verdict "
      "is about the models in its column.",
      TextRole::note);
  document.table(detail::claims_overview(models));
  for (const PublishedClaim& claim : published_claims) {
    detail::add_claim(document, claim, models);
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
