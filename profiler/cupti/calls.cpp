// Names of calls, and enabling them: the driver's calls one by one, the runtime's all but the unwanted ones.
#include "profiler/cupti/calls.h"

#include <initializer_list>

#include <string.h>

namespace shardscope::profiler::cupti {

bool begins_with(const char* name, const char* start) {
    return ::strncmp(name, start, ::strlen(start)) == 0;
}

void CudaCalls::init(const Cupti& cupti, IsWanted is_wanted) {
    for (const int domain : {kDomainDriver, kDomainRuntime}) {
        for (std::uint32_t number = 0; number < kMost; ++number) {
            const char* name = nullptr;
            if (cupti.GetCallbackName(domain, number, &name) != kSuccess) break;
            if (name == nullptr) continue;
            Call& call = calls_[domain - 1][number];
            call.name = name;
            call.wanted = is_wanted(domain, name);
        }
    }
}

std::uint32_t CudaCalls::number_of(int domain, const char* name) {
    for (std::uint32_t number = 0; number < kMost; ++number) {
        const Call* call = find(domain, number);
        if (call != nullptr && ::strcmp(call->name, name) == 0) return number;
    }
    return 0;
}

void CudaCalls::enable(const Cupti& cupti) {
    cupti.ActivityEnable(kKindRuntime);
    if (cupti.ActivityEnableDriverApi != nullptr) {
        for (std::uint32_t number = 0; number < kMost; ++number) {
            const Call* call = find(kDomainDriver, number);
            if (call != nullptr && call->wanted) cupti.ActivityEnableDriverApi(number, 1);
        }
    } else {
        cupti.ActivityEnable(kKindDriver);
    }
    if (cupti.ActivityEnableRuntimeApi == nullptr) return;
    for (std::uint32_t number = 1; number < kMost; ++number) {
        const Call* call = find(kDomainRuntime, number);
        if (call != nullptr && !call->wanted) cupti.ActivityEnableRuntimeApi(number, 0);
    }
}

void CudaCalls::disable(const Cupti& cupti) {
    cupti.ActivityDisable(kKindRuntime);
    if (cupti.ActivityEnableDriverApi == nullptr) {
        cupti.ActivityDisable(kKindDriver);
        return;
    }
    for (std::uint32_t number = 0; number < kMost; ++number) {
        const Call* call = find(kDomainDriver, number);
        if (call != nullptr && call->wanted) cupti.ActivityEnableDriverApi(number, 0);
    }
}

}  // namespace shardscope::profiler::cupti
