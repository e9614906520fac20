// CUPTI, opened at run time: nothing of CUDA is linked. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/cupti/abi.h"

namespace shardscope::profiler::cupti {

// CUPTI's functions under their own names, without the prefix. Those of the second list may be null.
struct Cupti {
    std::uint32_t version = 0;

    Result (*GetVersion)(std::uint32_t* version) = nullptr;
    Result (*Subscribe)(void** subscriber, Callback callback, void* user) = nullptr;
    Result (*Unsubscribe)(void* subscriber) = nullptr;
    Result (*EnableCallback)(std::uint32_t enable, void* subscriber, int domain,
                             std::uint32_t callback) = nullptr;
    Result (*GetCallbackName)(int domain, std::uint32_t callback, const char** name) = nullptr;
    Result (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted) = nullptr;
    Result (*ActivityEnable)(std::uint32_t kind) = nullptr;
    Result (*ActivityDisable)(std::uint32_t kind) = nullptr;
    Result (*ActivityFlushAll)(std::uint32_t flag) = nullptr;
    Result (*ActivityGetNextRecord)(std::uint8_t* buffer, std::size_t valid, void** record) = nullptr;
    Result (*ActivityGetNumDroppedRecords)(void* context, std::uint32_t stream,
                                           std::size_t* dropped) = nullptr;
    Result (*ActivitySetAttribute)(int attribute, std::size_t* size, void* value) = nullptr;
    Result (*ActivityPushExternalCorrelationId)(std::uint32_t kind, std::uint64_t id) = nullptr;
    Result (*ActivityPopExternalCorrelationId)(std::uint32_t kind, std::uint64_t* last) = nullptr;

    Result (*Subscribe_v2)(void** subscriber, Callback callback, void* user,
                           SubscriberParams* parameters) = nullptr;
    Result (*SetThreadIdType)(int type) = nullptr;
    Result (*GetResultString)(Result result, const char** text) = nullptr;
    Result (*ActivityEnableRuntimeApi)(std::uint32_t callback, std::uint8_t enable) = nullptr;
    Result (*ActivityEnableDriverApi)(std::uint32_t callback, std::uint8_t enable) = nullptr;
    Result (*ActivityEnableCudaEventDeviceTimestamps)(std::uint8_t enable) = nullptr;
};

// Finds the library (one that the program has loaded already, else that of the program's CUDA version, else
// the newest) and its functions. False: `why` says in a sentence what is missing.
bool open_cupti(Cupti& cupti, char (&why)[512]);

}  // namespace shardscope::profiler::cupti
