// A model's tensors in one file or in many.
#include "wanamaker/io/tensor_source.hpp"

#include <string>
#include <thread>
#include <vector>

#include "io_testing.hpp"
#include "testing.hpp"
#include "wanamaker/io/safetensors_writer.hpp"

using namespace wanamaker_test;
using namespace wanamaker;

namespace {

const std::vector<float> first{1, 2, 3};
const std::vector<float> second{4, 5};

void write_single(const std::filesystem::path& path) {
  write_safetensors(
      path, {tensor_to_write<float>("a", first, {3}), tensor_to_write<float>("b", second, {1, 2})});
}

/// Two shards of one tensor each, without an index.
void write_shards(const TemporaryFolder& folder) {
  write_safetensors(folder / "s1.safetensors", {tensor_to_write<float>("a", first, {3})});
  write_safetensors(folder / "s2.safetensors", {tensor_to_write<float>("b", second, {1, 2})});
}

std::string index_of(const std::string& map) {
  return "{\"metadata\": {\"total_size\": 20}, \"weight_map\": " + map + "}";
}

void write_index(const TemporaryFolder& folder, const std::string& text) {
  write_bytes(folder / "model.safetensors.index.json", text);
}

void check_content(const TensorArchive& archive) {
  CHECK(archive.names() == std::vector<std::string>{"a", "b"});
  CHECK(archive.contains("a"));
  CHECK(!archive.contains("c"));
  CHECK(archive.info("b").shape == Shape{1, 2});
  CHECK(archive.read<float>("a") == first);
  CHECK(archive.read<double>("b") == std::vector<double>{4, 5});
  float out[3];
  archive.read_into("a", out, 3);
  CHECK(out[2] == 3.0f);
  CHECK(error_id([&] { archive.info("c"); }) == "tensor/missing");
}

}  // namespace

TEST_CASE("one file, by its path or by its folder") {
  const TemporaryFolder folder;
  write_single(folder / "model.safetensors");
  check_content(TensorArchive::open(folder.path()));
  check_content(TensorArchive::open(folder / "model.safetensors"));
  write_single(folder / "other.safetensors");
  check_content(TensorArchive::open(folder / "other.safetensors"));
}

TEST_CASE("shards, by their folder or by their index") {
  const TemporaryFolder folder;
  write_shards(folder);
  write_index(folder, index_of(R"({"a": "s1.safetensors", "b": "s2.safetensors"})"));
  check_content(TensorArchive::open(folder.path()));
  check_content(TensorArchive::open(folder / "model.safetensors.index.json"));
}

TEST_CASE("a single file goes before an index") {
  const TemporaryFolder folder;
  write_single(folder / "model.safetensors");
  write_index(folder, "broken");
  check_content(TensorArchive::open(folder.path()));
}

TEST_CASE("shards are opened when they are needed, and a moved archive still works") {
  const TemporaryFolder folder;
  write_shards(folder);
  write_index(folder, index_of(R"({"a": "s1.safetensors", "b": "absent.safetensors"})"));
  TensorArchive archive = TensorArchive::open(folder.path());
  const TensorArchive moved = std::move(archive);
  CHECK(moved.read<float>("a") == first);
  CHECK(error_id([&] { moved.info("b"); }) == "file/missing");
  std::filesystem::copy_file(folder / "s2.safetensors", folder / "absent.safetensors");
  CHECK(moved.read<float>("b") == second);
}

TEST_CASE("several threads may ask at once") {
  const TemporaryFolder folder;
  write_shards(folder);
  write_index(folder, index_of(R"({"a": "s1.safetensors", "b": "s2.safetensors"})"));
  const TensorArchive archive = TensorArchive::open(folder.path());
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (int& ok : right) {
    threads.emplace_back([&archive, &ok] {
      ok = archive.read<float>("a") == first && archive.read<float>("b") == second;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(4, 1));
}

TEST_CASE("an index must keep its promises") {
  const TemporaryFolder folder;
  write_shards(folder);
  const auto id = [&](const std::string& text) {
    write_index(folder, text);
    const auto path = folder.path();
    const auto read = [&] {
      const TensorArchive archive = TensorArchive::open(path);
      for (const std::string& name : archive.names()) archive.read<float>(name);
    };
    succeeds_or_names(path, read);
    return error_id(read);
  };
  CHECK(id(index_of(R"({"a": "s1.safetensors"})")).empty());
  CHECK(id(index_of("{}")).empty());
  for (const char* text :
       {"[]", "3", "{}", R"({"weight_map": []})", R"({"weight_map": "s1.safetensors"})"}) {
    CHECK(id(text) == "tensor/bad-index");
  }
  CHECK(id(index_of(R"({"a": 1})")) == "tensor/bad-index");
  CHECK(id(index_of(R"({"a": "s1.safetensors", "a": "s2.safetensors"})")) == "json/duplicate-key");
  CHECK(id("{\"weight_map\": ") == "json/syntax");
  CHECK(id(index_of(R"({"b": "s1.safetensors"})")) == "tensor/bad-index");
  CHECK(id(index_of(R"({"a": "s1.safetensors", "c": "s1.safetensors"})")) == "tensor/bad-index");
  CHECK(id(index_of(R"({"a": "none.safetensors"})")) == "file/missing");
  for (const char* name : {"", ".", "..", "../s1.safetensors", "/etc/passwd", "sub/s1.safetensors",
                           "..\\\\s1.safetensors", "s1.safetensors\\u0000"}) {
    CAPTURE(name);
    CHECK(id(index_of("{\"a\": \"" + std::string(name) + "\"}")) == "tensor/bad-index");
  }
}

TEST_CASE("a shard may be a link, as in caches of models; the index still names files beside it") {
  const TemporaryFolder folder, elsewhere;
  write_shards(elsewhere);
  std::filesystem::create_symlink(elsewhere / "s1.safetensors", folder / "s1.safetensors");
  std::filesystem::create_symlink(elsewhere / "s2.safetensors", folder / "s2.safetensors");
  write_index(folder, index_of(R"({"a": "s1.safetensors", "b": "s2.safetensors"})"));
  check_content(TensorArchive::open(folder.path()));
  write_index(folder, index_of("{\"a\": \"" + (elsewhere / "s1.safetensors").string() + "\"}"));
  CHECK(error_id([&] { TensorArchive::open(folder.path()); }) == "tensor/bad-index");
}

TEST_CASE("a folder or path without weights is named, with the mend") {
  const TemporaryFolder folder;
  CHECK(error_id([&] { TensorArchive::open(folder.path()); }) == "file/no-weights");
  CHECK(error_id([&] { TensorArchive::open(folder / "absent"); }) == "file/missing");
  CHECK(error_id([&] { TensorArchive::open(folder / std::string(300, 'n')); }) == "file/bad-name");
  write_bytes(folder / "pytorch_model.bin", "x");
  try {
    TensorArchive::open(folder.path());
    FAIL("no error");
  } catch (const FileError& error) {
    CHECK(
        std::string(error.what()).find("found pytorch_model.bin; save the model as safetensors") !=
        std::string::npos);
  }
}
