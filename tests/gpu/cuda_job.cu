// A program whose CUDA calls are all known, for run.sh: it prints its counts, one `name=count` per line. The
// first argument chooses the scenario.
//
//   work     everything, then exit() without waiting for the last kernel
//   crash    a kernel every 10 ms for 3.5 s, then _exit()
//   windows  three steps, and a part between cudaProfilerStart() and -Stop()
//   launches as many launches as the second argument says; prints the ns of each
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        const cudaError_t result = (call);                                                 \
        if (result != cudaSuccess) {                                                       \
            std::fprintf(stderr, "cuda_job: %s: %s\n", #call, cudaGetErrorString(result)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (false)

namespace gpu_job {

template <typename T>
__global__ void scale(T* data, int count, T by) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] *= by;
}

__global__ void spin(long long cycles) {
    const long long until = clock64() + cycles;
    while (clock64() < until) {
    }
}

}  // namespace gpu_job

extern "C" __global__ void in_graph(float* data) {
    data[threadIdx.x] += 1;
}

namespace {

constexpr int kCount = 1 << 20;
constexpr size_t kBytes = kCount * sizeof(float);

void launch_scale(float* data, cudaStream_t stream) {
    gpu_job::scale<float><<<kCount / 256, 256, 0, stream>>>(data, kCount, 2.0f);
    CHECK(cudaGetLastError());
}

void work() {
    nvtxRangePushA("all work");
    float *device = nullptr, *host = nullptr;
    CHECK(cudaMalloc(&device, 64 << 20));
    CHECK(cudaMallocHost(&host, kBytes));
    std::memset(host, 0, kBytes);
    cudaStream_t streams[2];
    for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(device, 0, kBytes, streams[0]));
    CHECK(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, streams[0]));
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event, streams[0]));
    CHECK(cudaStreamWaitEvent(streams[1], event, 0));
    for (int i = 0; i < 100; ++i) launch_scale(device, streams[i % 2]);
    CHECK(cudaStreamSynchronize(streams[0]));
    CHECK(cudaStreamSynchronize(streams[1]));
    CHECK(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, streams[0]));
    CHECK(cudaMemcpyAsync(device + kCount, device, kBytes, cudaMemcpyDeviceToDevice, streams[0]));
    CHECK(cudaDeviceSynchronize());

    // Threads that launch kernels of their own.
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int i = 0; i < 50; ++i) launch_scale(device, streams[thread % 2]);
        });
    }
    for (auto& thread : threads) thread.join();

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 5; ++i) in_graph<<<1, 32, 0, streams[0]>>>(device);
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(executable, streams[0]));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(device));
    nvtxRangePop();
    std::printf("scale=300\nin_graph=15\nhtod=%zu\ndtoh=%zu\ndtod=%zu\nmemset=%zu\nmalloc=%d\nspin=1\n",
                kBytes, kBytes, kBytes, kBytes, 64 << 20);
    std::fflush(stdout);
    // Only the flush at the end waits for this kernel.
    gpu_job::spin<<<1, 1, 0, streams[0]>>>(20'000'000);
}

void crash() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3500);
    for (int i = 0; std::chrono::steady_clock::now() < until; ++i) {
        gpu_job::spin<<<1, 1>>>(1000);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::_exit(9);
}

void windows() {
    float* device = nullptr;
    CHECK(cudaMalloc(&device, kBytes));
    for (int step = 0; step < 3; ++step) {
        char name[32];
        std::snprintf(name, sizeof name, "ProfilerStep#%d", step);
        nvtxRangePushA(name);
        for (int i = 0; i < 10; ++i) launch_scale(device, nullptr);  // continues after the step's end
        nvtxRangePop();
        for (int i = 0; i < 5; ++i) gpu_job::spin<<<1, 1>>>(100'000);
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    for (int i = 0; i < 7; ++i) launch_scale(device, nullptr);
    CHECK(cudaProfilerStop());
    for (int i = 0; i < 5; ++i) launch_scale(device, nullptr);
    CHECK(cudaDeviceSynchronize());
}

void launches(long count) {
    gpu_job::spin<<<1, 1>>>(1);
    CHECK(cudaDeviceSynchronize());
    const auto start = std::chrono::steady_clock::now();
    for (long i = 0; i < count; ++i) gpu_job::spin<<<1, 1>>>(1);
    CHECK(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    std::printf("%.0f\n", took.count() / static_cast<double>(count));
}

}  // namespace

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "work";
    if (std::strcmp(way, "crash") == 0)
        crash();
    else if (std::strcmp(way, "windows") == 0)
        windows();
    else if (std::strcmp(way, "launches") == 0)
        launches(argc > 2 ? std::atol(argv[2]) : 100'000);
    else
        work();
    return 0;
}
