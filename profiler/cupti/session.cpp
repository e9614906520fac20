// Since CUDA 13.0 CUPTI reports which other tool uses it; see subscribe().
#include "profiler/cupti/session.h"

#include <stdio.h>

namespace shardscope::profiler::cupti {

bool CuptiSession::open(Callback callback, const char* advice, CudaCalls::IsWanted is_wanted, Reason& why) {
    cupti_ = {};
    dropped_ = 0;
    if (!open_cupti(cupti_, why) || !subscribe(callback, advice, why)) return false;
    may_refuse_.store(cupti_.version >= kVersion12_9, std::memory_order_relaxed);
    calls_.init(cupti_, is_wanted);
    // Buffers are handed out zeroed, which saves the library from doing it.
    std::uint8_t zeroed = 1;
    std::size_t size = sizeof zeroed;
    cupti_.ActivitySetAttribute(kAttributeZeroedBuffers, &size, &zeroed);
    return true;
}

bool CuptiSession::subscribe(Callback callback, const char* advice, Reason& why) {
    Result result = kSuccess;
    char holder[kSubscriberNameBytes] = {};
    if (cupti_.Subscribe_v2 != nullptr && cupti_.version >= kVersion13_0) {
        SubscriberParams parameters{sizeof parameters, "Shardscope", holder, sizeof holder};
        result = cupti_.Subscribe_v2(&subscriber_, callback, nullptr, &parameters);
        holder[sizeof holder - 1] = '\0';
    } else {
        result = cupti_.Subscribe(&subscriber_, callback, nullptr);
    }
    if (result == kSuccess) return true;
    if (result == kMultipleSubscribers) {
        ::snprintf(why, sizeof why, "%s%s%s uses CUPTI in this process, which serves one tool at a time; %s",
                   *holder != '\0' ? "\"" : "another profiler", holder, *holder != '\0' ? "\"" : "", advice);
    } else {
        describe_failure("cuptiSubscribe", result, "is there a driver, and may this user profile?", why);
    }
    return false;
}

// "cuptiActivityEnable() failed with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); `advice`".
void CuptiSession::describe_failure(const char* function, Result result, const char* advice,
                                    Reason& why) const {
    const char* name = nullptr;
    if (cupti_.GetResultString != nullptr) cupti_.GetResultString(result, &name);
    ::snprintf(why, sizeof why, "%s() failed with %s (%d); %s", function, name != nullptr ? name : "an error",
               result, advice);
}

bool CuptiSession::enable(std::span<const std::uint32_t> kinds, bool (*is_needed)(std::uint32_t kind),
                          const char* advice, Reason& why) {
    bool all = true;
    for (const std::uint32_t kind : kinds) {
        const Result result = cupti_.ActivityEnable(kind);
        if (result == kSuccess || !is_needed(kind)) continue;
        if (all) describe_failure("cuptiActivityEnable", result, advice, why);
        all = false;
    }
    calls_.enable(cupti_);
    return all;
}

bool CuptiSession::disable(std::span<const std::uint32_t> kinds) {
    if (cupti_.version == kVersion13_0) return false;  // 13.0 without its first update
    for (const std::uint32_t kind : kinds) cupti_.ActivityDisable(kind);
    calls_.disable(cupti_);
    return true;
}

void CuptiSession::request(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records, bool refused) {
    requested_.store(true, std::memory_order_relaxed);
    *buffer = refused ? nullptr : buffers_.request(may_refuse_.load(std::memory_order_relaxed));
    *size = *buffer != nullptr ? CudaBuffers::kBytes : 0;
    *max_records = 0;  // as many as fit
}

void CuptiSession::complete(std::uint8_t* buffer, std::size_t valid, bool is_read) {
    if (buffer == nullptr) return;
    if (is_read) {
        buffers_.give_back(buffer, valid);
    } else {
        buffers_.take_back(buffer, valid);
    }
}

void CuptiSession::discard_buffers() {
    for (CudaBuffers::Filled* filled = buffers_.take_filled(); filled != nullptr;) {
        CudaBuffers::Filled* next = filled->next;
        buffers_.recycle(filled);
        filled = next;
    }
}

}  // namespace shardscope::profiler::cupti
