// Every header in one translation unit.
#include "all_headers.hpp"

extern "C" const void* address_in_unit();

extern "C" const void* address_in_unit() {
  return reinterpret_cast<const void*>(&wanamaker::one_line);
}
