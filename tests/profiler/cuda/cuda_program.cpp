// A program that "uses CUDA": it loads the injected library as libcuda would, and the fake CUPTI reports what
// the scenario says. The first argument is the scenario, the second a file for the time from which it counts
// (ns of CLOCK_REALTIME).
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/cupti/abi.h"
#include "tests/profiler/cuda/fake_cupti.h"

namespace cupti = shardscope::profiler::cupti;

namespace {

// --- libraries ---------------------------------------------------------------------------------------------

void* fake_library = nullptr;

template <typename F>
F* in(void* library, const char* name) {
    auto* function = library != nullptr ? reinterpret_cast<F*>(::dlsym(library, name)) : nullptr;
    if (function == nullptr) {
        std::fprintf(stderr, "cuda_program: no %s\n", name);
        std::exit(3);
    }
    return function;
}
#define FAKE(name) in<decltype(name)>(fake_library, #name)

std::int64_t now() {
    timespec t;
    ::clock_gettime(CLOCK_REALTIME, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void sleep_ms(int ms) {
    ::usleep(static_cast<useconds_t>(ms) * 1000);
}

// Does what cuInit() of libcuda does.
void* initialize() {
    const char* path = std::getenv("CUDA_INJECTION64_PATH");
    if (path == nullptr) return nullptr;
    void* library = ::dlopen(path, RTLD_LAZY);
    in<int()>(library, "InitializeInjection")();
    return library;
}

void open_fake() {
    const char* name = std::getenv("FAKE_CUPTI_NAME");
    fake_library = ::dlopen(name != nullptr ? name : "libcupti.so.13", RTLD_LAZY);
}

// --- what happens ------------------------------------------------------------------------------------------

std::uint32_t thread_id() {
    return static_cast<std::uint32_t>(::syscall(SYS_gettid));
}

template <typename Record>
Record of(std::uint32_t kind) {
    Record record;
    std::memset(&record, 0, sizeof record);
    record.kind = kind;
    return record;
}

int emit_api(int lane, const char* name, std::uint32_t correlation, std::int64_t start, std::int64_t end,
             std::uint32_t tid = thread_id(), std::uint32_t result = 0) {
    auto api = of<cupti::Api>(std::strncmp(name, "cuda", 4) == 0 ? cupti::kKindRuntime : cupti::kKindDriver);
    api.start = static_cast<std::uint64_t>(start);
    api.end = static_cast<std::uint64_t>(end);
    api.pid = static_cast<std::uint32_t>(::getpid());
    api.tid = tid;
    api.correlation = correlation;
    api.result = result;
    return FAKE(fake_emit)(lane, &api, sizeof api, name);
}

int emit_kernel(int lane, const char* name, std::uint32_t correlation, std::int64_t start, std::int64_t end,
                std::uint32_t device = 0) {
    auto kernel = of<cupti::Kernel>(cupti::kKindConcurrentKernel);
    kernel.start = static_cast<std::uint64_t>(start);
    kernel.end = static_cast<std::uint64_t>(end);
    kernel.device = device;
    kernel.context = 1 + device;
    kernel.stream = 7;
    kernel.grid[0] = kernel.grid[1] = kernel.grid[2] = 1;
    kernel.block[0] = kernel.block[1] = kernel.block[2] = 1;
    kernel.correlation = correlation;
    kernel.name = name;
    return FAKE(fake_emit)(lane, &kernel, sizeof kernel, nullptr);
}

void emit_device(std::uint32_t id) {
    auto device = of<cupti::Device>(cupti::kKindDevice);
    device.id = id;
    device.name = "Fake GPU 80GB";
    device.memory = std::uint64_t{80} << 30;
    device.memory_bandwidth = 2'000'000'000;  // kB/s
    device.clock = 1'980'000;                 // kHz
    device.l2_bytes = 50 << 20;
    device.multiprocessors = 132;
    device.compute_major = 9;
    device.warp_threads = 32;
    for (int i = 0; i < 16; ++i) device.uuid[i] = static_cast<std::uint8_t>(i + 16 * id);
    FAKE(fake_emit)(0, &device, sizeof device, nullptr);
    auto context = of<cupti::Context>(cupti::kKindContext);
    context.context = 1 + id;
    context.device = id;
    context.null_stream = 7;
    FAKE(fake_emit)(0, &context, sizeof context, nullptr);
}

// The names of kernels stay valid until the process ends.
std::deque<std::string>& lasting_names() {
    static auto* names = new std::deque<std::string>;
    return *names;
}

constexpr const char* kFill = "_ZN2at6native4fillILi4EfEEvif";  // void at::native::fill<4, float>(int, float)

// One record of each kind, with values that are all different. Times count from t in microseconds.
void every_kind(std::int64_t t) {
    const auto us = [t](std::int64_t n) { return static_cast<std::uint64_t>(t + n * 1000); };
    emit_device(0);
    auto stream = of<cupti::Stream>(cupti::kKindStream);
    stream.context = 1;
    stream.stream = 13;
    stream.priority = static_cast<std::uint32_t>(-1);
    stream.flag = 2;
    FAKE(fake_emit)(0, &stream, sizeof stream, nullptr);

    emit_api(1, "cudaLaunchKernel_v7000", 11, t + 10'000, t + 13'000);
    emit_api(1, "cuLaunchKernel", 12, t + 11'000, t + 12'000);
    emit_api(1, "cudaGetDevice_v3020", 13, t + 14'000, t + 15'000);  // noise
    emit_api(1, "cuCtxGetCurrent", 14, t + 14'000, t + 15'000);      // noise
    emit_api(1, "cudaMalloc_v3020", 15, t + 16'000, t + 17'000, thread_id(), 2);

    auto kernel = of<cupti::Kernel>(cupti::kKindConcurrentKernel);
    kernel.cache_config = 0x21;  // requested 1, got 2
    kernel.registers = 40;
    kernel.start = us(20);
    kernel.end = us(25);
    kernel.context = 1;
    kernel.stream = 13;
    for (int i = 0; i < 3; ++i) {
        kernel.grid[i] = 101 + i;
        kernel.block[i] = 32 + i;
        kernel.cluster[i] = static_cast<std::uint32_t>(2 + i);
    }
    kernel.static_shared = 1024;
    kernel.dynamic_shared = 2048;
    kernel.local_per_thread = 16;
    kernel.local_total = 1 << 20;
    kernel.local_total_64 = std::uint64_t{5} << 32;
    kernel.correlation = 11;
    kernel.grid_id = 77;
    kernel.name = kFill;
    kernel.launch_type = 1;
    kernel.shared_executed = 4096;
    kernel.graph_node = 0x100000002;
    kernel.graph = 3;
    kernel.shared_limit_config = 1;
    kernel.cluster_policy = 1;
    kernel.max_potential_cluster = 8;
    kernel.max_active_clusters = 16;
    FAKE(fake_emit)(0, &kernel, sizeof kernel, nullptr);

    auto copy = of<cupti::Memcpy>(cupti::kKindMemcpy);
    copy.copy_kind = 1;
    copy.src_kind = 2;
    copy.dst_kind = 3;
    copy.bytes = 4096;
    copy.start = us(30);
    copy.end = us(31);
    copy.context = 1;
    copy.stream = 13;
    copy.correlation = 21;
    copy.copies = 5;
    FAKE(fake_emit)(0, &copy, sizeof copy, nullptr);

    auto peer = of<cupti::MemcpyPeer>(cupti::kKindMemcpy2);
    peer.copy_kind = 10;
    peer.src_kind = peer.dst_kind = 3;
    peer.bytes = 8192;
    peer.start = us(32);
    peer.end = us(34);
    peer.context = 1;
    peer.stream = 13;
    peer.dst_device = 1;
    peer.src_context = 1;
    peer.dst_context = 2;
    peer.correlation = 22;
    FAKE(fake_emit)(0, &peer, sizeof peer, nullptr);

    auto set = of<cupti::Memset>(cupti::kKindMemset);
    set.value = 255;
    set.bytes = 512;
    set.start = us(35);
    set.end = us(36);
    set.context = 1;
    set.stream = 13;
    set.correlation = 23;
    set.mem_kind = 3;
    FAKE(fake_emit)(0, &set, sizeof set, nullptr);

    auto sync = of<cupti::Synchronization>(cupti::kKindSynchronization);
    sync.type = 4;
    sync.start = us(40);
    sync.end = us(44);
    sync.correlation = 24;
    sync.context = 1;
    sync.stream = sync.event = cupti::kNotApplicable;
    FAKE(fake_emit)(0, &sync, sizeof sync, nullptr);

    auto event = of<cupti::CudaEvent>(cupti::kKindCudaEvent);
    event.correlation = 25;
    event.context = 1;
    event.stream = 13;
    event.event = 9;
    event.device_time = us(45);
    event.event_sync = 99;
    FAKE(fake_emit)(0, &event, sizeof event, nullptr);

    for (const bool is_free : {false, true}) {
        auto memory = of<cupti::Memory>(cupti::kKindMemory2);
        memory.operation = is_free ? 2 : 1;
        memory.mem_kind = 3;
        memory.correlation = is_free ? 27 : 26;
        memory.address = 0x7000000000;
        memory.bytes = 1 << 20;
        memory.time = us(is_free ? 60 : 50);
        memory.pc = 0x1234;
        memory.pid = static_cast<std::uint32_t>(::getpid());
        memory.context = 1;
        memory.stream = 13;
        memory.pool_type = cupti::kPoolLocal;
        memory.pool_address = 0x55;
        memory.pool_threshold = 1;
        memory.pool_size = 2 << 20;
        memory.pool_used = 1 << 20;
        FAKE(fake_emit)(0, &memory, sizeof memory, nullptr);
    }

    auto pool = of<cupti::MemoryPool>(cupti::kKindMemoryPool);
    pool.operation = 3;
    pool.type = 1;
    pool.correlation = 28;
    pool.min_bytes_to_keep = 100;
    pool.address = 0x55;
    pool.size = 200;
    pool.threshold = 300;
    pool.time = us(61);
    pool.used = 150;
    FAKE(fake_emit)(0, &pool, sizeof pool, nullptr);

    auto overhead = of<cupti::Overhead>(cupti::kKindOverhead);
    overhead.overhead = 5u << 16;
    overhead.object = cupti::kObjectThread;
    overhead.object_id[0] = static_cast<std::uint32_t>(::getpid());
    overhead.object_id[1] = thread_id();
    overhead.start = us(70);
    overhead.end = us(75);
    overhead.correlation = 29;
    FAKE(fake_emit)(0, &overhead, sizeof overhead, nullptr);
}

// CUPTI reports a graph as a whole or kernel by kernel, as requested.
void graph(std::int64_t t) {
    emit_device(0);
    emit_api(1, "cudaGraphLaunch_v10000", 5, t, t + 1000);
    auto whole = of<cupti::GraphTrace>(cupti::kKindGraphTrace);
    whole.correlation = 5;
    whole.start = static_cast<std::uint64_t>(t + 2000);
    whole.end = static_cast<std::uint64_t>(t + 9000);
    whole.context = 1;
    whole.stream = 13;
    whole.graph = 4;
    if (FAKE(fake_emit)(0, &whole, sizeof whole, nullptr) == 0) emit_kernel(0, kFill, 5, t + 2000, t + 9000);
}

// Four threads with 5,000 launches each. Kernels arrive before their calls and in no order; every 100th has
// no times, every 100th ends before it starts.
void many(std::int64_t t) {
    emit_device(0);
    std::atomic<std::uint32_t> correlation{1};
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int batch = 0; batch < 50; ++batch) {
                const std::uint32_t first = correlation.fetch_add(100);
                for (std::uint32_t i = 100; i-- > 0;) {
                    const std::int64_t start = t + std::int64_t{first + i} * 100;
                    const char* name = i % 2 == 0 ? kFill : "plain_kernel";
                    const bool untimed = i == 7, reversed = i == 8;
                    emit_kernel(2 + thread, name, first + i, untimed ? 0 : start + 50,
                                untimed    ? 0
                                : reversed ? start
                                           : start + 90);
                }
                if (batch % 10 == 9) FAKE(fake_complete)(2 + thread);
                for (std::uint32_t i = 0; i < 100; ++i) {
                    const std::int64_t start = t + std::int64_t{first + i} * 100;
                    emit_api(6 + thread, "cudaLaunchKernel_v7000", first + i, start, start + 40);
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// Uses more buffers than the library keeps.
void refused(std::int64_t t) {
    int got = 0;
    for (int i = 0; i < 40; ++i) got += FAKE(fake_take_buffer)();
    const bool is_old = std::getenv("FAKE_CUPTI_VERSION") != nullptr;
    std::printf("%d of 40\n", got);
    if (is_old ? got != 40 : got > 32) std::exit(4);
    emit_kernel(0, kFill, 1, t, t + 1000);  // finds no buffer, except with an old version
    FAKE(fake_drop)(6);
}

// The child must not touch CUPTI and must end like a normal program.
void forks(std::int64_t t) {
    emit_device(0);
    emit_kernel(0, kFill, 1, t, t + 1000);
    const pid_t child = ::fork();
    if (child == 0) std::exit(7);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) std::exit(5);
    const std::int64_t after = now();
    emit_kernel(0, kFill, 2, after, after + 1000);
}

// Ten launches before, in and after each of the ranges 0..4. The device lags by 10 ms, so a step's work runs
// after the step; calls arrive after the kernels that they launched.
void steps(void* library) {
    auto* push = in<void(const char*)>(library, "shardscope_range_push");
    auto* pop = in<void()>(library, "shardscope_range_pop");
    emit_device(0);
    std::uint32_t correlation = 1;
    struct Launch {
        std::uint32_t correlation;
        std::int64_t start;
        std::string name;
    };
    std::vector<Launch> launches;
    auto& names = lasting_names();
    const auto launch = [&](const std::string& name) {
        names.push_back(name);
        for (int i = 0; i < 10; ++i) launches.push_back({correlation++, now(), name});
    };
    const auto deliver = [&](bool kernels) {
        for (const Launch& one : launches) {
            const char* name = nullptr;
            for (const std::string& known : names) {
                if (known == one.name) name = known.c_str();
            }
            if (kernels) {
                emit_kernel(2, name, one.correlation, one.start + 10'000'000, one.start + 10'001'000);
            } else {
                emit_api(3, "cudaLaunchKernel_v7000", one.correlation, one.start, one.start + 10);
            }
        }
    };
    for (int step = 0; step < 5; ++step) {
        launch("before_" + std::to_string(step));
        push(("ProfilerStep#" + std::to_string(step)).c_str());
        launch("in_" + std::to_string(step));
        pop();
        sleep_ms(3);
    }
    launch("after");
    deliver(true);
    FAKE(fake_complete)(2);
    sleep_ms(1500);  // a flush happens before the calls arrive
    deliver(false);
}

// cudaProfilerStart and -Stop surround the second of three launches.
void profiler_api() {
    emit_device(0);
    std::uint32_t correlation = 1;
    const auto launch = [&](const char* name) {
        const std::int64_t start = now();
        emit_api(3, "cudaLaunchKernel_v7000", correlation, start, start + 10);
        emit_kernel(2, name, correlation++, start + 10'000'000, start + 10'001'000);
        sleep_ms(2);
    };
    launch("before");
    FAKE(fake_call)(cupti::kDomainRuntime, "cudaProfilerStart_v4000", cupti::kApiEnter);
    FAKE(fake_call)(cupti::kDomainDriver, "cuProfilerStart", cupti::kApiEnter);
    FAKE(fake_call)(cupti::kDomainDriver, "cuProfilerStart", cupti::kApiExit);
    FAKE(fake_call)(cupti::kDomainRuntime, "cudaProfilerStart_v4000", cupti::kApiExit);
    launch("inside");
    FAKE(fake_call)(cupti::kDomainRuntime, "cudaProfilerStop_v4000", cupti::kApiEnter);
    FAKE(fake_call)(cupti::kDomainRuntime, "cudaProfilerStop_v4000", cupti::kApiExit);
    launch("after");
}

// A launch every 10 ms; its name contains the time.
void goes_on(std::int64_t t, int ms) {
    emit_device(0);
    auto& names = lasting_names();
    for (std::uint32_t i = 1; now() < t + std::int64_t{ms} * 1'000'000; ++i) {
        const std::int64_t start = now();
        names.push_back("at_" + std::to_string((start - t) / 1'000'000));
        emit_api(3, "cudaLaunchKernel_v7000", i, start, start + 1000);
        emit_kernel(2, names.back().c_str(), i, start + 2000, start + 3000);
        sleep_ms(10);
    }
}

// One kernel on each of two devices.
void two_devices(std::int64_t t) {
    emit_device(0);
    emit_device(1);
    for (std::uint32_t device = 0; device < 2; ++device) {
        emit_api(1, "cudaLaunchKernel_v7000", 5 + device, t, t + 1000);
        emit_kernel(0, kFill, 5 + device, t + 2000, t + 3000, device);
    }
}

}  // namespace

// A forked child does not have the worker thread, whose exit handlers a leak checker would then miss.
extern "C" const char*
__asan_default_options() {  // NOLINT(bugprone-reserved-identifier): the sanitizer's name
    return "detect_leaks=0";
}

int main(int argc, char** argv) {
    const std::string scenario = argc > 1 ? argv[1] : "";
    if (scenario == "real") {  // uses the installed CUPTI
        initialize();
        std::puts("ran on");
        return 0;
    }
    open_fake();
    void* library = initialize();
    if (fake_library == nullptr || library == nullptr) return 3;
    const std::int64_t t = now();
    if (argc > 2) {
        std::FILE* file = std::fopen(argv[2], "w");
        if (file == nullptr) return 3;
        std::fprintf(file, "%lld\n", static_cast<long long>(t));
        std::fclose(file);
    }
    if (scenario == "nothing") return 0;
    if (scenario == "every_kind") every_kind(t);
    if (scenario == "graph") graph(t);
    if (scenario == "many") many(t);
    if (scenario == "refused") refused(t);
    if (scenario == "forks") forks(t);
    if (scenario == "steps") steps(library);
    if (scenario == "profiler_api") profiler_api();
    if (scenario == "two_devices") two_devices(t);
    if (scenario == "goes_on") goes_on(t, 1500);
    if (scenario == "outlives") {
        goes_on(t, 2500);
        std::printf("%d kinds\n", FAKE(fake_counts)().enabled_kinds);
    }
    if (scenario == "crashes") {
        goes_on(t, 2500);
        ::_exit(9);
    }
    // The last kernel never completes, so that only a forced flush returns the buffer.
    if (scenario == "holds") {
        FAKE(fake_hold)(2, 1);
        goes_on(t, 100);
    }
    const FakeCounts counts = FAKE(fake_counts)();
    if (counts.not_zeroed != 0 || counts.wrong_size != 0 || counts.thread_id_type != cupti::kThreadIdSystem) {
        return 6;
    }
    return 0;
}
