// Since CUDA 13.0 CUPTI reports which other tool uses it.
#include "profiler/cupti/subscription.h"

#include <stdio.h>

namespace shardscope::profiler::cupti {

bool subscribe(const Cupti& cupti, Callback callback, const char* advice, void** subscriber,
               char (&why)[512]) {
    Result result = kSuccess;
    char holder[kSubscriberNameBytes] = {};
    if (cupti.Subscribe_v2 != nullptr && cupti.version >= kVersion13_0) {
        SubscriberParams parameters{sizeof parameters, "Shardscope", holder, sizeof holder};
        result = cupti.Subscribe_v2(subscriber, callback, nullptr, &parameters);
        holder[sizeof holder - 1] = '\0';
    } else {
        result = cupti.Subscribe(subscriber, callback, nullptr);
    }
    if (result == kSuccess) return true;
    if (result == kMultipleSubscribers) {
        ::snprintf(why, sizeof why, "%s%s%s uses CUPTI in this process, which serves one tool at a time; %s",
                   *holder != '\0' ? "\"" : "another profiler", holder, *holder != '\0' ? "\"" : "", advice);
    } else {
        describe_failure(cupti, "cuptiSubscribe", result, "is there a driver, and may this user profile?",
                         why);
    }
    return false;
}

void describe_failure(const Cupti& cupti, const char* function, Result result, const char* advice,
                      char (&why)[512]) {
    const char* name = nullptr;
    if (cupti.GetResultString != nullptr) cupti.GetResultString(result, &name);
    ::snprintf(why, sizeof why, "%s() failed with %s (%d); %s", function, name != nullptr ? name : "an error",
               result, advice);
}

void promise_zeroed_buffers(const Cupti& cupti) {
    std::uint8_t zeroed = 1;
    std::size_t size = sizeof zeroed;
    cupti.ActivitySetAttribute(kAttributeZeroedBuffers, &size, &zeroed);
}

}  // namespace shardscope::profiler::cupti
