// Every header in two translation units of one program: a function or variable that is defined
// twice does not link, and a macro that changes a meaning shows as different addresses.
#include "all_headers.hpp"

const void* one_line_in_other_unit();

int main() {
  const void* here = reinterpret_cast<const void*>(&wanamaker::one_line);
  return here == one_line_in_other_unit() ? 0 : 1;
}
