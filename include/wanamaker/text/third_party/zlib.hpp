// zlib (gzip), its warnings muted.
#pragma once

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
// Input of inflate() is then const.
#if !defined(ZLIB_CONST)
#define ZLIB_CONST
#endif
#include <zlib.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
