// CUPTI, opened at run time in the injected program: nothing of CUDA is linked. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/inject/cupti_abi.h"

namespace shardscope::profiler::inject {

// CUPTI's functions under their own names, without the prefix. Those of the second list may be null.
struct Cupti {
    std::uint32_t version = 0;

    cupti::Result (*GetVersion)(std::uint32_t* version) = nullptr;
    cupti::Result (*Subscribe)(void** subscriber, cupti::Callback callback, void* user) = nullptr;
    cupti::Result (*Unsubscribe)(void* subscriber) = nullptr;
    cupti::Result (*EnableCallback)(std::uint32_t enable, void* subscriber, int domain,
                                    std::uint32_t callback) = nullptr;
    cupti::Result (*GetCallbackName)(int domain, std::uint32_t callback, const char** name) = nullptr;
    cupti::Result (*ActivityRegisterCallbacks)(cupti::BufferRequested, cupti::BufferCompleted) = nullptr;
    cupti::Result (*ActivityEnable)(std::uint32_t kind) = nullptr;
    cupti::Result (*ActivityDisable)(std::uint32_t kind) = nullptr;
    cupti::Result (*ActivityFlushAll)(std::uint32_t flag) = nullptr;
    cupti::Result (*ActivityGetNextRecord)(std::uint8_t* buffer, std::size_t valid, void** record) = nullptr;
    cupti::Result (*ActivityGetNumDroppedRecords)(void* context, std::uint32_t stream,
                                                  std::size_t* dropped) = nullptr;
    cupti::Result (*ActivitySetAttribute)(int attribute, std::size_t* size, void* value) = nullptr;

    cupti::Result (*Subscribe_v2)(void** subscriber, cupti::Callback callback, void* user,
                                  cupti::SubscriberParams* parameters) = nullptr;
    cupti::Result (*SetThreadIdType)(int type) = nullptr;
    cupti::Result (*GetResultString)(cupti::Result result, const char** text) = nullptr;
    cupti::Result (*ActivityEnableRuntimeApi)(std::uint32_t callback, std::uint8_t enable) = nullptr;
    cupti::Result (*ActivityEnableDriverApi)(std::uint32_t callback, std::uint8_t enable) = nullptr;
    cupti::Result (*ActivityEnableCudaEventDeviceTimestamps)(std::uint8_t enable) = nullptr;
};

// Finds the library (one that the program has loaded already, else of the program's CUDA version, else the
// newest) and its functions. False: `why` says in a sentence what is missing.
bool open_cupti(Cupti& cupti, char (&why)[512]);

}  // namespace shardscope::profiler::inject
