// Gradients of whole models against those recorded from PyTorch in float64 (golden models).
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/backward/transformer.hpp"

namespace {

using namespace wanamaker;

/// Recorded gradients in the layout of a parameter of ours.
class RecordedGradients {
 public:
  RecordedGradients(const std::filesystem::path& folder, ModelConfig config)
      : file_(SafetensorsFile::open(folder / "expected.safetensors")), config_(std::move(config)) {
    for (const std::string& name : file_.names()) {
      if (name.starts_with("grad.")) unread_.insert(name);
    }
  }

  std::vector<double> of(const std::string& name) {
    const std::size_t fused = name.find("qkv_proj");
    if (fused != std::string::npos) {
      std::vector<double> all;
      for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
        const std::vector<double> own = read(std::string(name).replace(fused, 8, part));
        all.insert(all.end(), own.begin(), own.end());
      }
      return all;
    }
    const std::vector<double> values = read(name);
    if (name.find("query_key_value") == std::string::npos) return values;
    const Index rows = 3 * config_.width;
    return wanamaker::detail::rows_in_order(
        values, static_cast<Index>(values.size()) / rows,
        wanamaker::detail::fused_row_order(config_.heads, config_.head_width));
  }
  /// Names that nobody asked for.
  std::size_t unread() const { return unread_.size(); }

 private:
  std::vector<double> read(const std::string& name) {
    unread_.erase("grad." + name);
    return file_.read<double>("grad." + name);
  }

  SafetensorsFile file_;
  ModelConfig config_;
  std::set<std::string> unread_;
};

template <class B>
std::vector<double> host_values(B& backend, matrix_view_t<B> m) {
  std::vector<double> values(static_cast<std::size_t>(m.size()));
  std::vector<scalar_t<B>> own(values.size());
  backend.synchronize();
  backend.copy_to_host(m.data, m.size(), own.data());
  std::copy(own.begin(), own.end(), values.begin());
  return values;
}

std::vector<TokenId> golden_sequence(const std::filesystem::path& folder) {
  return parse_json_file(folder / "ids.json").get<std::vector<std::vector<TokenId>>>().at(2);
}

/// Relative to the largest of each array: what is tiny beside its neighbours is their rounding.
template <class B>
void check_golden_gradients(const std::string& name, double tolerance) {
  const auto folder = wanamaker_test::shared_data("golden/" + name);
  if (!folder) return;
  B backend;
  AnyTransformer<B> model = load_model(backend, *folder);
  RecordedGradients recorded(*folder, model.config());
  const PackedBatch<B> batch(backend, golden_sequence(*folder));
  Workspace<B> workspace(backend);
  const Gradients<B> gradients(backend, model);
  loss_and_gradients(model, backend, batch, all_next_tokens(batch), gradients, workspace);
  for (const Parameter<B>& p : parameters(model, gradients)) {
    CAPTURE(p.name);
    const std::vector<double> expected = recorded.of(p.name);
    const double largest =
        std::abs(*std::max_element(expected.begin(), expected.end(),
                                   [](double a, double b) { return std::abs(a) < std::abs(b); }));
    CHECK(wanamaker_test::all_close(host_values<B>(backend, p.gradient), expected, tolerance,
                                    tolerance * largest));
  }
  CHECK(recorded.unread() == 0);
}

}  // namespace

TEST_CASE("gradients equal the recorded ones of every family") {
  for (const char* name : {"tiny-gpt2", "tiny-neox", "tiny-neox-sequential", "tiny-llama"}) {
    CAPTURE(name);
    check_golden_gradients<ReferenceBackend<double>>(name, 1e-8);
    check_golden_gradients<EigenBackend<double>>(name, 1e-8);
  }
}
