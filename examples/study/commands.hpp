// The commands of `study`; each returns after its results are written.
#pragma once

#include "options.hpp"

namespace study {

void run_tokenize(const Options& options);
void run_perplexity(const Options& options);
void run_sweep(const Options& options);
void run_gate_curve(const Options& options);
void run_compound(const Options& options);
void run_generate(const Options& options);
/// All that measure, and a summary.
void run_all(const Options& options);

}  // namespace study
