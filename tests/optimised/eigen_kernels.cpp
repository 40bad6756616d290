#include "optimised/use_model.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"

WANAMAKER_USE_MODEL(EigenBackend<double>);
WANAMAKER_USE_MODEL(ReferenceBackend<double>);
