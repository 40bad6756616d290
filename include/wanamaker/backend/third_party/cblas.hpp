// CBLAS, included in this one place. Any implementation: OpenBLAS, BLIS, ATLAS, MKL, Netlib.
#pragma once

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
extern "C" {
#include <cblas.h>
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
