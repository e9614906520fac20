// Subscribes as the one tool that CUPTI serves in a process.
#pragma once

#include "profiler/cupti/library.h"

namespace shardscope::profiler::cupti {

// Returns false if CUPTI has another user or cannot be used; `why` is then a sentence, which ends with
// `advice` in the first case.
bool subscribe(const Cupti& cupti, Callback callback, const char* advice, void** subscriber,
               char (&why)[512]);

// "cuptiActivityEnable() failed with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); `advice`".
void describe_failure(const Cupti& cupti, const char* function, Result result, const char* advice,
                      char (&why)[512]);

// Buffers are handed out zeroed, which saves the library from doing it.
void promise_zeroed_buffers(const Cupti& cupti);

}  // namespace shardscope::profiler::cupti
