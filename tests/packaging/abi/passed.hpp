// What the two units pass to each other. Pointers: names alone decide whether they link.
#pragma once

#include "wanamaker/core.hpp"

int take_core(const wanamaker::Problem*);

#if defined(WITH_EIGEN)
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/surrogate/qr_accumulator.hpp"

int take_backend(const wanamaker::EigenBackend<float>*);
int take_products(const wanamaker::BlasBackend<double>*);
int take_fit(const wanamaker::QrAccumulator*);
#endif
