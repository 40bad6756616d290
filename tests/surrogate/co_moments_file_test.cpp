// Saving and loading co-moments: every bit comes back, and nothing else is accepted.
#include "wanamaker/surrogate/co_moments_file.hpp"

#include <functional>

#include "surrogate_data.hpp"
#include "wanamaker/core/hash.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

const std::string settings = sha256_hex("model, text and options");

}  // namespace

TEST_CASE("co-moments come back bit for bit, with their settings") {
  const TemporaryFolder folder;
  PlainBackend<float> backend;
  const CoMoments first = moments_of(backend, mixed_data(81, 30, 4, 3, 7.0));
  const CoMoments second = moments_of(backend, mixed_data(82, 20, 5, 2), GramPrecision::blocked);
  const CoMoments empty(2, 2);
  save_co_moments(folder / "moments", settings,
                  {{0, std::cref(first)}, {11, std::cref(second)}, {3, std::cref(empty)}});
  const SavedCoMoments saved = load_co_moments(folder / "moments", settings);
  CHECK(saved.settings_hash == settings);
  REQUIRE(saved.layers.size() == 3);
  CHECK(same_bits(saved.layers.at(0), first));
  CHECK(same_bits(saved.layers.at(11), second));
  CHECK(same_bits(saved.layers.at(3), empty));
  save_co_moments(folder / "again", settings,
                  {{0, std::cref(saved.layers.at(0))},
                   {3, std::cref(empty)},
                   {11, std::cref(saved.layers.at(11))}});
  CHECK(read_bytes(folder / "again") == read_bytes(folder / "moments"));
  CHECK(load_co_moments(folder / "moments", "").layers.size() == 3);
}

TEST_CASE("other settings, versions, shapes and numbers are refused") {
  const TemporaryFolder folder;
  const CoMoments moments = moments_of(mixed_data(83, 30, 4, 3));
  save_co_moments(folder / "moments", settings, {{0, std::cref(moments)}});
  const auto load = [&](const std::string& name) {
    return error_id([&] { load_co_moments(folder / name, settings); });
  };
  CHECK(load("moments") == "");
  CHECK(error_id([&] { load_co_moments(folder / "moments", "other"); }) == "format/co-moments");
  const std::string good = read_bytes(folder / "moments");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    REQUIRE(bytes.find(from) != std::string::npos);
    bytes.replace(bytes.find(from), from.size(), to);
    write_bytes(folder / "bad", bytes);
    return load("bad");
  };
  CHECK(replaced("co-moments/1", "co-moments/2") == "format/co-moments");
  CHECK(replaced("\"format\"", "\"farmot\"") == "format/co-moments");
  CHECK(replaced("[4,3]", "[3,4]") == "format/co-moments");
  CHECK(replaced("layer.0.yy", "layer.0.zz") == "tensor/missing");
  CHECK(replaced("layer.0.xx", "layer.9.xx") == "tensor/missing");
  // The last eight bytes are of yy, the last tensor by name.
  std::string negative = good;
  negative.replace(negative.size() - 8, 8, std::string("\0\0\0\0\0\0\xf8\x7f", 8));
  write_bytes(folder / "nan", negative);
  CHECK(load("nan") != "");
  write_bytes(folder / "short", good.substr(0, good.size() / 2));
  CHECK(load("short") != "");
  CHECK(load("absent") != "");
}

TEST_CASE("counts that no collection can have are refused") {
  const TemporaryFolder folder;
  CoMomentState state = moments_of(mixed_data(84, 5, 1, 1)).state();
  for (const double rows : {-1.0, 1e300}) {
    const std::vector<double> counts{rows, 5.0, 1.0};
    const std::vector<TensorToWrite> tensors{
        tensor_to_write<double>("layer.0.counts", counts, {3}),
        tensor_to_write<double>("layer.0.mean_x", state.mean_x, {1}),
        tensor_to_write<double>("layer.0.mean_y", state.mean_y, {1}),
        tensor_to_write<double>("layer.0.xx", state.xx, {1, 1}),
        tensor_to_write<double>("layer.0.xy", state.xy, {1, 1}),
        tensor_to_write<double>("layer.0.yy", state.yy, {1})};
    write_safetensors(folder / "bad", tensors, {{"format", "wanamaker/co-moments/1"}});
    CHECK(error_id([&] { load_co_moments(folder / "bad", ""); }) == "data/bad-co-moments");
  }
}
