// The CUDA end of the injected library: libcuda calls InitializeInjection() when the program starts to use
// CUDA. From then on CUPTI fills buffers in the program's threads, and one thread of ours writes their
// records to its log (cuda_activity.h); it asks CUPTI for finished records each second, and for the rest when
// the program ends.
// No lock of ours is held while CUPTI is called, and none is taken in CUPTI's callbacks, since CUPTI holds
// its own then. Nothing here is ever destroyed, since CUPTI's threads outlive main().
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/old_symbols.h"
#include "profiler/cupti/session.h"
#include "profiler/inject/cuda_activity.h"
#include "profiler/inject/process_log.h"
#include "profiler/inject/window.h"

namespace shardscope::profiler::inject {

namespace {

constexpr std::int64_t kLookNs = 20'000'000;          // how often the worker looks for buffers and turns
constexpr std::int64_t kFlushNs = 1'000'000'000;      // how much a crash can lose
constexpr std::int64_t kLastWaitNs = 10'000'000'000;  // how long the end of the program waits for the worker
constexpr int kFlushesAfterStop = 2;                  // immediately, and a second later

constexpr std::uint32_t kKinds[] = {
    cupti::kKindDevice,           cupti::kKindContext, cupti::kKindStream,
    cupti::kKindConcurrentKernel,  // not KERNEL, which makes kernels run one after the other
    cupti::kKindMemcpy,           cupti::kKindMemcpy2, cupti::kKindMemset,     cupti::kKindSynchronization,
    cupti::kKindCudaEvent,        cupti::kKindMemory2, cupti::kKindMemoryPool, cupti::kKindOverhead,
    cupti::kKindGraphTrace,  // the last: only if whole graphs are recorded
};

// When recording was turned on and off, passed to the worker by the threads in which that happened.
struct Turns {
    static constexpr std::uint32_t kMost = 256;
    struct Turn {
        std::atomic<std::int64_t> time{0};  // RealTime; 0: not written yet
        std::atomic<bool> on{false};
    };
    Turn turns[kMost];
    std::atomic<std::uint32_t> written{0};
    std::uint32_t read = 0;  // worker
};

struct Cuda {
    std::atomic<bool> started{false};
    std::atomic<bool> dead{false};  // in a forked child
    pid_t pid = 0;
    cupti::CuptiSession session;
    CudaActivity activity;
    Turns turns;
    std::uint32_t runtime_reset = 0, runtime_start = 0, runtime_stop = 0, driver_start = 0, driver_stop = 0;
    bool enabled = false;  // used by the worker, and before the worker runs

    std::atomic<std::uint32_t> calls_for_worker{0};  // a count; its changes wake the worker
    std::atomic<bool> ending{false};                 // the program is ending
    std::atomic<std::uint32_t> ended{1};             // 0 while the worker runs
};
constinit Cuda cuda;

// Waits until the word is no longer `value`, at most for `ns`.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t ns) {
    const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &time, nullptr, 0);
}

void set_and_wake(std::atomic<std::uint32_t>& word, std::uint32_t value) {
    word.store(value, std::memory_order_release);
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void call_worker() {
    set_and_wake(cuda.calls_for_worker, cuda.calls_for_worker.load(std::memory_order_relaxed) + 1);
}

// Sends the user a notice; `severity` is the number of a traces::schema::Severity.
void notice(std::uint64_t severity, const char* text) {
    write_text(record_kind(CudaKind::notice), 0, severity, narrow_text(text));
}
constexpr std::uint64_t kWarning = 2;

void notice_missing(const char* why) {
    char text[600];
    ::snprintf(text, sizeof text, "kernels and copies are not in the trace: %s", why);
    notice(kWarning, text);
}

// --- in the program's threads, called by CUPTI -------------------------------------------------------------

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
    cuda.session.request(buffer, size, max_records, cuda.dead.load(std::memory_order_relaxed));
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    if (!cuda.dead.load(std::memory_order_relaxed)) cuda.session.complete(buffer, valid, true);
}

void note_turn(bool) {
    const std::uint32_t place = cuda.turns.written.fetch_add(1, std::memory_order_relaxed);
    Turns::Turn& turn = cuda.turns.turns[place % Turns::kMost];
    turn.on.store(recording(), std::memory_order_relaxed);
    turn.time.store(RealTime::now().ns, std::memory_order_release);
}

void called(void*, int domain, std::uint32_t number, const void* data) {
    if (cuda.dead.load(std::memory_order_relaxed)) return;
    if (domain == cupti::kDomainResource) {
        if (number == cupti::kContextDestroyStarting) cuda.session.cupti().ActivityFlushAll(0);
        return;
    }
    const bool enters = static_cast<const cupti::CallbackData*>(data)->site == cupti::kApiEnter;
    const bool is_driver = domain == cupti::kDomainDriver;
    if (number == (is_driver ? cuda.driver_start : cuda.runtime_start)) {
        if (!enters) set_window(WindowKind::cuda_profiler, true);
    } else if (number == (is_driver ? cuda.driver_stop : cuda.runtime_stop)) {
        if (!enters) return;
        set_window(WindowKind::cuda_profiler, false);
        cuda.session.cupti().ActivityFlushAll(0);
    } else if (!is_driver && number == cuda.runtime_reset && enters) {
        cuda.session.cupti().ActivityFlushAll(0);
    }
}

// --- starting ----------------------------------------------------------------------------------------------

// The kinds of this session.
std::span<const std::uint32_t> kinds() {
    const bool whole_graphs = (session()->sources & kSourceWholeGraphs) != 0;
    return {kKinds, std::size(kKinds) - (whole_graphs ? 0 : 1)};
}

void enable() {
    cuda.enabled = true;
    char why[512];
    // Without kernels there is nothing to see. Other kinds that a library or device lacks are omitted.
    const auto is_needed = [](std::uint32_t kind) { return kind == cupti::kKindConcurrentKernel; };
    if (!cuda.session.enable(kinds(), is_needed, "may this user profile the GPU?", why)) notice_missing(why);
}

// --- the worker --------------------------------------------------------------------------------------------

void take_turns() {
    Turns& turns = cuda.turns;
    const std::uint32_t written = turns.written.load(std::memory_order_relaxed);
    if (written - turns.read > Turns::kMost) turns.read = written - Turns::kMost;
    for (; turns.read != written; ++turns.read) {
        Turns::Turn& turn = turns.turns[turns.read % Turns::kMost];
        const std::int64_t time = turn.time.exchange(0, std::memory_order_acquire);
        if (time == 0) return;  // being written
        cuda.activity.launches().turn(RealTime(time), turn.on.load(std::memory_order_relaxed));
    }
    // No thread of this process reports that the tool has turned recording on or off.
    if (cuda.activity.launches().is_on() != recording()) {
        cuda.activity.launches().turn(RealTime::now(), recording());
    }
}

void take_buffers() {
    const auto begin = [](bool any) {
        if (any) CudaActivity::write_clock();
        take_turns();
    };
    cuda.session.take_buffers(begin, [](const auto& record) { cuda.activity.convert(record); });
}

void flush() {
    cuda.session.flush(0, &take_buffers);
    cuda.activity.write_loss(cuda.session.dropped());
}

// Whether the tool records, regardless of the window.
bool tool_records() {
    return session()->state.load(std::memory_order_relaxed) == SessionState::recording;
}

void* work(void*) {
    ::prctl(PR_SET_NAME, "shardscope-cuda");
    CudaActivity::write_clock();
    std::int64_t flushed = monotonic_ns();
    int flushes_after_stop = 0;
    std::uint32_t calls = 0;
    // If CUPTI cannot be turned off, its buffers must be emptied until the program ends.
    while (!cuda.ending.load(std::memory_order_acquire) &&
           (flushes_after_stop < kFlushesAfterStop || cuda.enabled)) {
        wait_while(cuda.calls_for_worker, calls, kLookNs);
        calls = cuda.calls_for_worker.load(std::memory_order_acquire);
        if (!cuda.enabled && tool_records()) enable();
        cuda.session.provide_spare();
        take_buffers();
        const std::int64_t now = monotonic_ns();
        const bool has_stopped = stopped();
        if (now - flushed < kFlushNs && !(has_stopped && flushes_after_stop == 0)) continue;
        flush();
        cuda.activity.settle(false);
        flushed = now;
        if (has_stopped && ++flushes_after_stop == kFlushesAfterStop && cuda.enabled)
            cuda.enabled = !cuda.session.disable(kinds());
    }
    // end() has forced a flush before it woke this thread.
    flush();
    cuda.activity.settle(true);
    cuda.activity.write_loss(cuda.session.dropped());
    set_and_wake(cuda.ended, 1);
    return nullptr;
}

bool start_worker() {
    if (&::pthread_create == nullptr || &::pthread_detach == nullptr) return false;
    // Signals are left to the program.
    sigset_t all, before;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool runs = ::pthread_create(&thread, nullptr, &work, nullptr) == 0;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (runs) ::pthread_detach(thread);
    return runs;
}

// The program calls exit(), or this library is unloaded: the last moment in which CUDA still works.
void end() {
    if (cuda.dead.load(std::memory_order_acquire) || cuda.pid != ::getpid()) return;
    if (cuda.ended.load(std::memory_order_acquire) != 0) return;
    const int saved = errno;
    cuda.session.flush_only(cupti::kFlushForced);
    cuda.ending.store(true, std::memory_order_release);
    call_worker();
    const std::int64_t until = monotonic_ns() + kLastWaitNs;
    while (cuda.ended.load(std::memory_order_acquire) == 0) {
        const std::int64_t left = until - monotonic_ns();
        if (left <= 0) break;
        wait_while(cuda.ended, 0, left);
    }
    errno = saved;
}

// CUDA does not work in a forked child, and neither do CUPTI and the worker.
void forget_cuda_in_child() {
    if (cuda.started.load(std::memory_order_relaxed)) cuda.dead.store(true, std::memory_order_relaxed);
}

void start() {
    if (!join_session() || (session()->sources & kSourceCuda) == 0) return;
    if (cuda.started.exchange(true)) return;
    cuda.pid = ::getpid();
    char why[512];
    if (!cuda.session.open(&called, "turn it off, or record with --no-cuda", &is_wanted_call, why))
        return notice_missing(why);
    const Cupti& library = cuda.session.cupti();
    CudaCalls& calls = cuda.session.calls();
    cuda.activity.init(library, calls);
    cuda.activity.launches().begin(recording());
    listen_to_window(&note_turn);
    if (library.SetThreadIdType != nullptr) library.SetThreadIdType(cupti::kThreadIdSystem);
    if (library.ActivityEnableCudaEventDeviceTimestamps != nullptr)
        library.ActivityEnableCudaEventDeviceTimestamps(1);
    library.ActivityRegisterCallbacks(&buffer_requested, &buffer_completed);
    const auto listen_to = [&](int domain, const char* name, std::uint32_t& number) {
        number = calls.number_of(domain, name);
        cuda.session.enable_callback(domain, number);
    };
    listen_to(cupti::kDomainRuntime, "cudaDeviceReset_v3020", cuda.runtime_reset);
    listen_to(cupti::kDomainRuntime, "cudaProfilerStart_v4000", cuda.runtime_start);
    listen_to(cupti::kDomainRuntime, "cudaProfilerStop_v4000", cuda.runtime_stop);
    listen_to(cupti::kDomainDriver, "cuProfilerStart", cuda.driver_start);
    listen_to(cupti::kDomainDriver, "cuProfilerStop", cuda.driver_stop);
    cuda.session.enable_callback(cupti::kDomainResource, cupti::kContextDestroyStarting);
    ::pthread_atfork(nullptr, nullptr, &forget_cuda_in_child);
    // A recording that is to begin later costs nothing until then; but a window that the program itself opens
    // must find everything running.
    if (tool_records()) enable();
    cuda.ended.store(0, std::memory_order_release);
    if (!start_worker()) {
        cuda.ended.store(1, std::memory_order_release);
        cuda.session.close();
        return notice_missing("no thread could be started");
    }
    ::atexit(&end);
}

}  // namespace
}  // namespace shardscope::profiler::inject

// libcuda calls this in cuInit(), in the library that CUDA_INJECTION64_PATH names.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    const int saved = errno;
    shardscope::profiler::inject::start();
    errno = saved;
    return 1;
}
