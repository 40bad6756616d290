// safetensors files: whatever is accepted reads as its header says, and is written again as the
// same tensors.
#include "wanamaker/io/safetensors.hpp"

#include "fuzz/fuzzing.hpp"
#include "wanamaker/io/safetensors_writer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

std::size_t elements_read(const SafetensorsFile& file, const std::string& name) {
  if (!is_floating(file.info(name).dtype)) return file.read_integers(name).size();
  return file.read<double>(name, NonFinite::allow).size();
}

std::vector<TensorToWrite> all_tensors(const SafetensorsFile& file) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, info] : file.tensors()) {
    tensors.push_back({name, info.dtype, info.shape, file.bytes(name)});
  }
  return tensors;
}

void check_same(const SafetensorsFile& a, const SafetensorsFile& b) {
  must_hold(a.names() == b.names() && a.metadata() == b.metadata(), "other names once written");
  for (const auto& [name, info] : a.tensors()) {
    const auto left = a.bytes(name), right = b.bytes(name);
    const bool same = b.info(name).dtype == info.dtype && b.info(name).shape == info.shape &&
                      std::equal(left.begin(), left.end(), right.begin(), right.end());
    must_hold(same, "another tensor once written");
  }
}

void read_tensors(std::string_view input) {
  const SafetensorsFile file = SafetensorsFile::open(fuzz_file("f.safetensors", input));
  for (const auto& [name, info] : file.tensors()) {
    const auto elements = static_cast<std::size_t>(element_count(info.shape).value());
    must_hold(info.elements() == elements, "another number of elements than the shape's");
    must_hold(file.bytes(name).size() == elements * size_in_bytes(info.dtype), "other bytes");
    try {
      must_hold(elements_read(file, name) == elements, "another number of elements was read");
    } catch (const DataError&) {  // booleans and integers that cannot be used
    }
  }
  const std::filesystem::path copy = fuzz_file("copy.safetensors", "");
  write_safetensors(copy, all_tensors(file), file.metadata());
  check_same(file, SafetensorsFile::open(copy));
}

std::vector<std::string> safetensors_seeds() {
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  const std::vector<half> h{half(1.5f), half(-2.0f)};
  const std::vector<std::int64_t> ids{-9, 7};
  const std::filesystem::path path = fuzz_file("seed.safetensors", "");
  write_safetensors(path,
                    {tensor_to_write<float>("x", x, {2, 3}), tensor_to_write<half>("h", h, {2}),
                     tensor_to_write<std::int64_t>("ids", ids, {2, 1})},
                    {{"format", "pt"}});
  return {read_bytes(path), std::string("\2\0\0\0\0\0\0\0{}", 10)};
}

const FuzzRegistration safetensors_target({.name = "safetensors",
                                           .read = read_tensors,
                                           .seeds = safetensors_seeds});

}  // namespace
