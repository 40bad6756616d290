#include "passed.hpp"

int take_core(const wanamaker::Problem* problem) {
  return problem == nullptr ? 0 : 1;
}
#if defined(WITH_EIGEN)
int take_backend(const wanamaker::EigenBackend<float>* backend) {
  return backend == nullptr ? 0 : 1;
}
int take_products(const wanamaker::BlasBackend<double>* backend) {
  return backend == nullptr ? 0 : 1;
}
int take_fit(const wanamaker::QrAccumulator* fit) {
  return fit == nullptr ? 0 : 1;
}
#endif
