// The simulated runtime; see runtime_api.h.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/trainer/played_cuda/runtime_api.h"

namespace {

std::mutex machine_mutex;
played_cuda::Machine machine;
struct Allocation {
    std::size_t bytes = 0;
    int gpu = 0;
};
std::map<void*, Allocation> allocations;  // device memory

std::mutex failure_mutex;
std::string failure;  // the first exception thrown by a stream's work
std::atomic<bool> failed{false};

std::atomic<played_cuda::Observer*> observer{nullptr};
thread_local std::uint64_t current_tag = 0;
thread_local int current_gpu = 0;
thread_local cudaError_t last_error = cudaSuccess;

// Keeps the error until it is queried, as the runtime does.
cudaError_t result(cudaError_t error) {
    if (error == cudaSuccess && failed) error = cudaErrorLaunchFailure;
    if (error != cudaSuccess) last_error = error;
    return error;
}

void maybe_sleep() {
    static std::atomic<std::uint64_t> calls{0};
    const std::uint64_t seed = machine.delay_seed;
    if (seed == 0) return;
    std::uint64_t x = seed + 0x9e3779b97f4a7c15U * ++calls;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;  // splitmix64 (Steele, Lea and Flood, OOPSLA 2014)
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    if (x % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds((x >> 8) % 200));
}

// How often an event was recorded, and how many of these records have completed.
struct EventState {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t recorded = 0, happened = 0;

    void reach(std::uint64_t number) {
        const std::lock_guard lock(mutex);
        happened = std::max(happened, number);
        changed.notify_all();
    }
    void wait(std::uint64_t number) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return happened >= number; });
    }
    std::uint64_t latest() {
        const std::lock_guard lock(mutex);
        return recorded;
    }
};

}  // namespace

struct CUevent_st {
    int gpu = current_gpu;
    std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

struct CUstream_st {
    CUstream_st() : thread([this] { run(); }) {}
    ~CUstream_st() {
        {
            const std::lock_guard lock(mutex);
            ends = true;
            changed.notify_all();
        }
        thread.join();
    }
    void add(std::function<void()> item) {
        const std::lock_guard lock(mutex);
        items.push_back(std::move(item));
        changed.notify_all();
    }
    void drain() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return items.empty(); });
    }

    const int gpu = current_gpu;

  private:
    void run() {
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [&] { return ends || !items.empty(); });
            if (items.empty()) return;
            const std::function<void()> item = items.front();
            lock.unlock();
            carry_out(item);
            lock.lock();
            items.pop_front();
            changed.notify_all();
        }
    }
    static void carry_out(const std::function<void()>& item) {
        try {
            maybe_sleep();
            item();
        } catch (const std::exception& error) {
            const std::lock_guard lock(failure_mutex);
            if (!failed) failure = error.what();
            failed = true;
        }
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> items;  // the first may be running
    bool ends = false;
    std::thread thread;
};

// --- errors ----------------------------------------------------------------------------------------------

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "no error";
        case cudaErrorInvalidValue:
            return "invalid argument";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorNoDevice:
            return "no CUDA-capable device is detected";
        case cudaErrorInvalidDevice:
            return "invalid device ordinal";
        case cudaErrorInvalidResourceHandle:
            return "invalid resource handle";
        case cudaErrorNotReady:
            return "device not ready";
        case cudaErrorLaunchFailure: {
            const std::lock_guard lock(failure_mutex);
            return failure.c_str();
        }
        default:
            return "unknown error";
    }
}
const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "cudaSuccess";
        case cudaErrorInvalidValue:
            return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation:
            return "cudaErrorMemoryAllocation";
        case cudaErrorNoDevice:
            return "cudaErrorNoDevice";
        case cudaErrorInvalidDevice:
            return "cudaErrorInvalidDevice";
        case cudaErrorInvalidResourceHandle:
            return "cudaErrorInvalidResourceHandle";
        case cudaErrorNotReady:
            return "cudaErrorNotReady";
        case cudaErrorLaunchFailure:
            return "cudaErrorLaunchFailure";
        default:
            return "cudaErrorUnknown";
    }
}
cudaError_t cudaGetLastError() {
    const cudaError_t error = failed ? cudaErrorLaunchFailure : last_error;
    last_error = cudaSuccess;
    return error;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
    return result(kernel && value >= 0 && value <= 227 * 1024 ? cudaSuccess : cudaErrorInvalidValue);
}

// --- devices ---------------------------------------------------------------------------------------------

cudaError_t cudaDriverGetVersion(int* version) {
    *version = 13000;
    return result(cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = 13000;
    return result(cudaSuccess);
}
cudaError_t cudaGetDeviceCount(int* count) {
    *count = machine.gpus;
    return result(machine.gpus > 0 ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= machine.gpus) return result(cudaErrorInvalidDevice);
    current_gpu = device;
    return result(cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
    *device = current_gpu;
    return result(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    std::snprintf(properties->name, sizeof properties->name, "played GPU %d", device);
    properties->totalGlobalMem = machine.memory;
    properties->multiProcessorCount = 4;
    properties->major = 9;
    properties->minor = 0;
    properties->pciDomainID = properties->pciDeviceID = 0;
    properties->pciBusID = 0x10 + device;
    return result(cudaSuccess);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 1;
    return result(cudaSuccess);
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
    return result(cudaSuccess);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
    *lowest = 0;
    *highest = -5;
    return result(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() {
    return result(cudaSuccess);
}

// --- memory ----------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    const std::lock_guard lock(machine_mutex);
    std::size_t used = 0;
    for (const auto& [where, allocation] : allocations) {
        if (allocation.gpu == current_gpu) used += allocation.bytes;
    }
    *address = nullptr;
    if (used + bytes > machine.memory) return result(cudaErrorMemoryAllocation);
    *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*address) return result(bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation);
    allocations[*address] = {bytes, current_gpu};
    return result(cudaSuccess);
}
cudaError_t cudaFree(void* address) {
    const std::lock_guard lock(machine_mutex);
    if (address && allocations.erase(address) == 0) return result(cudaErrorInvalidValue);
    std::free(address);
    return result(cudaSuccess);
}
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
    *address = std::aligned_alloc(256, (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256);
    return result(*address ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* address) {
    std::free(address);
    return result(cudaSuccess);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    *total = machine.memory;
    *free = machine.memory - std::min(machine.memory, played_cuda::allocated());
    return result(cudaSuccess);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return result(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
    played_cuda::enqueue(
        stream,
        [=] {
            if (bytes > 0) std::memcpy(to, from, bytes);
        },
        played_cuda::Activity::memcpy);
    return result(cudaSuccess);
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
    if (bytes > 0) std::memset(to, value, bytes);
    return result(cudaSuccess);
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    const bool taken = played_cuda::enqueue(
        stream,
        [=] {
            if (bytes > 0) std::memset(to, value, bytes);
        },
        played_cuda::Activity::memset);
    return result(taken ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

// --- streams and events ----------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    *stream = new CUstream_st;
    return result(cudaSuccess);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
    return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return result(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (stream) stream->drain();
    return result(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    played_cuda::enqueue(
        stream, [state = event->state, number = event->state->latest()] { state->wait(number); },
        played_cuda::Activity::none);
    return result(cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    *event = new CUevent_st;
    return result(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return result(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (event->gpu != (stream ? stream->gpu : current_gpu)) return result(cudaErrorInvalidResourceHandle);
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(event->state->mutex);
        number = ++event->state->recorded;
    }
    played_cuda::enqueue(
        stream, [state = event->state, number] { state->reach(number); }, played_cuda::Activity::none);
    return result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    const std::lock_guard lock(event->state->mutex);
    return result(event->state->happened >= event->state->recorded ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    event->state->wait(event->state->latest());
    return result(cudaSuccess);
}

namespace played_cuda {

bool enqueue(cudaStream_t stream, std::function<void()> work, Activity activity) {
    const bool anywhere = activity == Activity::none || activity == Activity::memcpy;
    if (stream && !anywhere && stream->gpu != current_gpu) {
        last_error = cudaErrorInvalidResourceHandle;
        return false;
    }
    if (observer && activity != Activity::none) {
        work = [activity, tag = current_tag, to = observer.load(), inner = std::move(work)] {
            to->carry_out(activity, tag, inner);
        };
    }
    if (stream) {
        stream->add(std::move(work));
    } else {
        work();
    }
    return true;
}

void observe(Observer* wanted) {
    observer = wanted;
}
void set_tag(std::uint64_t tag) {
    current_tag = tag;
}

void set_machine(const Machine& wanted) {
    const std::lock_guard lock(machine_mutex);
    machine = wanted;
}

std::size_t allocated() {
    const std::lock_guard lock(machine_mutex);
    std::size_t bytes = 0;
    for (const auto& [where, allocation] : allocations) bytes += allocation.bytes;
    return bytes;
}

}  // namespace played_cuda
