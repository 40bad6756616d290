// Eigen's dense 2-D linear algebra, included in this one place with its warnings muted. Never
// included by device translation units.
#pragma once

#if defined(__CUDACC__)
#error "Eigen is kept out of device translation units: include backend/cublas.hpp only."
#endif

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Warray-bounds"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif
#include <Eigen/Core>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
