// The functions of the CUDA runtime that the trainer needs, simulated on the CPU: device memory is on the
// heap. Each created stream has its own thread, which executes what is enqueued in order, so that unordered
// work really happens in any order; the null stream is synchronous with the host: enqueued work is complete
// when the call returns, and an exception of a kernel reaches the caller. After a failure in another stream
// every call returns it, as on a device. A stream and an event belong to the GPU that was current when they
// were created: a kernel or a memset in a stream of a GPU that is not current, and an event recorded in a
// stream of another GPU than its own, are refused (CUDA C++ Programming Guide, stream and event behavior).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

enum cudaError_t : int {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorLaunchFailure = 719,
    cudaErrorUnknown = 999,
};
struct CUstream_st;
using cudaStream_t = CUstream_st*;
struct CUevent_st;
using cudaEvent_t = CUevent_st*;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;
inline constexpr unsigned cudaHostAllocPortable = 1;

struct cudaDeviceProp {
    char name[256];
    std::size_t totalGlobalMem;
    int multiProcessorCount, major, minor;
    int pciBusID, pciDeviceID, pciDomainID;
};

const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest);
cudaError_t cudaDeviceSynchronize();

cudaError_t cudaMalloc(void** address, std::size_t bytes);
cudaError_t cudaFree(void* address);
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* address);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);

namespace played_cuda {

enum class Activity { kernel, memcpy, memset, none };

// Enqueues work on a stream. Returns false if the stream belongs to another GPU and the work is a kernel or a
// memset: the work is dropped, and cudaGetLastError reports it.
bool enqueue(cudaStream_t stream, std::function<void()> work, Activity activity = Activity::kernel);

// Is notified, on the stream's thread, of work that was enqueued while the enqueuing thread's tag was `tag`.
class Observer {
  public:
    virtual ~Observer() = default;
    virtual void carry_out(Activity activity, std::uint64_t tag, const std::function<void()>& work) = 0;
};
void observe(Observer* observer);  // null: none
void set_tag(std::uint64_t tag);   // of the calling thread

// Configures the simulated machine: GPUs with `memory` bytes each, and short pseudo-random sleeps before
// pieces of work (seed 0: none).
struct Machine {
    int gpus = 1;
    std::size_t memory = std::size_t{1} << 30;
    std::uint64_t delay_seed = 0;
};
void set_machine(const Machine& machine);
// Bytes of device memory that are allocated, on all GPUs.
std::size_t allocated();

}  // namespace played_cuda
