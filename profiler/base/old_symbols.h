// The same as old_loader.h for threads.
#pragma once

#include <pthread.h>

#include "profiler/base/old_loader.h"

extern "C" {
__attribute__((weak)) extern decltype(pthread_create) pthread_create;
__attribute__((weak)) extern decltype(pthread_detach) pthread_detach;
}

#if defined(SHARDSCOPE_OLDEST_GLIBC)
__asm__(".symver pthread_create, pthread_create@" SHARDSCOPE_OLDEST_GLIBC);
__asm__(".symver pthread_detach, pthread_detach@" SHARDSCOPE_OLDEST_GLIBC);
#endif
