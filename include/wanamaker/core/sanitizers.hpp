// Whether this translation unit is compiled for the address or the thread sanitizer, which g++ and
// clang say in different ways.
#pragma once

/// 1 under a sanitizer that watches accesses to memory, else 0.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WANAMAKER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WANAMAKER_SANITIZED 1
#endif
#endif
#if !defined(WANAMAKER_SANITIZED)
#define WANAMAKER_SANITIZED 0
#endif
