// What a long run may leave behind part by part, to go on after an interruption.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "wanamaker/study/compound_result.hpp"
#include "wanamaker/study/gate_curve_result.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Where finished parts are kept. Both members may be empty.
template <class Key, class Result>
struct Checkpoint {
  /// The stored part, where there is one.
  std::function<std::optional<Result>(const Key& key)> load;
  std::function<void(const Result& result)> save;
};

/// Parts are layers.
using SweepCheckpoint = Checkpoint<Index, LayerResult>;
using GateCurveCheckpoint = Checkpoint<Index, CurveLayer>;
/// Parts are variants, by name.
using CompoundCheckpoint = Checkpoint<std::string, CompoundVariant>;

/// The stored part, or measure() and the part stored.
template <class Key, class Result, class Measure>
Result stored_or(const Checkpoint<Key, Result>& checkpoint, const Key& key, Measure&& measure) {
  if (checkpoint.load) {
    if (std::optional<Result> stored = checkpoint.load(key)) return *std::move(stored);
  }
  Result result = measure();
  if (checkpoint.save) checkpoint.save(result);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
