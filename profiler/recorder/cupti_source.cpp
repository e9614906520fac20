// CUPTI fills buffers in the threads that call CUDA; one thread of ours empties them and asks for what is
// finished. No lock of ours is taken where CUPTI calls us, since it holds its own then.
#include "profiler/recorder/cupti_source.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include "profiler/base/quiet_thread.h"
#include "profiler/cupti/buffers.h"
#include "profiler/cupti/calls.h"
#include "profiler/cupti/clock_pair.h"
#include "profiler/cupti/subscription.h"
#include "profiler/recorder/cupti_join.h"
#include "traces/store/grouped.h"

namespace shardscope::profiler {
namespace {

using cupti::CudaBuffers;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};    // how often the worker looks for buffers
constexpr std::chrono::milliseconds kFlush{500};  // how often it asks for what is finished

constexpr std::uint32_t kKinds[] = {
    cupti::kKindConcurrentKernel,  // not KERNEL, which makes kernels run one after the other
    cupti::kKindMemcpy, cupti::kKindMemcpy2, cupti::kKindMemset, cupti::kKindExternalCorrelation};

// CUPTI's callbacks take no object of ours, and may be called after a source is gone.
constinit CudaBuffers buffers;
constinit std::atomic<bool> in_use{false};      // by a source
constinit std::atomic<bool> asked{false};       // CUPTI has requested a buffer: there is something to flush
constinit std::atomic<bool> may_refuse{false};  // older libraries crash when a buffer is refused

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
    asked.store(true, std::memory_order_relaxed);
    *buffer = buffers.request(may_refuse.load(std::memory_order_relaxed));
    *size = *buffer != nullptr ? CudaBuffers::kBytes : 0;
    *max_records = 0;  // as many as fit
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    if (buffer == nullptr) return;
    if (in_use.load(std::memory_order_acquire)) {
        buffers.give_back(buffer, valid);
    } else {
        buffers.take_back(buffer, valid);
    }
}

void called(void*, int, std::uint32_t, const void*) {}  // no callback is enabled

// External ids come with the records of calls; only calls that start work on a device are wanted.
bool is_wanted(int domain, const char* name) {
    const bool is_runtime = domain == cupti::kDomainRuntime;
    for (const char* start : {"cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch"}) {
        // "cuLaunchKernel": the driver's have the shorter prefix.
        if (is_runtime ? cupti::begins_with(name, start)
                       : cupti::begins_with(name, "cu") && cupti::begins_with(name + 2, start + 4)) {
            return true;
        }
    }
    return false;
}

}  // namespace

struct CuptiSource::Impl {
    explicit Impl(Recorder& to) : recorder(to), rows(to) {}

    bool start(std::string& why);
    bool enable(char (&why)[512]);
    void disable();
    void work();
    void flush(std::uint32_t flag);
    void take_buffers();
    void read_clocks();
    void stop();
    void tell_losses();

    Recorder& recorder;
    cupti::Cupti cupti;
    cupti::CudaCalls calls;
    CuptiRows rows;
    CuptiJoin join{cupti, traces::global_pid(::getpid()), rows};
    void* subscriber = nullptr;
    const pid_t owner = ::getpid();
    std::size_t dropped = 0;  // by CUPTI
    CuptiJoin::Counts counts;

    std::mutex stop_mutex;
    std::condition_variable stop_changed;
    bool stopping = false;
    std::thread worker;
    bool finished = false;
};

// --- starting --------------------------------------------------------------------------------------------

std::unique_ptr<CuptiSource> CuptiSource::open(Recorder& recorder, std::string& why) {
    if (in_use.exchange(true)) {
        why = "kernels and copies are not in the trace: another trace of this process has CUPTI";
        return nullptr;
    }
    auto impl = std::make_unique<Impl>(recorder);
    std::string reason;
    if (impl->start(reason)) return std::unique_ptr<CuptiSource>(new CuptiSource(std::move(impl)));
    in_use = false;
    why = "kernels and copies are not in the trace: " + reason;
    return nullptr;
}

CuptiSource::CuptiSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

bool CuptiSource::Impl::start(std::string& why) {
    char reason[512] = {};
    if (!cupti::open_cupti(cupti, reason) ||
        !cupti::subscribe(cupti, &called, "turn it off", &subscriber, reason)) {
        why = reason;
        return false;
    }
    may_refuse = cupti.version >= cupti::kVersion12_9;
    calls.init(cupti, &is_wanted);
    cupti::promise_zeroed_buffers(cupti);
    cupti.ActivityRegisterCallbacks(&buffer_requested, &buffer_completed);
    read_clocks();
    bool is_on = enable(reason);
    if (!is_on) why = reason;
    try {
        if (is_on) worker = start_quietly([this] { work(); });
    } catch (const std::system_error& error) {
        why = fmt::format("no thread could be started ({})", error.code().message());
        is_on = false;
    }
    if (is_on) return true;
    disable();
    cupti.Unsubscribe(subscriber);
    return false;
}

bool CuptiSource::Impl::enable(char (&why)[512]) {
    for (const std::uint32_t kind : kKinds) {
        const cupti::Result result = cupti.ActivityEnable(kind);
        // Copies between GPUs are not missed if there is only one GPU.
        if (result == cupti::kSuccess || kind == cupti::kKindMemcpy2) continue;
        cupti::describe_failure(cupti, "cuptiActivityEnable", result,
                                "is the driver new enough, and may this user profile the GPU?", why);
        return false;
    }
    calls.enable(cupti);
    return true;
}

void CuptiSource::Impl::disable() {
    // 13.0 without its first update can hang in here.
    if (cupti.version == cupti::kVersion13_0) return;
    for (const std::uint32_t kind : kKinds) cupti.ActivityDisable(kind);
    calls.disable(cupti);
}

// --- the threads that launch -----------------------------------------------------------------------------

void CuptiSource::begin(const DeviceWork& work) {
    impl_->cupti.ActivityPushExternalCorrelationId(cupti::kExternalCustom0, WorkPlace::pack(work));
}

void CuptiSource::end() {
    std::uint64_t last = 0;
    impl_->cupti.ActivityPopExternalCorrelationId(cupti::kExternalCustom0, &last);
}

// --- the worker ------------------------------------------------------------------------------------------

void CuptiSource::Impl::read_clocks() {
    const cupti::ClockPair pair = cupti::read_clock_pair(ClockSource::monotonic);
    const std::int64_t now = static_cast<std::int64_t>(pair.ticks) - recorder.origin_ns();
    if (const auto step = join.clock().add(pair.realtime, now)) {
        recorder.describe(
            traces::DiagnosticRow{now, traces::Severity::warning, CudaClock::describe_step(*step, now)});
    }
}

void CuptiSource::Impl::take_buffers() {
    CudaBuffers::Filled* filled = buffers.take_filled();
    if (filled == nullptr) return;
    read_clocks();
    while (filled != nullptr) {
        CudaBuffers::Filled* next = filled->next;
        join.read(filled->data, filled->valid);
        buffers.recycle(filled);
        filled = next;
    }
    rows.flush();
}

void CuptiSource::Impl::flush(std::uint32_t flag) {
    if (!asked.load(std::memory_order_relaxed)) return;
    cupti.ActivityFlushAll(flag);
    take_buffers();
    std::size_t more = 0;
    if (cupti.ActivityGetNumDroppedRecords(nullptr, 0, &more) == cupti::kSuccess) dropped += more;
}

void CuptiSource::Impl::work() {
    ::pthread_setname_np(::pthread_self(), "cuda trace");
    Clock::time_point flushed = Clock::now();
    while (true) {
        {
            std::unique_lock lock(stop_mutex);
            if (stop_changed.wait_for(lock, kLook, [this] { return stopping; })) return;
        }
        if (asked.load(std::memory_order_relaxed)) buffers.provide_spare();
        take_buffers();
        if (Clock::now() - flushed < kFlush) continue;
        flush(0);
        flushed = Clock::now();
    }
}

// --- the end ---------------------------------------------------------------------------------------------

CuptiSource::~CuptiSource() {
    finish();
}

void CuptiSource::finish() {
    impl_->stop();
}

std::int64_t CuptiSource::rows() const {
    return impl_->counts.placed;
}

void CuptiSource::Impl::stop() {
    if (std::exchange(finished, true)) return;
    if (owner != ::getpid()) {
        // A forked child has neither the worker nor CUDA.
        static_cast<void>(new std::thread(std::move(worker)));
        return;
    }
    {
        const std::lock_guard lock(stop_mutex);
        stopping = true;
    }
    stop_changed.notify_all();
    worker.join();
    flush(cupti::kFlushForced);
    counts = join.finish();
    disable();
    cupti.Unsubscribe(subscriber);
    in_use.store(false, std::memory_order_release);
    // Buffers returned since the flush contain nothing of this trace.
    for (CudaBuffers::Filled* filled = buffers.take_filled(); filled != nullptr;) {
        buffers.recycle(std::exchange(filled, filled->next));
    }
    tell_losses();
}

void CuptiSource::Impl::tell_losses() {
    const auto say = [this](traces::Severity severity, const std::string& text) {
        recorder.describe(traces::DiagnosticRow{recorder.now_ns(), severity, text});
    };
    if (dropped > 0) {
        say(traces::Severity::warning,
            fmt::format("CUPTI lost {} for lack of buffers",
                        traces::counted(static_cast<std::int64_t>(dropped), "CUDA event", "CUDA events")));
    }
    if (counts.untimed > 0) {
        say(traces::Severity::warning,
            fmt::format("{} left out",
                        traces::counted(counts.untimed, "CUDA event had no valid times and was",
                                        "CUDA events had no valid times and were")));
    }
    if (counts.unplaced > 0) {
        say(traces::Severity::information,
            fmt::format(
                "{} left out",
                traces::counted(
                    counts.unplaced,
                    "kernel, copy or memset on the GPU belongs to no operation of the trace and was",
                    "kernels, copies and memsets on the GPU belong to no operation of the trace and were")));
    }
}

}  // namespace shardscope::profiler
