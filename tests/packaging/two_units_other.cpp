// The other translation unit of two_units_main.cpp.
#include "all_headers.hpp"

const void* one_line_in_other_unit();

const void* one_line_in_other_unit() {
  return reinterpret_cast<const void*>(&wanamaker::one_line);
}
