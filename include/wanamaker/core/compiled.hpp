// WANAMAKER_INLINE: what functions are which wanamaker::compiled holds. There they are compiled
// once; headers define them inline, unless WANAMAKER_COMPILED says that the library is linked.
#pragma once

#ifdef WANAMAKER_COMPILED_SOURCE
#define WANAMAKER_INLINE
#else
#define WANAMAKER_INLINE inline
#endif
