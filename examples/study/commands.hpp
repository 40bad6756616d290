// The commands of `study`; each returns after its results are written.
#pragma once

#include "engine.hpp"
#include "options.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/io/folder_lock.hpp"

namespace study {

void run_tokenize(const Options& options);
void run_perplexity(const Options& options);
void run_sweep(const Options& options);
void run_gate_curve(const Options& options);
void run_compound(const Options& options);
void run_generate(const Options& options);
void run_pretrain(const Options& options);
/// budgets, twins.
void run_from_scratch(const Options& options);
/// progressive, two-phase, control.
void run_finetuning(const Options& options);
/// The cheapest model within a loss, by costs measured here.
void run_optimise(const Options& options);
/// What experiments would take, on this machine or on devices that the options describe.
void run_plan(const Options& options);
/// The results in --out as a page to read.
void run_report(const Options& options);
/// probe, transfer, clusters, features, marginal or forensics.
void run_routing(const Options& options);
/// The model with linear maps in its MLPs as a folder that stock runtimes load.
void run_export(const Options& options);
/// Throws wanamaker::DataError where an exported model does not compute what it did.
void run_verify(const Options& options);
/// Two sets of results side by side.
void run_compare(const Options& options);
/// All that measure, a summary and the page.
void run_all(const Options& options);

// What commands have in common.
/// Writes report.html and report.md of the results in the folder and prints what was found.
/// Throws what read_result_folder and study_report throw, and wanamaker::FileError.
void write_report(const std::filesystem::path& folder);
/// Throws wanamaker::FileError where the folder cannot be made.
void make_folder(const std::filesystem::path& folder);
/// Makes it, and keeps other runs out of it. Throws wanamaker::FileError.
wanamaker::FolderLock lock_folder(const std::filesystem::path& folder);
/// The same of one model's folder, unless it is --out itself, which is locked already.
std::optional<wanamaker::FolderLock> lock_part(const Options& options,
                                               const std::filesystem::path& folder);
wanamaker::Index thread_count(const Options& options);
/// What a tokenizer and a runtime's defaults are read from, from a model to a folder of another.
void copy_tokenizer_files(const std::filesystem::path& from, const std::filesystem::path& to);
struct Run;
/// All of run_routing on one model, its sentences printed. The run's other engine is given up.
void measure_routing(Run& run, const wanamaker::SweepResult& sweep);
/// What a run reads its model from: small files by their contents, weights by size and time.
void add_model_files(wanamaker::Sha256& hash, const std::filesystem::path& model);
/// What makes an engine of the chosen backend. Throws wanamaker::BackendError.
EngineMaker engine_maker(const Options& options);

}  // namespace study
