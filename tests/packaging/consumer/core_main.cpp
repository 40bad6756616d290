// Two translation units that use core share one definition of everything.
#include <cstdio>

#include "wanamaker/core.hpp"

const void* one_line_in_other_unit();

int main() {
  const std::string line = wanamaker::one_line({.id = "a/b", .where = "here", .what = "a fault"});
  const bool same = reinterpret_cast<const void*>(&wanamaker::one_line) == one_line_in_other_unit();
  std::printf("%s %s\n", line.c_str(), same ? "shared" : "twice");
  return line == "here: a fault [a/b]" && same ? 0 : 1;
}
