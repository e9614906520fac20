// The recorder: attached threads with their logs, and the background writer that drains them. The writer's
// thread owns the sink, the converter and the clock's changes; each lock below guards the members after it.
#include "profiler/recorder/recorder.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/quiet_thread.h"
#include "profiler/log/chunk_reader.h"
#include "profiler/log/thread_arena.h"
#include "profiler/recorder/calibration.h"
#include "profiler/recorder/record_converter.h"

namespace shardscope::profiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRowsPerCommit = 100'000;
constexpr std::size_t kBytesPerRound = std::size_t{2} << 20;  // some 50,000 rows

// Whether the thread that owns a log still exists. Shared by the thread and the recorder, since either may
// end first.
using Alive = std::shared_ptr<std::atomic<bool>>;

// Which log this thread has in which recorder. A recorder is identified by a number that is never reused, so
// that the entry of a destroyed recorder is never found.
struct AttachedLog {
    std::uint64_t recorder;
    ThreadLog* log;
    Alive alive;
};
struct AttachedLogs {
    std::vector<AttachedLog> logs;
    ~AttachedLogs() {
        for (const AttachedLog& attached : logs) attached.alive->store(false, std::memory_order_release);
    }
};
thread_local AttachedLogs attached_logs;

std::uint64_t next_recorder_number() {
    static std::atomic<std::uint64_t> number{0};
    return number.fetch_add(1) + 1;
}

// One attached thread: its memory, its writing end (that thread's alone) and its reading end (the writer's).
struct AttachedThread {
    AttachedThread(const RecorderOptions& options, std::shared_ptr<MemoryBudget> of_budget,
                   std::uint32_t number, std::uint32_t tid, std::string_view thread_name, int of_rank)
        : budget(std::move(of_budget)),
          arena(options.max_bytes_per_thread, *budget),
          log(&arena.arena(), number, tid),
          reader(arena.base(), ThreadArena::kChunkBytes, arena.max_chunks(), arena.control()),
          name(thread_name),
          rank(of_rank),
          log_number(number),
          global_tid(traces::schema::global_tid(::getpid(), tid)) {}

    const std::shared_ptr<MemoryBudget> budget;  // outlives the arena, even one that is left behind
    ThreadArena arena;
    ThreadLog log;
    ChunkReader reader;
    std::string name;
    int rank;
    std::uint32_t log_number;
    std::int64_t global_tid;
    const Alive alive = std::make_shared<std::atomic<bool>>(true);
};

std::int64_t cpu_ns(clockid_t clock) {
    timespec t{};
    ::clock_gettime(clock, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

bool is_alive(const AttachedThread& thread) {
    return thread.alive->load(std::memory_order_acquire);
}

// Keeps logs whose threads outlive the recorder, forever: such a thread may be about to write.
void leave_behind(std::unique_ptr<AttachedThread> thread) {
    static std::mutex mutex;
    static auto& left = *new std::vector<std::unique_ptr<AttachedThread>>;  // never destroyed
    const std::lock_guard lock(mutex);
    left.push_back(std::move(thread));
}

}  // namespace

struct Recorder::Impl {
    Impl(std::unique_ptr<traces::store::EventSink> to, FinishSink finish_sink, RecorderOptions with)
        : options(std::move(with)),
          sink(std::move(to)),
          on_finish(std::move(finish_sink)),
          clock(clock_source()),
          origin(with.start_system_ns != 0 ? MonotonicTime(with.start_system_ns) : MonotonicTime::now()),
          converter(*sink, clock, origin, ::getpid()) {}

    // --- the writer's thread -------------------------------------------------------------------------
    void run();
    void drain();
    void drain_threads();
    void let_go_of_ended_threads();
    void commit_if_due();
    void end_run();
    void fail(std::exception_ptr reason);

    const RecorderOptions options;
    const std::uint64_t number = next_recorder_number();
    const pid_t owner = ::getpid();
    const std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>(options.max_bytes);
    const std::unique_ptr<traces::store::EventSink> sink;
    const FinishSink on_finish;

    std::mutex clock_mutex;  // only the writer changes the clock; it reads without locking
    Calibration clock;
    const MonotonicTime origin;

    mutable std::mutex threads_mutex;
    std::vector<std::unique_ptr<AttachedThread>> threads;  // those that have not ended
    std::uint32_t threads_attached = 0;
    std::int64_t dropped_by_ended = 0;

    std::mutex names_mutex;
    std::deque<std::string> names{""};  // by id
    std::unordered_map<std::string_view, std::uint32_t> name_ids{{"", 0}};

    std::mutex rows_mutex;
    std::vector<std::function<void(traces::store::EventSink&)>> described;

    std::mutex stop_mutex;
    std::condition_variable stop_changed;
    bool stop = false;

    std::mutex finish_mutex;
    std::thread writer;
    std::atomic<bool> failed{false};
    std::exception_ptr failure;  // read after the writer was joined
    std::atomic<std::int64_t> cpu_ns_at_end{-1};

    // The writer's own.
    RecordConverter converter;
    std::vector<AttachedThread*> known_threads;
    std::vector<AttachedThread*> ended_threads;  // those that had ended before the last snapshot
    std::set<std::int64_t> described_threads;
    std::size_t names_defined = 1;
    std::int64_t rows_committed = 0;
    Clock::time_point last_commit = Clock::now();
};

// --- the writer's thread ---------------------------------------------------------------------------------

void Recorder::Impl::run() {
    ::pthread_setname_np(::pthread_self(), "trace writer");
    try {
        for (bool last = false; !last;) {
            const auto next = Clock::now() + options.drain_period;
            {
                std::unique_lock lock(stop_mutex);
                last = stop_changed.wait_until(lock, next, [this] { return stop; });
            }
            drain();
        }
        end_run();
    } catch (...) {
        fail(std::current_exception());
    }
    cpu_ns_at_end = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

void Recorder::Impl::drain() {
    {
        std::lock_guard lock(threads_mutex);
        known_threads.clear();
        for (const auto& thread : threads) known_threads.push_back(thread.get());
    }
    ended_threads.clear();
    for (AttachedThread* thread : known_threads) {
        if (!is_alive(*thread)) ended_threads.push_back(thread);  // writes nothing after the snapshot
    }
    for (AttachedThread* thread : known_threads) thread->reader.snapshot();

    // Everything that the records of the snapshot refer to existed before them, so it is collected only now.
    {
        std::lock_guard lock(clock_mutex);
        clock.update();
    }
    {
        std::lock_guard lock(names_mutex);
        for (; names_defined < names.size(); ++names_defined) {
            converter.define_name(static_cast<std::uint32_t>(names_defined), names[names_defined]);
        }
    }
    std::vector<std::function<void(traces::store::EventSink&)>> rows;
    {
        std::lock_guard lock(rows_mutex);
        rows.swap(described);
    }
    for (const auto& row : rows) row(*sink);
    drain_threads();
    let_go_of_ended_threads();
}

void Recorder::Impl::drain_threads() {
    for (AttachedThread* thread : known_threads) {
        // The system reuses a thread number after its thread has ended; the first name stays.
        if (described_threads.insert(thread->global_tid).second) {
            sink->add(traces::schema::ThreadRow{thread->global_tid, thread->name, thread->rank});
        }
    }
    // Drains in rounds: the threads advance together, so that what is committed after a round reaches about
    // the same time for all, even if the writer has fallen behind and a snapshot is large.
    std::size_t bytes = 0;
    for (const AttachedThread* thread : known_threads) bytes += thread->reader.bytes_seen();
    const std::size_t rounds = 1 + bytes / kBytesPerRound;
    for (std::size_t round = 1; round <= rounds; ++round) {
        const double share = static_cast<double>(round) / static_cast<double>(rounds);
        for (AttachedThread* thread : known_threads) {
            thread->reader.drain(
                [&](std::uint32_t log, std::uint32_t tid, std::span<const std::byte> records) {
                    converter.convert(log, tid, records);
                },
                share);
            thread->arena.arena().provide_spare();
        }
        commit_if_due();
    }
}

// All that these threads wrote is in the sink; a range that they left open ends here.
void Recorder::Impl::let_go_of_ended_threads() {
    for (AttachedThread* ended : ended_threads) {
        converter.close_after_loss(ended->log_number, ticks(), 0);
        const std::lock_guard lock(threads_mutex);
        dropped_by_ended += static_cast<std::int64_t>(ended->log.dropped());
        std::erase(known_threads, ended);
        std::erase_if(threads, [&](const auto& thread) { return thread.get() == ended; });
    }
    ended_threads.clear();
}

void Recorder::Impl::commit_if_due() {
    const bool many = converter.rows() - rows_committed >= kRowsPerCommit;
    if (!many && Clock::now() - last_commit < options.commit_period) return;
    sink->commit();
    rows_committed = converter.rows();
    last_commit = Clock::now();
}

void Recorder::Impl::end_run() {
    const std::int64_t duration = MonotonicTime::now() - origin;
    std::int64_t dropped = dropped_by_ended;
    for (AttachedThread* thread : known_threads) {
        thread->reader.open_gaps([&](std::uint32_t log, Ticks ticks, std::uint64_t min_depth) {
            converter.close_after_loss(log, ticks, min_depth);
        });
        dropped += static_cast<std::int64_t>(thread->log.dropped());
    }
    converter.close_open_ranges(duration);
    sink->commit();
    if (on_finish) on_finish(*sink, duration, dropped);
}

void Recorder::Impl::fail(std::exception_ptr reason) {
    failure = std::move(reason);
    failed.store(true, std::memory_order_release);
    // No chunk is read or handed out any more: each thread fills the one that it has, then only counts.
    {
        std::lock_guard lock(threads_mutex);
        for (const auto& thread : threads) thread->arena.arena().close();
    }
    if (options.on_failure) options.on_failure(failure);
}

// --- any thread --------------------------------------------------------------------------------------------

Recorder::Recorder(std::unique_ptr<traces::store::EventSink> sink, FinishSink on_finish,
                   RecorderOptions options)
    : impl_(std::make_unique<Impl>(std::move(sink), std::move(on_finish), std::move(options))) {
    impl_->writer = start_quietly([impl = impl_.get()] { impl->run(); });
}

Recorder::~Recorder() {
    if (impl_->owner != ::getpid()) {
        // In a forked child: the writer thread is not here, and the sink's file is the parent's.
        static_cast<void>(impl_.release());
        return;
    }
    try {
        finish();
    } catch (...) {  // callers that want the failure call finish()
    }
    std::erase_if(attached_logs.logs, [&](const AttachedLog& attached) {
        if (attached.recorder != impl_->number) return false;
        attached.alive->store(false, std::memory_order_relaxed);  // this thread will not use its log again
        return true;
    });
    for (auto& thread : impl_->threads) {
        if (!is_alive(*thread)) continue;
        thread->arena.arena().close();
        leave_behind(std::move(thread));
    }
}

NameId Recorder::name(std::string_view text) {
    std::lock_guard lock(impl_->names_mutex);
    if (const auto it = impl_->name_ids.find(text); it != impl_->name_ids.end()) return NameId{it->second};
    const auto id = static_cast<std::uint32_t>(impl_->names.size());
    impl_->names.emplace_back(text);
    impl_->name_ids.emplace(impl_->names.back(), id);
    return NameId{id};
}

ThreadLog* Recorder::attach_thread(std::string_view thread_name, int rank) {
    for (const AttachedLog& attached : attached_logs.logs) {
        if (attached.recorder == impl_->number) return attached.log;
    }
    const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    std::lock_guard lock(impl_->threads_mutex);
    const std::uint32_t log_number = ++impl_->threads_attached;  // 0 is for names
    AttachedThread& thread = *impl_->threads.emplace_back(
        std::make_unique<AttachedThread>(impl_->options, impl_->budget, log_number, tid, thread_name, rank));
    if (impl_->failed.load(std::memory_order_acquire)) thread.arena.arena().close();
    attached_logs.logs.push_back({impl_->number, &thread.log, thread.alive});
    return &thread.log;
}

void Recorder::enqueue(std::function<void(traces::store::EventSink&)> row) {
    if (failed()) return;
    std::lock_guard lock(impl_->rows_mutex);
    impl_->described.push_back(std::move(row));
}

void Recorder::finish() {
    if (impl_->owner != ::getpid()) return;
    std::lock_guard lock(impl_->finish_mutex);
    if (impl_->writer.joinable()) {
        {
            std::lock_guard stop_lock(impl_->stop_mutex);
            impl_->stop = true;
        }
        impl_->stop_changed.notify_all();
        impl_->writer.join();
    }
    if (impl_->failure) std::rethrow_exception(impl_->failure);
}

bool Recorder::failed() const {
    return impl_->failed.load(std::memory_order_acquire);
}

std::int64_t Recorder::dropped() const {
    std::lock_guard lock(impl_->threads_mutex);
    std::int64_t sum = impl_->dropped_by_ended;
    for (const auto& thread : impl_->threads) sum += static_cast<std::int64_t>(thread->log.dropped());
    return sum;
}

std::int64_t Recorder::writer_cpu_ns() const {
    const std::lock_guard lock(impl_->finish_mutex);
    clockid_t clock{};
    if (!impl_->writer.joinable() || ::pthread_getcpuclockid(impl_->writer.native_handle(), &clock) != 0) {
        return std::max<std::int64_t>(impl_->cpu_ns_at_end, 0);
    }
    const std::int64_t now = cpu_ns(clock);
    return impl_->cpu_ns_at_end >= 0 ? impl_->cpu_ns_at_end.load() : now;
}

std::int64_t Recorder::to_ns(Ticks ticks) const {
    std::lock_guard lock(impl_->clock_mutex);
    return impl_->clock.to_monotonic(ticks) - impl_->origin;
}

std::int64_t Recorder::now_ns() const {
    return MonotonicTime::now() - impl_->origin;
}

MonotonicTime Recorder::origin() const {
    return impl_->origin;
}

}  // namespace shardscope::profiler
