// The fake's state and its two interfaces: CUPTI's functions, and those for the test program.
#include "tests/profiler/cuda/fake_cupti.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "profiler/cupti/abi.h"

namespace cupti = shardscope::profiler::cupti;

namespace {

constexpr int kLanes = 16;
constexpr const char* kDriverCalls[] = {"INVALID",         "cuInit",          "cuLaunchKernel",
                                        "cuMemAlloc_v2",   "cuProfilerStart", "cuProfilerStop",
                                        "cuCtxGetCurrent", "cuMemGetInfo_v2"};
constexpr const char* kRuntimeCalls[] = {"INVALID",
                                         "cudaDriverGetVersion_v3020",
                                         "cudaGetDevice_v3020",
                                         "cudaLaunchKernel_v7000",
                                         "cudaMemcpyAsync_v3020",
                                         "cudaMemsetAsync_v3020",
                                         "cudaStreamSynchronize_v3020",
                                         "cudaMalloc_v3020",
                                         "cudaFree_v3020",
                                         "cudaProfilerStart_v4000",
                                         "cudaProfilerStop_v4000",
                                         "cudaDeviceReset_v3020",
                                         "cudaGraphLaunch_v10000"};

struct Lane {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, used = 0;
    bool held = false;
};

struct Fake {
    std::mutex lock;  // held during callbacks
    cupti::BufferRequested requested = nullptr;
    cupti::BufferCompleted completed = nullptr;
    cupti::Callback subscriber = nullptr;
    std::set<std::uint32_t> kinds;
    std::set<std::uint32_t> calls[3];  // enabled or, for the runtime, individually disabled
    std::map<int, std::set<std::uint32_t>> callbacks;
    Lane lanes[kLanes];
    std::size_t dropped = 0;
    FakeCounts counts{};
    std::atomic<int> buffers_read{0};
    pid_t pid = ::getpid();
};

Fake& fake() {
    static auto* made = new Fake;
    return *made;
}

std::uint32_t version() {
    const char* given = std::getenv("FAKE_CUPTI_VERSION");
    return given != nullptr ? static_cast<std::uint32_t>(std::atoi(given)) : 130001;
}

const char* call_name(int domain, std::uint32_t number) {
    if (domain == cupti::kDomainDriver && number < std::size(kDriverCalls)) return kDriverCalls[number];
    if (domain == cupti::kDomainRuntime && number < std::size(kRuntimeCalls)) return kRuntimeCalls[number];
    return nullptr;
}

std::uint32_t call_number(int domain, const char* name) {
    for (std::uint32_t number = 0;; ++number) {
        const char* known = call_name(domain, number);
        if (known == nullptr) std::abort();
        if (std::strcmp(known, name) == 0) return number;
    }
}

template <typename Record>
std::size_t length() {
    // The records of later libraries are longer than ours.
    const std::size_t extra = version() >= cupti::kVersion13_0 ? 8 : 0;
    return (cupti::bytes_known<Record>(version()) + 7) / 8 * 8 + extra;
}

std::size_t length(std::uint32_t kind) {
    switch (kind) {
        case cupti::kKindConcurrentKernel:
            return length<cupti::Kernel>();
        case cupti::kKindMemcpy:
            return length<cupti::Memcpy>();
        case cupti::kKindMemcpy2:
            return length<cupti::MemcpyPeer>();
        case cupti::kKindMemset:
            return length<cupti::Memset>();
        case cupti::kKindRuntime:
        case cupti::kKindDriver:
            return length<cupti::Api>();
        case cupti::kKindSynchronization:
            return length<cupti::Synchronization>();
        case cupti::kKindCudaEvent:
            return length<cupti::CudaEvent>();
        case cupti::kKindMemory2:
            return length<cupti::Memory>();
        case cupti::kKindMemoryPool:
            return length<cupti::MemoryPool>();
        case cupti::kKindOverhead:
            return length<cupti::Overhead>();
        case cupti::kKindGraphTrace:
            return length<cupti::GraphTrace>();
        case cupti::kKindDevice:
            return length<cupti::Device>();
        case cupti::kKindContext:
            return length<cupti::Context>();
        case cupti::kKindStream:
            return length<cupti::Stream>();
        case cupti::kKindExternalCorrelation:
            return length<cupti::ExternalCorrelation>();
        default:
            std::abort();
    }
}

bool is_enabled(std::uint32_t kind, const std::uint8_t* record) {
    if (kind == cupti::kKindRuntime || kind == cupti::kKindDriver) {
        cupti::Api api;
        std::memcpy(&api, record, sizeof api);
        const bool listed = fake().calls[kind == cupti::kKindRuntime ? 2 : 1].count(api.callback) != 0;
        return kind == cupti::kKindRuntime ? fake().kinds.count(kind) != 0 && !listed
                                           : fake().kinds.count(kind) != 0 || listed;
    }
    return fake().kinds.count(kind) != 0;
}

// Called under the lock, as in CUPTI.
bool open(Lane& lane) {
    std::size_t records = 99;
    fake().requested(&lane.buffer, &lane.size, &records);
    lane.used = 0;
    if (lane.buffer == nullptr) return false;
    if (records != 0 || lane.size == 0) ++fake().counts.wrong_size;
    for (std::size_t i = 0; i < lane.size; i += 64) {
        if (lane.buffer[i] != 0) {
            ++fake().counts.not_zeroed;
            break;
        }
    }
    return true;
}

// Puts a record into a lane's buffer, if its kind is enabled.
bool put(int lane_number, std::uint32_t kind, const std::uint8_t* bytes);

// The external ids that a thread has pushed, by kind.
thread_local std::map<std::uint32_t, std::vector<std::uint64_t>> external_ids;

cupti::Result result_of(const char* variable) {
    const char* given = std::getenv(variable);
    return given != nullptr ? std::atoi(given) : cupti::kSuccess;
}

void complete(Lane& lane) {
    if (lane.buffer == nullptr) return;
    std::uint8_t* buffer = lane.buffer;
    lane.buffer = nullptr;
    fake().completed(nullptr, 0, buffer, lane.size, lane.used);
}

}  // namespace

extern "C" {

cupti::Result cuptiGetVersion(std::uint32_t* result) {
    *result = version();
    return cupti::kSuccess;
}

static cupti::Result subscribe(void** subscriber, cupti::Callback callback) {
    if (std::getenv("FAKE_CUPTI_HOLDER") != nullptr) return cupti::kMultipleSubscribers;
    if (const cupti::Result result = result_of("FAKE_CUPTI_SUBSCRIBE"); result != cupti::kSuccess)
        return result;
    fake().subscriber = callback;
    *subscriber = &fake();
    return cupti::kSuccess;
}

cupti::Result cuptiSubscribe(void** subscriber, cupti::Callback callback, void*) {
    return subscribe(subscriber, callback);
}

cupti::Result cuptiUnsubscribe(void*) {
    fake().subscriber = nullptr;
    return cupti::kSuccess;
}

cupti::Result cuptiEnableCallback(std::uint32_t enable, void*, int domain, std::uint32_t number) {
    if (enable != 0) fake().callbacks[domain].insert(number);
    return cupti::kSuccess;
}

cupti::Result cuptiGetCallbackName(int domain, std::uint32_t number, const char** name) {
    *name = call_name(domain, number);
    return *name != nullptr ? cupti::kSuccess : 1;
}

cupti::Result cuptiActivityRegisterCallbacks(cupti::BufferRequested requested,
                                             cupti::BufferCompleted completed) {
    fake().requested = requested;
    fake().completed = completed;
    return cupti::kSuccess;
}

cupti::Result cuptiActivityEnable(std::uint32_t kind) {
    const std::lock_guard held(fake().lock);
    constexpr std::uint32_t kKernelOneByOne = 3;
    if (kind == kKernelOneByOne) std::abort();
    if (const cupti::Result result = result_of("FAKE_CUPTI_ENABLE"); result != cupti::kSuccess) return result;
    fake().kinds.insert(kind);
    return cupti::kSuccess;
}

cupti::Result cuptiActivityDisable(std::uint32_t kind) {
    const std::lock_guard held(fake().lock);
    fake().kinds.erase(kind);
    return cupti::kSuccess;
}

cupti::Result cuptiActivityFlushAll(std::uint32_t flag) {
    if (fake().pid != ::getpid()) ::_exit(66);  // CUPTI must not be used in a forked child
    const std::lock_guard held(fake().lock);
    const bool forced = (flag & cupti::kFlushForced) != 0;
    ++(forced ? fake().counts.forced_flushes : fake().counts.flushes);
    for (Lane& lane : fake().lanes) {
        if (forced || !lane.held) complete(lane);
    }
    return cupti::kSuccess;
}

cupti::Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, void** record) {
    constexpr cupti::Result kMaxLimitReached = 12;
    std::size_t at = 0;
    if (*record != nullptr) {
        std::uint32_t kind = 0;
        std::memcpy(&kind, *record, sizeof kind);
        at = static_cast<std::size_t>(static_cast<std::uint8_t*>(*record) - buffer) + length(kind);
    }
    if (at >= valid) {
        ++fake().buffers_read;
        return kMaxLimitReached;
    }
    *record = buffer + at;
    return cupti::kSuccess;
}

cupti::Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
    const std::lock_guard held(fake().lock);
    *dropped = fake().dropped;
    fake().dropped = 0;
    return cupti::kSuccess;
}

cupti::Result cuptiActivitySetAttribute(int, std::size_t*, void*) {
    return cupti::kSuccess;
}

cupti::Result cuptiActivityPushExternalCorrelationId(std::uint32_t kind, std::uint64_t id) {
    external_ids[kind].push_back(id);
    return cupti::kSuccess;
}

cupti::Result cuptiActivityPopExternalCorrelationId(std::uint32_t kind, std::uint64_t* last) {
    constexpr cupti::Result kQueueEmpty = 18;
    if (external_ids[kind].empty()) return kQueueEmpty;
    *last = external_ids[kind].back();
    external_ids[kind].pop_back();
    return cupti::kSuccess;
}

cupti::Result cuptiSetThreadIdType(int type) {
    fake().counts.thread_id_type = type;
    return cupti::kSuccess;
}

cupti::Result cuptiGetResultString(cupti::Result, const char** text) {
    *text = "CUPTI_ERROR_OF_THE_FAKE";
    return cupti::kSuccess;
}

// Functions that an old library lacks.
#if !defined(FAKE_CUPTI_OLD)
cupti::Result cuptiSubscribe_v2(void** subscriber, cupti::Callback callback, void*,
                                cupti::SubscriberParams* parameters) {
    const cupti::Result result = subscribe(subscriber, callback);
    if (result == cupti::kMultipleSubscribers && parameters->other_name != nullptr) {
        std::strncpy(parameters->other_name, std::getenv("FAKE_CUPTI_HOLDER"), parameters->other_size - 1);
    }
    return result;
}

cupti::Result cuptiActivityEnableRuntimeApi(std::uint32_t number, std::uint8_t enable) {
    const std::lock_guard held(fake().lock);
    if (enable == 0) fake().calls[2].insert(number);
    return cupti::kSuccess;
}

cupti::Result cuptiActivityEnableDriverApi(std::uint32_t number, std::uint8_t enable) {
    const std::lock_guard held(fake().lock);
    if (enable != 0) {
        fake().calls[1].insert(number);
    } else {
        fake().calls[1].erase(number);
    }
    return cupti::kSuccess;
}

cupti::Result cuptiActivityEnableCudaEventDeviceTimestamps(std::uint8_t) {
    return cupti::kSuccess;
}
#endif

int fake_emit(int lane_number, const void* record, std::size_t size, const char* name) {
    const std::lock_guard held(fake().lock);
    std::uint8_t bytes[512];
    std::memset(bytes, 0xAB, sizeof bytes);  // the bytes after a record's known part
    std::memcpy(bytes, record, size);
    std::uint32_t kind = 0;
    std::memcpy(&kind, bytes, sizeof kind);
    if (name != nullptr) {
        const std::uint32_t number =
            call_number(kind == cupti::kKindRuntime ? cupti::kDomainRuntime : cupti::kDomainDriver, name);
        std::memcpy(bytes + offsetof(cupti::Api, callback), &number, sizeof number);
    }
    if (kind == cupti::kKindRuntime || kind == cupti::kKindDriver) {
        cupti::Api api;
        std::memcpy(&api, bytes, sizeof api);
        for (const auto& [external_kind, ids] : external_ids) {
            if (ids.empty() || !is_enabled(kind, bytes)) continue;
            const cupti::ExternalCorrelation external{cupti::kKindExternalCorrelation, external_kind,
                                                      ids.back(), api.correlation, 0};
            std::uint8_t told[512] = {};
            std::memcpy(told, &external, sizeof external);
            put(lane_number, external.kind, told);
        }
    }
    return put(lane_number, kind, bytes) ? 1 : 0;
}

}  // extern "C"

namespace {

bool put(int lane_number, std::uint32_t kind, const std::uint8_t* bytes) {
    if (fake().requested == nullptr || !is_enabled(kind, bytes)) return false;
    Lane& lane = fake().lanes[lane_number];
    const std::size_t whole = length(kind);
    if (lane.buffer != nullptr && lane.used + whole > lane.size) complete(lane);
    if (lane.buffer == nullptr && !open(lane)) {
        ++fake().dropped;
        return false;
    }
    std::memcpy(lane.buffer + lane.used, bytes, whole);
    lane.used += whole;
    return true;
}

}  // namespace

extern "C" {

void fake_complete(int lane) {
    const std::lock_guard held(fake().lock);
    complete(fake().lanes[lane]);
}

void fake_hold(int lane, int held) {
    const std::lock_guard lock(fake().lock);
    fake().lanes[lane].held = held != 0;
}

int fake_take_buffer() {
    const std::lock_guard held(fake().lock);
    Lane lane;
    return open(lane) ? 1 : 0;
}

void fake_call(int domain, const char* name, int site) {
    const std::uint32_t number =
        domain == cupti::kDomainResource ? cupti::kContextDestroyStarting : call_number(domain, name);
    if (fake().subscriber == nullptr || fake().callbacks[domain].count(number) == 0) return;
    const cupti::CallbackData data{site};
    fake().subscriber(nullptr, domain, number, &data);
}

void fake_drop(std::size_t records) {
    const std::lock_guard held(fake().lock);
    fake().dropped += records;
}

FakeCounts fake_counts() {
    const std::lock_guard held(fake().lock);
    fake().counts.enabled_kinds = static_cast<int>(fake().kinds.size());
    fake().counts.buffers_read = fake().buffers_read;
    return fake().counts;
}
}
