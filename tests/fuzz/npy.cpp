// .npy arrays: whatever is accepted has as many elements as its shape says.
#include "wanamaker/io/npy.hpp"

#include "fuzz/fuzzing.hpp"
#include "wanamaker/text/ready_ids.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

void read_array(std::string_view input) {
  const NpyArray array = read_npy(fuzz_file("array.npy", input));
  const auto elements = static_cast<std::size_t>(element_count(array.shape()).value());
  must_hold(array.size() == elements, "another number of elements than the shape's");
  must_hold(array.bytes().size() == elements * size_in_bytes(array.dtype()), "other bytes");
  if (is_floating(array.dtype())) {
    must_hold(array.read<double>(NonFinite::allow).size() == elements, "other numbers");
  } else {
    must_hold(array.read_integers().size() == elements, "other integers");
    read_npy_ids(array.path());
  }
}

std::vector<std::string> npy_seeds() {
  std::vector<std::string> seeds;
  const std::vector<double> numbers{1, 2.5, -3, 0, 5, 6};
  const std::vector<std::uint16_t> ids{1, 2, 3};
  const std::filesystem::path path = fuzz_file("seed.npy", "");
  write_npy<double>(path, numbers, {2, 3});
  seeds.push_back(read_bytes(path));
  write_npy<std::uint16_t>(path, ids, {3});
  seeds.push_back(read_bytes(path));
  return seeds;
}

const FuzzRegistration npy_target({.name = "npy", .read = read_array, .seeds = npy_seeds});

}  // namespace
