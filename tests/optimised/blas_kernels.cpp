#include "optimised/use_model.hpp"
#include "wanamaker/backend/blas.hpp"

WANAMAKER_USE_MODEL(BlasBackend<float>);
WANAMAKER_USE_MODEL(BlasBackend<double>);
