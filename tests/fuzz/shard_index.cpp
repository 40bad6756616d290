// The index of a model in several files: only files beside the index are ever read.
#include "fuzz/fuzzing.hpp"
#include "wanamaker/io/safetensors_writer.hpp"
#include "wanamaker/io/tensor_source.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

/// A model's folder with two shards, and beside it a file that no index may lead to.
class ShardedFolder {
 public:
  ShardedFolder() {
    std::filesystem::create_directory(model());
    write("model/s1.safetensors", "a");
    write("model/s2.safetensors", "b");
    write("outside.safetensors", "secret");
  }
  std::filesystem::path model() const { return folder_ / "model"; }

 private:
  void write(const std::string& file, const std::string& tensor) const {
    write_safetensors(folder_ / file, {tensor_to_write<float>(tensor, values_, {2})});
  }

  TemporaryFolder folder_;
  std::vector<float> values_{1, 2};
};

void read_index(std::string_view input) {
  static const ShardedFolder folder;
  write_bytes(folder.model() / "model.safetensors.index.json", std::string(input));
  const TensorArchive archive = TensorArchive::open(folder.model());
  for (const std::string& name : archive.names()) {
    try {
      must_hold(archive.read<float>(name).size() == 2, "another tensor than its shard's");
      must_hold(name != "secret", "a file outside the folder was read");
    } catch (const Error&) {  // of this tensor's shard; others may be there
    }
  }
}

std::vector<std::string> index_seeds() {
  return {R"({"metadata": {"total_size": 16},
              "weight_map": {"a": "s1.safetensors", "b": "s2.safetensors"}})",
          R"({"weight_map": {"secret": "../outside.safetensors"}})",
          R"({"weight_map": {"a": "s1.safetensors", "c": "none.safetensors"}})"};
}

const FuzzRegistration index_target({.name = "shard_index",
                                     .read = read_index,
                                     .seeds = index_seeds,
                                     .bounds = {.memory_factor = 64}});

}  // namespace
