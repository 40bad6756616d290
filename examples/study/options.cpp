#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <numeric>

#include "cli11.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/core/version.hpp"
#include "wanamaker/study/mlp_replacement.hpp"

namespace study {

namespace {

using wanamaker::Index;

constexpr Index largest_layer = 100000;

Index parse_layer(const std::string& text, const std::string& whole) {
  Index value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool valid = error == std::errc() && end == text.data() + text.size() && value >= 0 &&
                     value <= largest_layer;
  if (valid) return value;
  throw wanamaker::ProtocolError({.id = "protocol/bad-layers",
                                  .where = "--layers",
                                  .what = "not a list of layers",
                                  .expected = "numbers and ranges such as 0,3-5",
                                  .found = whole,
                                  .mend = "count layers from 0"});
}

void add_text_options(CLI::App& command, Options& o) {
  command.add_option("--text", o.texts,
                     "text files, folders of them, or - for standard input: plain, wikitext, JSON "
                     "lines with 'text' or 'ids', CSV, packed with gzip or zstd or not; .npy or "
                     ".bin token ids [three small corpora that come with the program]");
  command
      .add_option("--format", o.format,
                  "auto, plain, wikitext, jsonl, csv, lambada, npy, uint16 or uint32")
      ->capture_default_str();
  command.add_option("--field", o.field,
                     "where JSON lines (a key, or a pointer such as /a/0/b) and CSV (a column) "
                     "have the text [text]");
  command
      .add_option("--detokenise", o.detokenise,
                  "none, or wikitext: spaces around its marks taken away before encoding")
      ->check(CLI::IsMember({"none", "wikitext"}))
      ->capture_default_str();
  command.add_option("--separator", o.separator,
                     "token id that ends a document in .npy and .bin files");
}

void add_input_options(CLI::App& command, Options& o) {
  command
      .add_option("--model", o.model,
                  "folder of a Hugging Face model, a .gguf file, or 'default': the two small "
                  "models that come with the program")
      ->capture_default_str();
  add_text_options(command, o);
}

void add_measuring_options(CLI::App& command, Options& o) {
  command.add_option("--out", o.out, "folder for the results")->capture_default_str();
  command.add_option("--window", o.window,
                     "tokens of context at most [the model's positions, at most 1024]");
  command.add_option("--stride", o.stride, "begin a new window every so many tokens [--window]");
  command.add_option("--truncate", o.truncation, "use so many tokens of a document at most");
  command.add_flag("--bos", o.bos, "begin every window with the beginning-of-text token");
  command.add_option("--seed", o.seed, "of splits, resampling and drawn tokens")
      ->capture_default_str();
  command.add_option("--threads", o.threads, "threads to compute with [all processors]");
  command
      .add_option("--report-tokens", o.tokens.report,
                  "tokens to measure on at most; whole documents, chosen by seed")
      ->capture_default_str();
  command.add_flag("--quick", o.quick, "fewer tokens: a first look");
  command.add_flag("--quiet", o.quiet, "no progress");
}

void add_run_options(CLI::App& command, Options& o) {
  add_measuring_options(command, o);
  command.add_option("--backend", o.backend,
                     "eigen, blas, reference or cublas [blas where it was found, else eigen]");
}

void add_finite_check(CLI::App& command, Options& o) {
  command.add_flag("--check-finite", o.check_finite,
                   "first run the model once with its activations watched: name the layer and the "
                   "component where a NaN or an infinity first arises");
}

void add_fit_options(CLI::App& command, Options& o) {
  command.add_option("--layers", o.layers, "such as 0,3-5 [all]");
  command.add_option("--fit-tokens", o.tokens.fit, "tokens to fit surrogates on at most")
      ->capture_default_str();
  command.add_option("--gate-tokens", o.tokens.gate, "tokens to fit gates on at most")
      ->capture_default_str();
  command
      .add_option("--select-tokens", o.tokens.select,
                  "tokens to choose penalties and thresholds on at most")
      ->capture_default_str();
  command
      .add_option("--rho", o.rhos,
                  "ridge penalties in units of the inputs' mean square; of several the best on "
                  "the select split")
      ->delimiter(',')
      ->capture_default_str();
}

void add_sweep_options(CLI::App& command, Options& o) {
  add_fit_options(command, o);
  command
      .add_option("--ladder", o.ladder,
                  "which stand-ins: surrogates (linear, mean, nothing), quick or full (gates "
                  "and their baselines too)")
      ->check(CLI::IsMember({"surrogates", "quick", "full"}))
      ->capture_default_str();
  command.add_flag("--resume", o.resume, "go on where an interrupted run was");
  command.add_option("--resamples", o.resamples, "bootstrap resamples")->capture_default_str();
}

void add_ranks(CLI::App& command, Options& o) {
  command.add_option("--rank", o.ranks, "ranks of low-rank maps [width/16 and width/4]")
      ->delimiter(',');
}

void add_gate_fraction(CLI::App& command, Options& o) {
  command
      .add_option("--gate-fraction", o.gate_fraction,
                  "share of positions that every gate routes [each gate's own threshold]")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--gate-flops", o.gate_flops,
                  "or as many that the layer takes this share of its MLP's FLOPs, gate and map "
                  "included")
      ->check(CLI::Range(0.0, 1.0))
      ->excludes("--gate-fraction");
}

void add_protocol(CLI::App& command, Options& o) {
  command
      .add_option("--protocol", o.protocol,
                  "rigorous, or the published procedure with its faults: paper-rows, "
                  "paper-stream")
      ->check(CLI::IsMember({"rigorous", "paper-rows", "paper-stream"}))
      ->capture_default_str();
}

// "1" and "1%" are one per cent.
const CLI::Validator per_cent(
    [](std::string& text) {
      if (!text.empty() && text.back() == '%') text.pop_back();
      return std::string();
    },
    "PERCENT");

void add_max_loss(CLI::App& command, Options& o) {
  command
      .add_option("--max-loss", o.max_loss,
                  "what may be lost on the select split, in per cent of perplexity")
      ->transform(per_cent)
      ->capture_default_str();
}

void add_curve_options(CLI::App& command, Options& o) {
  command
      .add_option("--fractions", o.fractions,
                  "shares of positions to route [0.1,0.25,0.5,0.75,0.9]")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--gates", o.gates, "gates to draw curves of, by their names [all of --ladder]")
      ->delimiter(',');
}

void add_compound_options(CLI::App& command, Options& o) {
  command
      .add_option("--flop-budget", o.flop_budget,
                  "greedy paths stop where the MLPs take this share of their FLOPs")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--greedy", o.greedy,
                  "greedy paths to run: none, linear, or gate (both linear maps and gates)")
      ->check(CLI::IsMember({"none", "linear", "gate"}))
      ->capture_default_str();
}

void add_prompt(CLI::App& command, Options& o) {
  command.add_option("--prompt", o.prompt,
                     "the text to go on from, after the beginning-of-text token where the "
                     "tokenizer or --bos asks for it [standard input]");
  command.add_option("--prompt-file", o.prompt_file, "a file with that text")->excludes("--prompt");
}

void add_sampling_options(CLI::App& command, Options& o) {
  command
      .add_option("--tokens", o.new_tokens,
                  "tokens to write at most; fewer where the model ends the text or has no more "
                  "positions")
      ->capture_default_str();
  command
      .add_option("--temperature", o.temperature,
                  "below 1 likely tokens become likelier, above 1 less so; 0: always the "
                  "likeliest")
      ->capture_default_str();
  command.add_option("--top-k", o.top_k, "draw from so many of the likeliest tokens; 0: from all")
      ->capture_default_str();
  command
      .add_option("--top-p", o.top_p,
                  "draw from the fewest likeliest tokens whose probabilities sum to this")
      ->capture_default_str();
}

const CLI::Validator replacement(
    [](std::string& name) {
      if (wanamaker::replacement_named(name)) return std::string();
      return "nothing that can stand in: " + name + "; expected none, zero, mean, ridge, rank-R, " +
             "or a gate such as gate-logistic";
    },
    "NAME");

void add_replacement(CLI::App& command, Options& o) {
  command
      .add_option(
          "--replace", o.replace,
          "what stands in for the MLPs of --layers while the model writes, fitted on "
          "--text: none, zero, mean, ridge (a linear map), rank-R (one of rank R), or a gate "
          "of the ladder, such as gate-logistic (the map where it says so) [ridge with "
          "--beside or --layers, else none]")
      ->check(replacement);
  command.add_flag("--beside", o.beside,
                   "show what the model writes as it is, too, in a column beside it; both with "
                   "one seed");
}

const CLI::Validator exportable(
    [](std::string& name) {
      const auto known = wanamaker::replacement_named(name);
      if (known && wanamaker::is_exportable(*known)) return std::string();
      return "nothing that can be exported: " + name +
             "; expected none, zero, mean, ridge, rank-R, gate-logistic, gate-cost, gate-delta or "
             "gate-pca-N";
    },
    "NAME");

void add_export_options(CLI::App& command, Options& o) {
  command
      .add_option("--replace", o.replace,
                  "what the MLPs of --layers are to compute, fitted on --text: zero, mean, ridge "
                  "(a linear map), rank-R (one of rank R), or none; or a gate before map and MLP, "
                  "in a file beside the model: gate-logistic, gate-cost, gate-delta, gate-pca-N "
                  "[ridge]")
      ->check(exportable);
  command.add_option("--dtype", o.dtype, "of the weights in the file: float32 or float16")
      ->check(CLI::IsMember({"float32", "float16"}))
      ->capture_default_str();
  command.add_flag("--gguf", o.gguf, "write model.gguf beside it, for llama.cpp; not with gates");
}

void describe_exporting(CLI::App& app, Options& o) {
  CLI::App* command = app.add_subcommand(
      "export",
      "write the model with linear maps in its MLPs as a folder that stock runtimes load");
  add_export_options(*command, o);
  add_input_options(*command, o);
  add_run_options(*command, o);
  add_fit_options(*command, o);

  CLI::App* verify = app.add_subcommand(
      "verify", "see that an exported model computes what it computed when it was written");
  verify->add_option("DIR", o.exported, "folder of the model, with wanamaker_check.json")
      ->required();
  verify->add_option("--tolerance", o.tolerance, "nats that a token's loss may differ by")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verify->add_option("--threads", o.threads, "threads to compute with [all processors]");
  verify->add_option("--backend", o.backend,
                     "eigen, blas, reference or cublas [blas where it was found, else eigen]");
}

void add_family_options(CLI::App& command, PretrainFlags& p) {
  command.add_option("--family", p.family, "gpt2, gpt-neox or llama")
      ->check(CLI::IsMember({"gpt2", "gpt-neox", "llama"}))
      ->capture_default_str();
  command.add_flag("--sequential", p.sequential,
                   "gpt-neox: the MLP reads the stream after attention was added");
  command.add_option("--key-heads", p.key_heads, "llama: heads of keys and values [--heads]");
}

void add_shape_options(CLI::App& command, PretrainFlags& p) {
  const auto number = [&command](const char* name, Index& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::PositiveNumber)->capture_default_str();
  };
  number("--width", p.width, "of the residual stream");
  number("--depth", p.depth, "layers");
  number("--heads", p.heads, "of attention");
  command.add_option("--hidden", p.hidden, "width of the MLPs [4 widths; llama: 8/3]");
  number("--window", p.window, "tokens of a sequence, and positions of the model");
  number("--vocabulary", p.vocabulary, "tokens of the tokenizer that is trained");
  command.add_option("--tokenizer", p.tokenizer,
                     "a folder with tokenizer.json, or that file [one is trained]");
}

void add_training_options(CLI::App& command, Options& o, const char* seed) {
  PretrainFlags& p = o.pretrain;
  const auto number = [&command](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::NonNegativeNumber)->capture_default_str();
  };
  number("--steps", p.steps, "of the optimiser");
  number("--batch", p.batch, "sequences a batch");
  number("--accumulation", p.accumulation, "batches a step");
  number("--learning-rate", p.learning_rate, "at its peak; a cosine takes it to a tenth");
  number("--warm-up", p.warm_up, "steps until the peak");
  number("--decay", p.decay, "of weights, by AdamW");
  number("--clip", p.clip, "gradients to this norm; 0: not");
  command.add_flag("--recompute", p.recompute, "activations again on the way back: less memory");
  number("--checkpoint-every", p.checkpoint_every, "steps");
  command.add_flag("--resume", o.resume, "go on from the checkpoints in --out");
  command.add_option("--out", o.out, "folder for the model and the results")->capture_default_str();
  command.add_option("--seed", o.seed, seed)->capture_default_str();
  command.add_option("--threads", o.threads, "threads to compute with [all processors]");
  command
      .add_option("--report-tokens", o.tokens.report,
                  "tokens to keep apart and measure on, about; two whole documents or more, chosen "
                  "by seed")
      ->capture_default_str();
  command.add_flag("--quick", o.quick, "a tiny model and few steps: a first look");
  command.add_flag("--quiet", o.quiet, "no progress");
}

void add_sparsity_options(CLI::App& command, PretrainFlags& p) {
  command
      .add_option("--sparsity", p.sparsity,
                  "gated layers: nats that a token saves by skipping one layer's MLP")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_option("--sparsity-warm-up", p.sparsity_warm_up, "steps until that weight is reached")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_scratch_seeds(CLI::App& command, Options& o) {
  BudgetFlags& b = o.budgets;
  command
      .add_option("--seeds", b.seeds,
                  "of initial values and of the order of training texts: every model once with "
                  "each, three or more for intervals worth having")
      ->delimiter(',')
      ->capture_default_str();
  command
      .add_option("--margin", b.margin,
                  "a model counts as not worse where it loses at most this, in per cent of "
                  "perplexity")
      ->transform(per_cent)
      ->capture_default_str();
  command.add_option("--resamples", o.resamples, "bootstrap resamples")->capture_default_str();
  command.add_flag("--keep-models", b.keep_models,
                   "write every model whose MLPs are dense or nothing to OUT/models/");
}

void add_budget_options(CLI::App& command, Options& o) {
  BudgetFlags& b = o.budgets;
  command
      .add_option("--arms", b.named,
                  "which of thin-middle, affine-middle, hybrid-middle, routed-middle [all]")
      ->delimiter(',')
      ->check(CLI::IsMember({"thin-middle", "affine-middle", "hybrid-middle", "routed-middle"}));
  command
      .add_option("--arm", b.own,
                  "a model of your own as NAME=PLAN, the plan as --mlp of pretrain has it, with ? "
                  "for the size that is solved for, such as slim=ends:dense:?,middle:low-rank:16; "
                  "may be given again")
      ->allow_extra_args(false);
  command
      .add_option("--routed", b.routed,
                  "share of tokens that a learned gate is taken to route where FLOPs are solved")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--tolerance", b.tolerance,
                  "one model serves both budgets where its MLPs are within this of both, per cent")
      ->transform(per_cent)
      ->capture_default_str();
  add_sparsity_options(command, o.pretrain);
}

void describe_from_scratch(CLI::App& app, Options& o) {
  const char* seed = "of documents kept apart and of resampling";
  CLI::App* budgets = app.add_subcommand(
      "budgets",
      "train models from nothing that spend a uniform model's parameters or FLOPs otherwise: fewer "
      "units, affine maps, hybrids or learned routing in the middle; compare them with it");
  add_text_options(*budgets, o);
  add_family_options(*budgets, o.pretrain);
  add_shape_options(*budgets, o.pretrain);
  add_training_options(*budgets, o, seed);
  add_scratch_seeds(*budgets, o);
  add_budget_options(*budgets, o);

  CLI::App* twins = app.add_subcommand(
      "twins",
      "train a GPT-NeoX-type model with parallel and with sequential residual, on the same tokens; "
      "compare what linearising their layers costs");
  add_text_options(*twins, o);
  add_shape_options(*twins, o.pretrain);
  add_training_options(*twins, o, seed);
  add_scratch_seeds(*twins, o);
  twins->add_option("--fit-tokens", o.tokens.fit, "tokens to fit linear maps on, about")
      ->capture_default_str();
  twins
      ->add_option("--rho", o.budgets.rho,
                   "ridge penalty of the maps in units of the inputs' mean square")
      ->capture_default_str();
}

// The experiments on the routing decision compute in float, with the BLAS of this build or else
// Eigen's products.
CLI::App* add_routing_command(CLI::App& app, Options& o, const char* name, const char* help) {
  CLI::App* command = app.add_subcommand(name, help);
  add_input_options(*command, o);
  add_measuring_options(*command, o);
  add_fit_options(*command, o);
  command->add_flag("--resume", o.resume, "go on where an interrupted run was");
  return command;
}

void add_count(CLI::App& command, const char* name, Index& value, const char* help) {
  command.add_option(name, value, help)->check(CLI::NonNegativeNumber)->capture_default_str();
}

void describe_routing(CLI::App& app, Options& o) {
  RoutingFlags& r = o.routing;
  const char* resamples = "bootstrap resamples";
  CLI::App* probe = add_routing_command(
      app, o, "probe",
      "which part of an MLP's input tells where its linear map does: token, context, both");
  add_count(*probe, "--resamples", r.resamples, resamples);
  add_count(*probe, "--positions", r.probe_positions,
            "of the gate and of the report split to look at, evenly spread");

  CLI::App* transfer = add_routing_command(
      app, o, "transfer",
      "whether lists of tokens by the MLP's worth carry over, between halves of the first --text "
      "and from it to each other one");
  add_count(*transfer, "--resamples", r.resamples, resamples);
  add_count(*transfer, "--least-count", r.least_count,
            "positions that a listed token has at least");

  CLI::App* clusters = add_routing_command(
      app, o, "clusters", "whether positions whose MLP inputs are alike need the MLP alike");
  add_count(*clusters, "--clusters", r.clusters, "of k-means");
  add_count(*clusters, "--components", r.components, "principal components to cluster in");

  CLI::App* features = add_routing_command(
      app, o, "features",
      "whether anything simple that is known of a position says what linearising costs there");
  add_count(*features, "--resamples", r.resamples, resamples);
  add_count(*features, "--folds", r.folds, "of documents; fewer where there are fewer");
  add_count(*features, "--rounds", r.rounds, "of boosting");

  CLI::App* marginal = add_routing_command(
      app, o, "marginal",
      "what replacing the MLP at one position alone changes, to first order and exactly");
  add_count(*marginal, "--exact-positions", r.exact_positions, "positions to patch in every layer");
  add_count(
      *marginal, "--path-steps", r.path_steps,
      "of a path from the MLP to its linear map, all positions together, whose sum is the joint "
      "change: layers times steps passes; 0: none");
  add_count(*marginal, "--map-positions", r.map_positions,
            "positions whose δ in every layer is kept and drawn in marginal-map.svg; 0: none");

  CLI::App* forensics = add_routing_command(
      app, o, "forensics",
      "a text to read, its tokens coloured by what the linear map costs there and by route; the "
      "tokens at the ends of the gate's direction");
  add_count(*forensics, "--passages", r.passages, "documents to show");
  add_count(*forensics, "--positions", r.positions, "of each document, from its begin");
  add_count(*forensics, "--least-count", r.least_count,
            "positions that a counted token has at least");
}

void add_tuning_texts(CLI::App& command, Options& o) {
  FinetuneFlags& f = o.finetune;
  command.add_option("--other-text", f.other_texts,
                     "texts of another domain to measure on, read like --text [without --text the "
                     "technical one of the three corpora, else none]");
  command.add_option("--lambada", f.lambada,
                     "passages whose last words are predicted: JSON lines as LAMBADA has them "
                     "[none]");
  const auto tokens = [&command](const char* name, Index& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::PositiveNumber)->capture_default_str();
  };
  tokens("--train-tokens", f.train_tokens, "tokens to train on at most");
  tokens("--fit-tokens", o.tokens.fit, "tokens to fit linear maps on at most");
  tokens("--select-tokens", o.tokens.select, "tokens to order layers and count routes on at most");
  command.add_option("--layers", o.layers, "to become linear, such as 0,3-5 [all]");
  command
      .add_option("--order", f.order,
                  "in which layers become linear: middle (outwards), cost (what each alone costs, "
                  "cheapest first) or given")
      ->check(CLI::IsMember({"middle", "cost", "given"}))
      ->capture_default_str();
}

void add_recipe_options(CLI::App& command, FinetuneFlags& f, bool progressive, bool gated) {
  const auto number = [&command](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::NonNegativeNumber)->capture_default_str();
  };
  if (progressive) {
    number("--between-steps", f.between_steps, "steps of training after each layer");
    number("--final-steps", f.final_steps, "steps after the last layer");
  }
  if (gated) {
    number("--adapt-steps", f.adapt_steps, "phase 1: steps around linear layers");
    number("--gate-steps", f.gate_steps, "phase 2: steps of the gates");
    number("--gate-rate", f.gate_rate, "learning rate at its peak where gates alone are trained");
    number("--sparsity", f.sparsity, "nats that a token saves by skipping one layer's MLP");
    number("--sparsity-warm-up", f.sparsity_warm_up, "steps until that weight is reached");
  }
  number("--learning-rate", f.learning_rate, "at its peak; a cosine takes it to a tenth");
  number("--warm-up", f.warm_up, "steps until the peak, in every stage");
  number("--decay", f.decay, "of weights, by AdamW");
  number("--clip", f.clip, "gradients to this norm; 0: not");
}

void add_tuning_options(CLI::App& command, Options& o) {
  FinetuneFlags& f = o.finetune;
  command
      .add_option("--seeds", f.seeds,
                  "of the order of training texts and of random routing: one run each, three or "
                  "more for intervals worth having")
      ->delimiter(',')
      ->capture_default_str();
  const auto number = [&command](const char* name, Index& value, const char* help) {
    command.add_option(name, value, help)->check(CLI::PositiveNumber)->capture_default_str();
  };
  command.add_option("--train-window", f.window,
                     "tokens of a training sequence [the model's positions, at most 128]");
  number("--batch", f.batch, "sequences a batch");
  number("--accumulation", f.accumulation, "batches a step");
  command.add_flag("--recompute", f.recompute, "activations again on the way back: less memory");
  command
      .add_option("--rho", f.rho, "ridge penalty of the maps in units of the inputs' mean square")
      ->capture_default_str();
  command
      .add_option("--margin", f.margin,
                  "the baseline counts as kept where the loss is at most this, in per cent of "
                  "perplexity")
      ->transform(per_cent)
      ->capture_default_str();
  command.add_option("--resamples", o.resamples, "bootstrap resamples")->capture_default_str();
  command.add_flag("--resume", o.resume, "go on where an interrupted run was");
  command.add_flag("--export", f.export_models,
                   "write the models that claims are made about, of the first seed, to "
                   "OUT/ARM-model: linear layers as other runtimes load them, gates in a file "
                   "beside; study verify checks them");
}

void describe_tuning(CLI::App& app, Options& o, const char* name, const char* description) {
  CLI::App* command = app.add_subcommand(name, description);
  const std::string which = name;
  add_input_options(*command, o);
  add_tuning_texts(*command, o);
  add_recipe_options(*command, o.finetune, which != "two-phase", which != "progressive");
  add_tuning_options(*command, o);
  add_measuring_options(*command, o);
}

void describe_finetuning(CLI::App& app, Options& o) {
  describe_tuning(app, o, "progressive",
                  "make layers linear one after the other with training between, beside plain "
                  "training for as long");
  describe_tuning(app, o, "two-phase",
                  "train around linear layers, then gates between maps and MLPs; and all at once; "
                  "beside plain training, constant gates and random routing");
  describe_tuning(app, o, "control", "both of these, with every control on the same tokens");
}

void add_optimise_options(CLI::App& command, Options& o) {
  OptimiseFlags& f = o.optimise;
  command
      .add_option("--for", f.cost,
                  "what is to become less: seconds a token of reading prompts (prefill) or of "
                  "going on from them (decode), as measured here, or parameters")
      ->check(CLI::IsMember({"prefill", "decode", "parameters"}))
      ->capture_default_str();
  command.add_option("--batch", f.batch, "sequences at once, where times are measured")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--shares", f.shares, "of the positions that gates may send to linear maps")
      ->delimiter(',')
      ->capture_default_str();
  add_count(command, "--beyond", f.beyond,
            "points of each path to show that lose more than allowed");
  add_count(command, "--heal-tokens", f.heal_tokens,
            "train the chosen model on so many tokens to give what the original gives; 0: not");
  command.add_option("--heal-rate", f.heal_rate, "learning rate of that at its peak")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--costs", f.costs,
                     "optimise.times.json of an earlier run: take its costs and measure none, so "
                     "that the run is repeated byte for byte");
}

void describe_optimising(CLI::App& app, Options& o) {
  CLI::App* command = app.add_subcommand(
      "optimise",
      "find the cheapest model within a loss, by costs measured here: linear maps, low ranks and "
      "gates in the MLPs' places; verify it, beside plain ways to a cheaper model, and write it");
  add_max_loss(*command, o);
  add_optimise_options(*command, o);
  add_input_options(*command, o);
  command->add_option("--other-text", o.finetune.other_texts,
                      "texts of another domain to measure on, read like --text [the technical one "
                      "of the three corpora, or the encyclopaedic where that is --text]");
  add_fit_options(*command, o);
  add_ranks(*command, o);
  command->add_option("--resamples", o.resamples, "bootstrap resamples")->capture_default_str();
  add_measuring_options(*command, o);
}

void describe_planning(CLI::App& app, Options& o) {
  CLI::App* command = app.add_subcommand(
      "plan", "say what experiments would take, in time and memory, here or on other machines");
  PlanFlags& p = o.plan;
  command
      ->add_option(
          "--model", o.model,
          "config.json alone, folder of a Hugging Face model, or a .gguf file; weights are "
          "not read")
      ->capture_default_str();
  command->add_option("--window", o.window, "tokens run together [positions, at most 1024]")
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", o.threads, "threads to compute with [all processors]");
  add_fit_options(*command, o);
  command->add_option("--report-tokens", o.tokens.report, "tokens to measure on")
      ->capture_default_str();
  command
      ->add_option("--gpus", p.gpus,
                   "devices that would share the work evenly (the program itself uses one so "
                   "far); 0: this machine, measured")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  const auto add = [&](const char* name, double& value, const char* help) {
    command->add_option(name, value, help)->check(CLI::PositiveNumber)->capture_default_str();
  };
  add("--tflops", p.tflops, "of a device: 10^12 FLOPs a second of products [float of an H100]");
  add("--double-tflops", p.double_tflops, "the same in double, for fits");
  add("--bandwidth", p.bandwidth, "of a device: 10^9 bytes a second of its memory");
  add("--memory", p.memory, "of a device: 10^9 bytes");
  command->add_option("--efficiency", p.efficiency, "share of these rates that is reached")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  add("--weight-bytes", p.weight_bytes, "bytes of a weight: 4, or 2 for 16 bits");
}

void describe_reading(CLI::App& app, Options& o) {
  CLI::App* tokenize =
      app.add_subcommand("tokenize", "print the token ids of every document, one JSON line each");
  add_input_options(*tokenize, o);
  tokenize->add_option("--threads", o.threads, "threads to encode with [all processors]");
  tokenize->add_flag("--quiet", o.quiet, "no progress");

  CLI::App* perplexity = app.add_subcommand("perplexity", "measure a model's perplexity on texts");
  add_input_options(*perplexity, o);
  add_run_options(*perplexity, o);
  add_finite_check(*perplexity, o);
}

void describe_experiments(CLI::App& app, Options& o) {
  CLI::App* sweep = app.add_subcommand(
      "sweep", "replace each layer's MLP by linear maps, gates and constants; measure the cost");
  add_input_options(*sweep, o);
  add_run_options(*sweep, o);
  add_sweep_options(*sweep, o);
  add_ranks(*sweep, o);
  add_finite_check(*sweep, o);
  add_gate_fraction(*sweep, o);
  add_protocol(*sweep, o);

  CLI::App* curve = app.add_subcommand(
      "gate-curve", "measure perplexity against the share of positions that each gate routes");
  add_input_options(*curve, o);
  add_run_options(*curve, o);
  add_sweep_options(*curve, o);
  add_curve_options(*curve, o);
  add_max_loss(*curve, o);

  CLI::App* compound = app.add_subcommand(
      "compound", "replace many layers at once: fitted alone, in sequence, chosen greedily");
  add_input_options(*compound, o);
  add_run_options(*compound, o);
  add_sweep_options(*compound, o);
  add_gate_fraction(*compound, o);
  add_compound_options(*compound, o);
  add_max_loss(*compound, o);
}

void describe_writing(CLI::App& app, Options& o) {
  CLI::App* generate = app.add_subcommand(
      "generate", "let a model go on from a text, with MLPs replaced if asked, side by side");
  add_prompt(*generate, o);
  add_sampling_options(*generate, o);
  add_replacement(*generate, o);
  add_input_options(*generate, o);
  add_run_options(*generate, o);
  add_fit_options(*generate, o);
  add_gate_fraction(*generate, o);

  CLI::App* pretrain = app.add_subcommand(
      "pretrain", "train a tokenizer and a model of a given shape on texts, from nothing");
  add_text_options(*pretrain, o);
  add_family_options(*pretrain, o.pretrain);
  add_shape_options(*pretrain, o.pretrain);
  pretrain->add_option(
      "--mlp", o.pretrain.mlp,
      "layers' MLPs, items LAYERS:KIND[:SIZE] with commas between, later ones overriding: LAYERS a "
      "number from 0, FIRST-LAST, all, ends or middle; KIND dense[:H], affine, low-rank:R, "
      "hybrid:H "
      "(an affine path plus H hidden units), gated[:H] (learned routing to an affine map) or zero; "
      "such as ends:dense:1024,middle:affine [all:dense]");
  add_sparsity_options(*pretrain, o.pretrain);
  add_training_options(*pretrain, o, "of documents kept apart, initial values and windows");
}

void describe_reports(CLI::App& app, Options& o) {
  CLI::App* report = app.add_subcommand(
      "report", "turn a folder of results into report.html and report.md: pictures, verdicts");
  report->add_option("folder", o.out, "what --out of other commands was")
      ->type_name("FOLDER")
      ->capture_default_str();

  CLI::App* compare = app.add_subcommand(
      "compare", "lay two sets of results side by side, or ours and a published file");
  compare
      ->add_option("results", o.compared,
                   "two folders of results, result files, or files of the published study")
      ->type_name("A B")
      ->expected(2)
      ->required();
  compare->add_flag("--anyway", o.anyway, "also where they were not measured in the same way");
  compare->add_option("--out", o.out, "folder for compare.json")->capture_default_str();
}

void describe_commands(CLI::App& app, Options& o) {
  describe_reading(app, o);
  describe_experiments(app, o);
  describe_routing(app, o);
  describe_writing(app, o);
  describe_from_scratch(app, o);
  describe_finetuning(app, o);
  describe_optimising(app, o);
  describe_planning(app, o);
  describe_reports(app, o);
  describe_exporting(app, o);

  CLI::App* all = app.add_subcommand(
      "all",
      "everything that measures: perplexity, sweep, gate-curve, compound, and where the "
      "routing decision lives: probe, transfer, clusters, features, marginal, forensics; and the "
      "report of them");
  add_input_options(*all, o);
  add_run_options(*all, o);
  add_sweep_options(*all, o);
  add_ranks(*all, o);
  add_gate_fraction(*all, o);
  add_protocol(*all, o);
  add_curve_options(*all, o);
  add_compound_options(*all, o);
  add_max_loss(*all, o);
}

Index edit_distance(const std::string& a, const std::string& b) {
  std::vector<Index> row(b.size() + 1);
  std::iota(row.begin(), row.end(), Index{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    Index diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const Index substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto best = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
  const Index tolerated = std::max<Index>(2, static_cast<Index>(word.size()) / 3);
  return best == known.end() || edit_distance(word, *best) > tolerated ? std::string() : *best;
}

// "unknown option --modle; did you mean --model?"
std::string suggestion(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App& scope = chosen.empty() ? app : *chosen.front();
  std::vector<std::string> known;
  for (const CLI::Option* option : scope.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  if (chosen.empty()) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(command->get_name());
    }
  }
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return "";
  std::string word = unknown.front();
  word = word.substr(0, word.find('='));
  const std::string meant = nearest(word, known);
  return "study: unknown " + std::string(word.starts_with("-") ? "option " : "command ") + word +
         (meant.empty() ? "" : "; did you mean " + meant + "?");
}

int report_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_help = error.get_exit_code() == 0;
  if (is_help) return app.exit(error);
  const std::string better = suggestion(app);
  std::cerr << (better.empty() ? "study: " + std::string(error.what()) : better)
            << "\nstudy --help lists commands, study COMMAND --help options.\n";
  return 2;
}

// A model to be trained within seconds, where nothing else was asked for.
void apply_quick_shape(PretrainFlags& p) {
  const PretrainFlags usual;
  if (p.vocabulary == usual.vocabulary) p.vocabulary = 512;
  if (p.width == usual.width && p.heads == usual.heads) {
    p.width = 64;
    p.heads = 2;
  }
  if (p.depth == usual.depth) p.depth = 2;
  if (p.window == usual.window) p.window = 64;
  if (p.batch == usual.batch) p.batch = 4;
  if (p.steps == usual.steps) p.steps = 30;
  if (p.warm_up == usual.warm_up) p.warm_up = 5;
}

// A middle between two ends, and more steps, where nothing else was asked for.
void apply_quick_budgets(Options& o) {
  if (!is_from_scratch(o.command)) return;
  PretrainFlags& p = o.pretrain;
  const PretrainFlags usual;
  if (p.depth == usual.depth) p.depth = 4;
  if (p.steps == usual.steps) p.steps = 120;
  if (p.sparsity_warm_up == usual.sparsity_warm_up) p.sparsity_warm_up = 20;
  o.tokens.fit = std::min<Index>(o.tokens.fit, 8000);
}

// Fine-tuning within a minute, where nothing else was asked for.
void apply_quick_recipe(Options& o) {
  if (!is_finetuning(o.command)) return;
  FinetuneFlags& f = o.finetune;
  const FinetuneFlags usual;
  if (f.between_steps == usual.between_steps) f.between_steps = 3;
  if (f.final_steps == usual.final_steps) f.final_steps = 6;
  if (f.adapt_steps == usual.adapt_steps) f.adapt_steps = 6;
  if (f.gate_steps == usual.gate_steps) f.gate_steps = 6;
  if (f.sparsity_warm_up == usual.sparsity_warm_up) f.sparsity_warm_up = 4;
  if (f.warm_up == usual.warm_up) f.warm_up = 2;
  if (f.window == 0) f.window = 64;
  if (o.layers.empty() && o.model == "default") o.layers = "2-3";
  f.train_tokens = std::min<Index>(f.train_tokens, 20000);
  o.tokens.fit = std::min<Index>(o.tokens.fit, 8000);
  o.tokens.report = std::min<Index>(o.tokens.report, 1200);
  o.tokens.select = std::min<Index>(o.tokens.select, 1500);
}

// What makes a first look of a whole study; smaller figures that were asked for stay.
void apply_quick(Options& o) {
  if (!o.quick) return;
  o.tokens.fit = std::min<Index>(o.tokens.fit, 15000);
  o.tokens.gate = std::min<Index>(o.tokens.gate, 6000);
  o.tokens.select = std::min<Index>(o.tokens.select, 3000);
  o.tokens.report = std::min<Index>(o.tokens.report, 8000);
  o.resamples = std::min<Index>(o.resamples, 2000);
  if (o.rhos == Options().rhos) o.rhos = {1e-6, 1e-3};
  if (o.ladder == "full") o.ladder = "quick";
  if (o.fractions.empty()) o.fractions = {0.25, 0.5, 0.75};
  if (o.gates.empty()) o.gates = {"random", "token-table", "gate-logistic"};
  if (o.greedy == "gate") o.greedy = "linear";
  o.routing.resamples = std::min<Index>(o.routing.resamples, 200);
  o.routing.rounds = std::min<Index>(o.routing.rounds, 30);
  o.routing.folds = std::min<Index>(o.routing.folds, 3);
  o.routing.exact_positions = std::min<Index>(o.routing.exact_positions, 30);
  apply_quick_budgets(o);
  apply_quick_shape(o.pretrain);
  apply_quick_recipe(o);
}

}  // namespace

bool is_finetuning(const std::string& command) {
  return command == "progressive" || command == "two-phase" || command == "control";
}

bool is_from_scratch(const std::string& command) {
  return command == "budgets" || command == "twins";
}

std::vector<Index> parse_layers(const std::string& text) {
  std::vector<Index> layers;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    const std::size_t dash = part.find('-');
    const Index first = parse_layer(part.substr(0, dash), text);
    const Index last = dash == std::string::npos ? first : parse_layer(part.substr(dash + 1), text);
    for (Index l = first; l <= last; ++l) layers.push_back(l);
    at = comma + 1;
  }
  return layers;
}

std::optional<int> parse_command_line(int argc, char** argv, Options& options) {
  CLI::App app(
      "Measures how much of a transformer's MLP nonlinearity is needed.\n"
      "Without --model and --text a command runs on the models and texts that come with it.",
      "study");
  app.set_version_flag("--version", std::to_string(WANAMAKER_VERSION_MAJOR) + "." +
                                        std::to_string(WANAMAKER_VERSION_MINOR) + "." +
                                        std::to_string(WANAMAKER_VERSION_PATCH));
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 bad input, 2 usage, 130 interrupted.");
  describe_commands(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage_error(app, error);
  }
  options.command = app.get_subcommands().front()->get_name();
  apply_quick(options);
  return std::nullopt;
}

}  // namespace study
