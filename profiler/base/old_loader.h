// glibc 2.34 moved these functions to another library under a new version. The libraries that are loaded into
// programs ask for the old version, which newer systems still have, so that they also load into programs on
// older ones. They are weak: on an old system a program may not have them.
#pragma once

#include <dlfcn.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define SHARDSCOPE_OLDEST_GLIBC "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define SHARDSCOPE_OLDEST_GLIBC "GLIBC_2.17"
#endif

extern "C" {
__attribute__((weak)) extern decltype(dlopen) dlopen;
__attribute__((weak)) extern decltype(dlsym) dlsym;
}

#if defined(SHARDSCOPE_OLDEST_GLIBC)
__asm__(".symver dlopen, dlopen@" SHARDSCOPE_OLDEST_GLIBC);
__asm__(".symver dlsym, dlsym@" SHARDSCOPE_OLDEST_GLIBC);
#endif
