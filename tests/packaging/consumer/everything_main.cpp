// All components resolve, and the headers of their dependencies are found.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <Eigen/Core>
#include <nlohmann/json.hpp>
#include <xtensor/xtensor.hpp>

#include "wanamaker/core.hpp"

#if defined(EXPECT_NO_CBLAS) && (defined(WANAMAKER_HAS_CBLAS) || defined(WANAMAKER_HAS_ONEDNN))
#error "wanamaker::blas claims a library that was not found"
#endif
#if defined(EXPECT_NO_CBLAS) && (defined(WANAMAKER_HAS_ZLIB) || defined(WANAMAKER_HAS_ZSTD))
#error "wanamaker::text claims a library that was not found"
#endif
#ifdef WANAMAKER_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef WANAMAKER_HAS_ZSTD
#include <zstd.h>
#endif
#ifdef WANAMAKER_HAS_CBLAS
#include <cblas.h>
#endif

int main() {
  Eigen::Matrix2f a = Eigen::Matrix2f::Identity();
  float trace = a.trace();
#ifdef WANAMAKER_HAS_CBLAS
  trace = cblas_sdot(2, a.data(), 3, a.data(), 3);
#endif
  bool linked = utf8proc_version() != nullptr && pcre2_config_8(PCRE2_CONFIG_UNICODE, nullptr) > 0;
#ifdef WANAMAKER_HAS_ZLIB
  linked = linked && zlibVersion() != nullptr;
#endif
#ifdef WANAMAKER_HAS_ZSTD
  linked = linked && ZSTD_versionNumber() > 0;
#endif
  return trace == 2 && linked ? 0 : 1;
}
