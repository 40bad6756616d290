// The core layer, but for what only long runs need and which includes much more of the standard
// library: progress (core/progress.hpp) and the pool of threads (core/thread_pool.hpp).
#pragma once

#include "wanamaker/core/compiled.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/core/math.hpp"
#include "wanamaker/core/matrix_view.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/core/sanitizers.hpp"
#include "wanamaker/core/version.hpp"
