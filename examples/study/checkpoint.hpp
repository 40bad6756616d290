// The state of an unfinished sweep: finished layers in one file, replaced as a whole after each.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "wanamaker/io/json.hpp"
#include "wanamaker/study/sweep.hpp"

namespace study {

/// Keeps OUT/sweep.state.json. Only a state of the same settings is taken up again.
class SweepState {
 public:
  /// `settings` names everything that results depend on. With `resume` a stored state is read;
  /// throws wanamaker::ProtocolError where it was made with other settings.
  SweepState(std::filesystem::path file, std::string settings, bool resume);

  wanamaker::SweepCheckpoint checkpoint();
  /// Removes the file: the results are written.
  void finish();

 private:
  void read();
  void write() const;

  std::filesystem::path file_;
  std::string settings_;
  std::map<wanamaker::Index, wanamaker::LayerResult> layers_;
};

}  // namespace study
