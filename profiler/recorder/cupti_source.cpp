// CUPTI fills buffers in the threads that call CUDA; one thread of ours empties them and asks for finished
// records. No lock of ours is taken in CUPTI's callbacks, since CUPTI then holds its own.
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

#include "profiler/base/clock_anchor.h"
#include "profiler/base/quiet_thread.h"
#include "profiler/cupti/session.h"
#include "profiler/recorder/cupti_join.h"
#include "traces/store/grouped.h"

namespace shardscope::profiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};    // how often the worker looks for buffers
constexpr std::chrono::milliseconds kFlush{500};  // how often it asks for finished records

constexpr std::uint32_t kKinds[] = {
    cupti::kKindConcurrentKernel,  // not KERNEL, which makes kernels run one after the other
    cupti::kKindMemcpy, cupti::kKindMemcpy2, cupti::kKindMemset, cupti::kKindExternalCorrelation};

// The session of the one CuptiSource, if there is one.
constinit cupti::CuptiSession session;
constinit std::atomic<bool> in_use{false};

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
    session.request(buffer, size, max_records);
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    session.complete(buffer, valid, in_use.load(std::memory_order_acquire));
}

void called(void*, int, std::uint32_t, const void*) {}  // no callback is enabled

// External ids come with the records of calls; only calls that start work on a device are wanted.
bool is_wanted(int domain, const char* name) {
    const bool is_runtime = domain == cupti::kDomainRuntime;
    for (const char* start : {"cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch"}) {
        // The driver's calls have the shorter prefix: "cuLaunchKernel".
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
    void work();
    void flush(std::uint32_t flag) {
        session.flush(flag, [this] { take_buffers(); });
    }
    void take_buffers();
    void read_clocks();
    void stop();
    void tell_losses();

    Recorder& recorder;
    CuptiRows rows;
    CuptiJoin join{session.cupti(), traces::schema::global_pid(::getpid()), rows};
    const pid_t owner = ::getpid();
    std::uint64_t dropped = 0;  // by CUPTI; valid after stop()
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
    if (!session.open(&called, "turn it off", &is_wanted, reason)) {
        why = reason;
        return false;
    }
    session.cupti().ActivityRegisterCallbacks(&buffer_requested, &buffer_completed);
    read_clocks();
    // Records of copies between GPUs are optional: with one GPU there are none.
    const auto is_needed = [](std::uint32_t kind) { return kind != cupti::kKindMemcpy2; };
    bool is_on = session.enable(kKinds, is_needed,
                                "is the driver new enough, and may this user profile the GPU?", reason);
    if (!is_on) why = reason;
    try {
        if (is_on) worker = start_quietly([this] { work(); });
    } catch (const std::system_error& error) {
        why = fmt::format("no thread could be started ({})", error.code().message());
        is_on = false;
    }
    if (is_on) return true;
    session.disable(kKinds);
    session.close();
    return false;
}

// --- the threads that launch -----------------------------------------------------------------------------

void CuptiSource::begin(const DeviceWork& work) {
    session.cupti().ActivityPushExternalCorrelationId(cupti::kExternalCustom0, WorkPlace::pack(work));
}

void CuptiSource::end() {
    std::uint64_t last = 0;
    session.cupti().ActivityPopExternalCorrelationId(cupti::kExternalCustom0, &last);
}

// --- the worker ------------------------------------------------------------------------------------------

void CuptiSource::Impl::read_clocks() {
    const RealTimeAnchor pair = read_realtime_anchor(ClockSource::monotonic);
    const std::int64_t now = MonotonicTime(static_cast<std::int64_t>(pair.ticks.count)) - recorder.origin();
    if (const auto step = join.clock().add(pair.time, now)) {
        recorder.describe(traces::schema::DiagnosticRow{now, traces::schema::Severity::warning,
                                                        CudaClock::describe_step(*step, now)});
    }
}

void CuptiSource::Impl::take_buffers() {
    const auto begin = [this](bool any) {
        if (any) read_clocks();
    };
    session.take_buffers(begin, [this](const auto& record) { join.read(record); });
    rows.flush();
}

void CuptiSource::Impl::work() {
    ::pthread_setname_np(::pthread_self(), "cuda trace");
    Clock::time_point flushed = Clock::now();
    while (true) {
        {
            std::unique_lock lock(stop_mutex);
            if (stop_changed.wait_for(lock, kLook, [this] { return stopping; })) return;
        }
        session.provide_spare();
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
    session.disable(kKinds);
    session.close();
    dropped = session.dropped();
    in_use.store(false, std::memory_order_release);
    session.discard_buffers();  // returned since the flush; they contain nothing of this trace
    tell_losses();
}

void CuptiSource::Impl::tell_losses() {
    const auto say = [this](traces::schema::Severity severity, const std::string& text) {
        recorder.describe(traces::schema::DiagnosticRow{recorder.now_ns(), severity, text});
    };
    if (dropped > 0) {
        say(traces::schema::Severity::warning,
            fmt::format(
                "CUPTI lost {} for lack of buffers",
                traces::store::counted(static_cast<std::int64_t>(dropped), "CUDA event", "CUDA events")));
    }
    if (counts.untimed > 0) {
        say(traces::schema::Severity::warning,
            fmt::format("{} omitted",
                        traces::store::counted(counts.untimed, "CUDA event had no valid times and was",
                                               "CUDA events had no valid times and were")));
    }
    if (counts.unplaced > 0) {
        say(traces::schema::Severity::information,
            fmt::format(
                "{} omitted",
                traces::store::counted(
                    counts.unplaced,
                    "kernel, copy or memset on the GPU belongs to no operation of the trace and was",
                    "kernels, copies and memsets on the GPU belong to no operation of the trace and were")));
    }
}

}  // namespace shardscope::profiler
