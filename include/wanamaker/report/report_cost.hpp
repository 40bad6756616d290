// Section: what stand-ins cost to run and to keep, and what the measurements took.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/report/report_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

struct StandInCosts {
  std::string name{};
  std::vector<double> parameters{}, mlp{}, total{};
};

inline std::vector<StandInCosts> stand_in_costs(const ResultView& sweep) {
  std::vector<StandInCosts> all;
  for (const ResultView& layer : sweep.items("layers")) {
    for (const ResultView& v : layer.items("variants")) {
      const std::string name = v.text("name");
      auto costs = std::find_if(all.begin(), all.end(),
                                [&](const StandInCosts& c) { return c.name == name; });
      if (costs == all.end()) costs = all.insert(all.end(), StandInCosts{name, {}, {}, {}});
      const auto add = [&v](std::vector<double>& list, const char* key) {
        if (const auto value = v.number(key)) list.push_back(*value);
      };
      add(costs->parameters, "parameters");
      add(costs->mlp, "flops_fraction_mlp");
      add(costs->total, "flops_fraction_total");
    }
  }
  return all;
}

/// Of `n` numbers of four bytes.
inline std::string float_bytes_text(std::optional<double> n) {
  if (!n) return nothing_text;
  const double bytes = 4 * *n;
  if (bytes < 1e4) return count_text(bytes) + " B";
  return bytes < 1e7 ? figure_text(bytes / 1024, 1) + " KiB"
                     : figure_text(bytes / 1048576, 1) + " MiB";
}

inline ReportTable cost_table(const ResultView& sweep) {
  ReportTable table{{"in one layer's place", "parameters", "as float", "MLP FLOPs", "all FLOPs"},
                    {}};
  for (const StandInCosts& c : stand_in_costs(sweep)) {
    if (c.name.starts_with("oracle")) continue;  // nobody can run it
    const auto parameters = median_of(c.parameters);
    table.rows.push_back({c.name, count_text(parameters), float_bytes_text(parameters),
                          share_text(median_of(c.mlp), 1), share_text(median_of(c.total), 1)});
  }
  return table;
}

inline ReportTable time_table(const ModelResults& model) {
  ReportTable table{{"command", "seconds", "threads"}, {}};
  for (const auto& [command, json] : model.times) {
    const ResultView time = model.time(command);
    table.rows.push_back(
        {command, figure_text(time.number("seconds"), 1), count_text(time.number("threads"))});
  }
  return table;
}

}  // namespace detail

inline void add_cost(ReportDocument& document, const std::vector<ModelResults>& models) {
  document.heading(2, "Cost");
  for (const ModelResults& model : models) {
    detail::add_model_heading(document, models, model);
    const ReportTable costs = detail::cost_table(model.result("sweep"));
    if (!costs.rows.empty()) {
      document.text(
          "One layer replaced, median over layers. FLOPs: those of the changed model as "
          "shares of the full model's, in its MLPs and in all. Gated stand-ins keep the "
          "MLP's own parameters beside these.",
          TextRole::note);
      document.table(costs);
    }
    const ReportTable times = detail::time_table(model);
    if (times.rows.empty()) continue;
    document.text("What the measurements themselves took, by the clock:", TextRole::note);
    document.table(times);
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
