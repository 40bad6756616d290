// oneDNN's C interface and the two OpenMP calls that keep it on one thread, in this one place.
#pragma once

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
#include <dnnl.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#if defined(_OPENMP)
#include <omp.h>
#else
// Declared by hand: compiling with OpenMP is not needed to link with its runtime.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}
#endif
