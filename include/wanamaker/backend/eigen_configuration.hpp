// How Eigen is configured where it is included, as a type: a tag in the names of what depends on
// it.
#pragma once

#include "wanamaker/backend/third_party/eigen.hpp"
#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// `align_bytes`: to how much Eigen aligns, and so how it allocates and frees; `index_bytes`: what
/// its views hold. Types that depend on these have a configuration among their template arguments,
/// so that translation units which pass them to each other and differ in it do not link.
template <int align_bytes, int index_bytes>
struct EigenConfiguration {};

/// That of this translation unit.
using EigenAsConfigured =
    EigenConfiguration<EIGEN_MAX_ALIGN_BYTES, static_cast<int>(sizeof(Eigen::Index))>;

}  // namespace wanamaker::inline WANAMAKER_ABI
