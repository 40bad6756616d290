// utf8proc (Unicode categories and normalisation), its warnings muted.
#pragma once

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include <utf8proc.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
