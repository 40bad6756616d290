#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "run.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/gguf.hpp"
#include "wanamaker/io/gguf_config.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/model_config.hpp"
#include "wanamaker/report/text_table.hpp"
#include "wanamaker/study/gate_curve_result.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/machine_rates.hpp"
#include "wanamaker/study/plan_work.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

// The settings alone: weights need not be there.
wanamaker::ModelConfig config_of(const fs::path& model) {
  if (wanamaker::is_gguf_path(model)) {
    return wanamaker::gguf_model_config(wanamaker::GgufFile::open(model));
  }
  if (model.extension() != ".json") return wanamaker::read_model_config(model);
  wanamaker::ModelConfig config =
      wanamaker::model_config_from_json(wanamaker::parse_json_file(model), model.string());
  config.name = model.stem().string();
  return config;
}

wanamaker::PlannedStudy planned_study(const Options& options,
                                      const wanamaker::ModelConfig& config) {
  const auto tokens = [](Index n) { return static_cast<double>(n); };
  const Index window =
      options.window > 0 ? options.window : std::min<Index>(config.positions, 1024);
  return {.model = config,
          .tokens = {tokens(options.tokens.fit), tokens(options.tokens.gate),
                     tokens(options.tokens.select), tokens(options.tokens.report)},
          .window = std::min(window, config.positions),
          .layers = wanamaker::chosen_layers(parse_layers(options.layers), config.layers),
          .rhos = static_cast<Index>(options.rhos.size())};
}

// Bytes of memory that this machine has.
double machine_memory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

wanamaker::MachineRates rates_here(const Options& options, const wanamaker::PlannedStudy& study) {
  wanamaker::ThreadPool pool(thread_count(options));
  wanamaker::BlasBackend<float> backend{wanamaker::ExecutorRef(pool)};
  wanamaker::EigenBackend<double> fitting{wanamaker::ExecutorRef(pool)};
  return wanamaker::measured_rates(backend, fitting, study.model, study.window, machine_memory());
}

// As the options say of each device; a share of what its data sheet promises.
wanamaker::MachineRates rates_of_devices(const PlanFlags& plan) {
  return {.product_flops = plan.efficiency * plan.tflops * 1e12,
          .double_flops = plan.efficiency * plan.double_tflops * 1e12,
          .bytes = plan.efficiency * plan.bandwidth * 1e9,
          .memory = plan.memory * 1e9,
          .count = plan.gpus};
}

std::string number_in(double value, double unit, const char* name) {
  return wanamaker::fixed_text(value / unit, value / unit < 10 ? 1 : 0) + " " + name;
}

std::string seconds_text(double s) {
  if (s < 120) return number_in(s, 1, "s");
  if (s < 2 * 3600) return number_in(s, 60, "min");
  return s < 72 * 3600 ? number_in(s, 3600, "h") : number_in(s, 24 * 3600, "days");
}

std::string bytes_text(double bytes) {
  return bytes < 1e9 ? number_in(bytes, 1e6, "MB") : number_in(bytes, 1e9, "GB");
}

std::string flops_text(double flops) {
  if (flops < 1e12) return number_in(flops, 1e9, "G");
  return flops < 1e15 ? number_in(flops, 1e12, "T") : number_in(flops, 1e15, "P");
}

using NamedWork = std::vector<std::pair<std::string, wanamaker::PlannedWork>>;

NamedWork experiments(wanamaker::PlannedStudy study) {
  NamedWork work{{"perplexity", wanamaker::perplexity_work(study)}};
  const std::pair<const char*, wanamaker::Ladder> ladders[] = {
      {"surrogates", wanamaker::Ladder::surrogates},
      {"quick", wanamaker::Ladder::quick},
      {"full", wanamaker::Ladder::full}};
  for (const auto& [name, ladder] : ladders) {
    study.ladder = ladder;
    work.emplace_back(std::string("sweep --ladder ") + name, wanamaker::sweep_work(study));
  }
  const auto gates = static_cast<Index>(wanamaker::ladder_gate_names().size());
  const auto fractions = static_cast<Index>(wanamaker::CurveOptions().fractions.size());
  work.emplace_back("gate-curve", wanamaker::gate_curve_work(study, gates, fractions));
  work.emplace_back("training, 1 M tokens", wanamaker::training_work(study, 1e6));
  return work;
}

std::string what_bounds(const wanamaker::WorkCost& cost, double memory) {
  if (cost.memory() > memory) return "memory: it does not fit";
  if (cost.fit_seconds > std::max(cost.product_seconds, cost.traffic_seconds)) return "fits";
  return cost.product_seconds >= cost.traffic_seconds ? "products" : "memory traffic";
}

wanamaker::TextTable plan_table(const wanamaker::PlannedStudy& study, const NamedWork& work,
                                const wanamaker::MachineRates& rates, double weight_bytes) {
  wanamaker::TextTable table(
      {"experiment", "FLOPs", "time", "weights", "streams", "co-moments", "bounded by"});
  const double batch = 4.0 * static_cast<double>(study.window);
  for (const auto& [name, w] : work) {
    const wanamaker::WorkCost cost =
        wanamaker::work_cost(study, w, rates, sizeof(float), weight_bytes, batch);
    table.add({name, flops_text(cost.flops), seconds_text(cost.seconds()),
               bytes_text(cost.weight_bytes), bytes_text(cost.stream_bytes),
               bytes_text(cost.moment_bytes), what_bounds(cost, rates.memory)});
  }
  return table;
}

void print_machine(const wanamaker::MachineRates& rates, bool is_here, const PlanFlags& plan) {
  if (is_here) {
    std::cout << "On this machine, measured: products ";
  } else {
    std::cout << "On " << plan.gpus << (plan.gpus == 1 ? " device" : " devices") << " that reach "
              << wanamaker::fixed_text(100 * plan.efficiency, 0)
              << " % of what was stated: products ";
  }
  std::cout << wanamaker::fixed_text(rates.product_flops / 1e9, 0) << " GFLOP/s, in double "
            << wanamaker::fixed_text(rates.double_flops / 1e9, 0) << ", memory "
            << wanamaker::fixed_text(rates.bytes / 1e9, 0) << " GB/s and "
            << bytes_text(rates.memory) << (is_here ? "" : " each") << ".\n";
}

}  // namespace

void run_plan(const Options& options) {
  const bool is_here = options.plan.gpus == 0;
  for (const fs::path& model : model_folders(options)) {
    const wanamaker::PlannedStudy study = planned_study(options, config_of(model));
    const wanamaker::MachineRates rates =
        is_here ? rates_here(options, study) : rates_of_devices(options.plan);
    const wanamaker::ModelCost cost = wanamaker::model_cost(study.model, study.window);
    std::cout << study.model.name << ": " << study.model.layers << " layers of width "
              << study.model.width << ", " << wanamaker::fixed_text(cost.parameters / 1e6, 0)
              << " million parameters, windows of " << study.window << " tokens.\n";
    print_machine(rates, is_here, options.plan);
    std::cout << "\n"
              << plan_table(study, experiments(study), rates, options.plan.weight_bytes).aligned()
              << "\n";
  }
}

}  // namespace study
