// glibc 2.34 moved these functions to another library under a new version. The injected library asks for the
// old version, which newer systems still have, so that it also loads into programs on older ones. They are
// weak: on an old system a program without threads does not have them.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define SHARDSCOPE_OLDEST_GLIBC "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define SHARDSCOPE_OLDEST_GLIBC "GLIBC_2.17"
#endif

extern "C" {
__attribute__((weak)) extern decltype(dlopen) dlopen;
__attribute__((weak)) extern decltype(dlsym) dlsym;
__attribute__((weak)) extern decltype(pthread_create) pthread_create;
__attribute__((weak)) extern decltype(pthread_detach) pthread_detach;
}

#if defined(SHARDSCOPE_OLDEST_GLIBC)
__asm__(".symver dlopen, dlopen@" SHARDSCOPE_OLDEST_GLIBC);
__asm__(".symver dlsym, dlsym@" SHARDSCOPE_OLDEST_GLIBC);
__asm__(".symver pthread_create, pthread_create@" SHARDSCOPE_OLDEST_GLIBC);
__asm__(".symver pthread_detach, pthread_detach@" SHARDSCOPE_OLDEST_GLIBC);
#endif
