// CBLAS, included in this one place. Any implementation: OpenBLAS, BLIS, ATLAS, MKL, Netlib.
#pragma once

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
// OpenBLAS has a global type of this name, which a program that says `using namespace wanamaker`
// before would make ambiguous.
#define bfloat16 wanamaker_cblas_bfloat16
extern "C" {
#include <cblas.h>
}
#undef bfloat16
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
