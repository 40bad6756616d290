// Section: how everything was measured, in full.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/report_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline constexpr std::array protocol_keys = {
    "name",        "join_rule",      "detokenisation",   "window",     "stride",
    "bos",         "truncation",     "first_token_rule", "arithmetic", "seed",
    "corpus_hash", "tokenizer_hash", "token_ids_hash",   "hash"};

inline ReportTable protocol_table(const ResultView& protocol) {
  ReportTable table{{"key", "value"}, {}};
  for (const char* key : protocol_keys) {
    table.rows.push_back({key, text_or_dash(protocol.scalar_text(key))});
  }
  std::string faults;
  for (const ResultView& fault : protocol.items("faults")) {
    faults += (faults.empty() ? "" : "; ") + fault.as_text();
  }
  table.rows.push_back({"faults", text_or_dash(faults)});
  return table;
}

/// Documents and tokens of the splits, by command.
inline ReportTable split_table(const ModelResults& model) {
  ReportTable table{{"command", "fit documents", "tokens", "gate documents", "tokens",
                     "report documents", "tokens", "perplexity"},
                    {}};
  for (const auto& [command, json] : model.results) {
    const ResultView r = model.result(command);
    const ResultView fit = r["fit"], gate = r["gate"];
    const ResultView report = r["baseline"] ? r["baseline"] : r;
    const bool has_report = r["baseline"] || command == "perplexity";
    if (!fit && !has_report) continue;
    table.rows.push_back({command, count_text(fit.number("documents")),
                          count_text(fit.number("tokens")), count_text(gate.number("documents")),
                          count_text(gate.number("tokens")),
                          count_text(has_report ? report.number("documents") : std::nullopt),
                          count_text(has_report ? report.number("tokens") : std::nullopt),
                          figure_text(has_report ? report.number("perplexity") : std::nullopt)});
  }
  return table;
}

/// Commands that share a protocol, by its hash.
inline std::vector<std::pair<std::string, std::string>> protocol_users(const ModelResults& model) {
  std::vector<std::pair<std::string, std::string>> users;
  for (const auto& [command, json] : model.results) {
    const std::string hash = model.result(command)["protocol"].text("hash");
    if (hash.empty()) continue;
    auto user =
        std::find_if(users.begin(), users.end(), [&](const auto& u) { return u.first == hash; });
    if (user == users.end()) {
      users.emplace_back(hash, command);
    } else {
      user->second += ", " + command;
    }
  }
  return users;
}

inline void add_model_protocol(ReportDocument& document, const ModelResults& model) {
  ReportTable about{{"model", "family", "layers", "width", "parameters"}, {}};
  const ResultView first = model.result(model.results.begin()->first)["model"];
  about.rows.push_back({model.name, text_or_dash(first.text("family")),
                        count_text(first.number("layers")), count_text(first.number("width")),
                        count_text(first.number("parameters"))});
  document.table(about);
  const ReportTable splits = split_table(model);
  if (!splits.rows.empty()) document.table(splits);
  for (const auto& [hash, commands] : protocol_users(model)) {
    document.heading(4, "Protocol of " + commands);
    const std::string one = commands.substr(0, commands.find(','));
    document.table(protocol_table(model.result(one)["protocol"]));
  }
}

}  // namespace detail

inline void add_protocol(ReportDocument& document, const std::vector<ModelResults>& models) {
  document.heading(2, "Protocol");
  document.text(
      "Results with different hashes are not comparable. Fit, gate, select and report "
      "documents are disjoint unless faults say otherwise; everything above is of the "
      "report documents.",
      TextRole::note);
  for (const ModelResults& model : models) {
    detail::add_model_heading(document, models, model);
    detail::add_model_protocol(document, model);
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
