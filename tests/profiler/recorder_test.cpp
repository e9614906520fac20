// The in-process recorder from outside: threads record, a sink receives.
#include "profiler/recorder/recorder.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/profiler/memory_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using namespace std::chrono_literals;
using testing::MemorySink;
using testing::Received;

struct Finished {
    int calls = 0;
    std::int64_t duration_ns = -1, dropped = -1;
};

class Recording : public ::testing::Test {
  protected:
    std::unique_ptr<Recorder> start(RecorderOptions options = {}) {
        options.drain_period = 2ms;
        return std::make_unique<Recorder>(
            std::make_unique<MemorySink>(got_),
            [this](traces::store::EventSink&, std::int64_t duration_ns, std::int64_t dropped) {
                ++finished_.calls;
                finished_.duration_ns = duration_ns;
                finished_.dropped = dropped;
            },
            options);
    }
    Received got_;
    Finished finished_;
};

TEST_F(Recording, keeps_nesting_names_domains_and_modules) {
    auto recorder = start();
    const NameId forward = recorder->name("forward"), linear = recorder->name("nn.Module: Linear_0");
    const NameId nccl = recorder->name("NCCL"), gather = recorder->name("ncclAllGather");
    ThreadLog* log = recorder->attach_thread("rank 0", 0);
    log->push(forward);
    log->push(linear, 7);
    log->push(gather, -1, nccl);
    log->pop();
    log->pop();
    log->mark(linear);
    log->pop();
    log->pop();  // a pop too many has no effect
    recorder->finish();

    ASSERT_EQ(got_.ranges.size(), 4u);
    // The innermost is closed first; the mark precedes the end of the outermost.
    const auto& [inner, middle, mark, outer] =
        std::tie(got_.ranges[0], got_.ranges[1], got_.ranges[2], got_.ranges[3]);
    EXPECT_EQ(got_.text(inner.text), "ncclAllGather");
    EXPECT_EQ(got_.text(inner.domain), "NCCL");
    EXPECT_EQ(got_.text(middle.text), "nn.Module: Linear_0");
    EXPECT_EQ(middle.module, 7);
    EXPECT_EQ(mark.event_type, traces::schema::kNvtxMark);
    EXPECT_FALSE(mark.end.has_value());
    EXPECT_EQ(got_.text(outer.text), "forward");
    EXPECT_EQ(outer.domain, traces::schema::StringId::empty);
    EXPECT_EQ(outer.module, -1);
    EXPECT_LE(0, outer.start);
    EXPECT_LE(outer.start, middle.start);
    EXPECT_LE(middle.start, inner.start);
    EXPECT_LE(inner.start, *inner.end);
    EXPECT_LE(*inner.end, *middle.end);
    EXPECT_LE(*middle.end, mark.start);
    EXPECT_LE(mark.start, *outer.end);
    EXPECT_LE(*outer.end, finished_.duration_ns);
    EXPECT_EQ(finished_.calls, 1);
    EXPECT_EQ(finished_.dropped, 0);
}

TEST_F(Recording, passes_every_kind_of_event_with_its_values) {
    auto recorder = start();
    ThreadLog* log = recorder->attach_thread("host", 3);
    const Ticks a = ticks(), b = a + 1000;
    log->runtime(recorder->name("cudaLaunchKernel_v7000"), a, b, 11);
    log->synchronization(a, b, 3, 2, traces::schema::kSyncStream, 5, 12);
    DeviceWork work;
    work.name = recorder->name("sgemm_nt");
    work.device = 3;
    work.stream = 1;
    work.correlation = 11;
    work.bytes = 4096;
    work.copy_kind = traces::schema::kCopyDeviceToHost;
    work.src_kind = traces::schema::kMemKindDevice;
    work.dst_kind = traces::schema::kMemKindPinned;
    log->kernel(a, b, work);
    log->memcpy(a, b, work);
    log->memset(a, b, work);
    CollectiveWork collective;
    collective.rank = 3;
    collective.correlation = 11;
    collective.operation = traces::schema::Operation::reduce_scatter;
    collective.bytes = 1 << 20;
    collective.padding = 64;
    collective.group = 9;
    collective.group_size = 4;
    collective.sequence = 17;
    collective.unit = 2;
    collective.phase = traces::schema::Phase::backward;
    log->collective(collective);
    MemoryWork memory;
    memory.rank = 3;
    memory.address = 0xABC0;
    memory.bytes = -512;
    memory.category = traces::schema::MemoryCategory::unsharded_gradients;
    memory.space = traces::schema::MemorySpace::host;
    memory.phase = traces::schema::Phase::forward;
    memory.unit = 4;
    memory.module = 5;
    memory.stream = 6;
    memory.name = recorder->name("net.0 flat_param");
    log->memory(memory);
    log->counter(3, recorder->name("reserved_bytes"), 2.5);
    log->step(3, 8, a, b);
    const std::int64_t start = recorder->to_ns(a), end = recorder->to_ns(b);
    recorder->finish();

    const std::int64_t pid = traces::schema::global_pid(::getpid());
    const std::int64_t tid = traces::schema::global_tid(::getpid(), ::syscall(SYS_gettid));
    // The clock is calibrated while the recorder runs, so a conversion now may differ slightly.
    const auto near = [](std::int64_t ns) {
        return ::testing::AllOf(::testing::Ge(ns - 20'000), ::testing::Le(ns + 20'000));
    };
    ASSERT_EQ(got_.runtimes.size(), 1u);
    EXPECT_THAT(got_.runtimes[0].start, near(start));
    EXPECT_THAT(got_.runtimes[0].end, near(end));
    EXPECT_EQ(got_.text(got_.runtimes[0].name), "cudaLaunchKernel_v7000");
    EXPECT_EQ(got_.runtimes[0].correlation, 11);
    EXPECT_EQ(got_.runtimes[0].global_tid, tid);
    ASSERT_EQ(got_.synchronizations.size(), 1u);
    EXPECT_EQ(got_.synchronizations[0].device, 3);
    EXPECT_EQ(got_.synchronizations[0].stream, 2);
    EXPECT_EQ(got_.synchronizations[0].sync_type, traces::schema::kSyncStream);
    EXPECT_EQ(got_.synchronizations[0].event_id, 5);
    EXPECT_EQ(got_.synchronizations[0].correlation, 12);
    EXPECT_EQ(got_.synchronizations[0].global_pid, pid);
    ASSERT_EQ(got_.kernels.size(), 1u);
    EXPECT_EQ(got_.text(got_.kernels[0].short_name), "sgemm_nt");
    EXPECT_EQ(got_.kernels[0].device, 3);
    EXPECT_EQ(got_.kernels[0].stream, 1);
    EXPECT_EQ(got_.kernels[0].correlation, 11);
    EXPECT_EQ(got_.kernels[0].global_pid, pid);
    EXPECT_THAT(got_.kernels[0].end - got_.kernels[0].start, ::testing::Le(20'000));
    ASSERT_EQ(got_.memcpys.size(), 1u);
    EXPECT_EQ(got_.memcpys[0].bytes, 4096);
    EXPECT_EQ(got_.memcpys[0].copy_kind, traces::schema::kCopyDeviceToHost);
    EXPECT_EQ(got_.memcpys[0].src_kind, traces::schema::kMemKindDevice);
    EXPECT_EQ(got_.memcpys[0].dst_kind, traces::schema::kMemKindPinned);
    ASSERT_EQ(got_.memsets.size(), 1u);
    EXPECT_EQ(got_.memsets[0].bytes, 4096);
    EXPECT_EQ(got_.memsets[0].mem_kind, traces::schema::kMemKindPinned);
    ASSERT_EQ(got_.collectives.size(), 1u);
    EXPECT_EQ(got_.collectives[0].rank, 3);
    EXPECT_EQ(got_.collectives[0].operation, traces::schema::Operation::reduce_scatter);
    EXPECT_EQ(got_.collectives[0].bytes, 1 << 20);
    EXPECT_EQ(got_.collectives[0].padding, 64);
    EXPECT_EQ(got_.collectives[0].group, 9);
    EXPECT_EQ(got_.collectives[0].group_size, 4);
    EXPECT_EQ(got_.collectives[0].sequence, 17);
    EXPECT_EQ(got_.collectives[0].unit, 2);
    EXPECT_EQ(got_.collectives[0].phase, traces::schema::Phase::backward);
    ASSERT_EQ(got_.memory.size(), 1u);
    EXPECT_EQ(got_.memory[0].address, 0xABC0u);
    EXPECT_EQ(got_.memory[0].bytes, -512);
    EXPECT_EQ(got_.memory[0].category, traces::schema::MemoryCategory::unsharded_gradients);
    EXPECT_EQ(got_.memory[0].space, traces::schema::MemorySpace::host);
    EXPECT_EQ(got_.memory[0].phase, traces::schema::Phase::forward);
    EXPECT_EQ(got_.memory[0].unit, 4);
    EXPECT_EQ(got_.memory[0].module, 5);
    EXPECT_EQ(got_.memory[0].stream, 6);
    EXPECT_EQ(got_.text(got_.memory[0].name), "net.0 flat_param");
    ASSERT_EQ(got_.counters.size(), 1u);
    EXPECT_EQ(got_.counters[0].value, 2.5);
    EXPECT_EQ(got_.text(got_.counters[0].name), "reserved_bytes");
    ASSERT_EQ(got_.steps.size(), 1u);
    EXPECT_EQ(got_.steps[0].step, 8);
    EXPECT_EQ(got_.steps[0].rank, 3);
    EXPECT_EQ(got_.steps[0].global_tid, tid);
}

TEST_F(Recording, describes_threads_and_the_run) {
    auto recorder = start();
    recorder->describe(traces::schema::RunInfoRow{"model.width", "1024"});
    recorder->describe(traces::schema::LossRow{1, 0.5});
    recorder->attach_thread("rank 2", 2);
    recorder->finish();
    ASSERT_EQ(got_.run_info.size(), 1u);
    EXPECT_EQ(got_.run_info[0].key, "model.width");
    ASSERT_EQ(got_.losses.size(), 1u);
    ASSERT_EQ(got_.threads.size(), 1u);
    EXPECT_EQ(got_.threads[0].name, "rank 2");
    EXPECT_EQ(got_.threads[0].rank, 2);
    EXPECT_EQ(got_.threads[0].global_tid, traces::schema::global_tid(::getpid(), ::syscall(SYS_gettid)));
}

TEST_F(Recording, gives_a_thread_one_log_and_a_name_one_id) {
    auto recorder = start();
    ThreadLog* log = recorder->attach_thread("main", -1);
    EXPECT_EQ(recorder->attach_thread("again", 4), log);
    ThreadLog* other = nullptr;
    std::thread([&] { other = recorder->attach_thread("other", -1); }).join();
    EXPECT_NE(other, log);
    EXPECT_EQ(recorder->name("a"), recorder->name("a"));
    EXPECT_NE(recorder->name("a"), recorder->name("b"));
    EXPECT_EQ(recorder->name(""), NameId::none);

    Received got;  // a second recorder is independent
    Recorder next(std::make_unique<MemorySink>(got), nullptr);
    EXPECT_NE(next.attach_thread("main", -1), log);
}

TEST_F(Recording, ends_open_ranges_when_the_run_ends) {
    auto recorder = start();
    ThreadLog* log = recorder->attach_thread("main", -1);
    log->push(recorder->name("never popped"));
    std::this_thread::sleep_for(5ms);
    recorder->finish();
    ASSERT_EQ(got_.ranges.size(), 1u);
    EXPECT_EQ(got_.ranges[0].end, finished_.duration_ns);
    EXPECT_GE(*got_.ranges[0].end - got_.ranges[0].start, 5'000'000);
}

TEST_F(Recording, measures_durations_as_the_clock_does) {
    auto recorder = start();
    ThreadLog* log = recorder->attach_thread("main", -1);
    const NameId name = recorder->name("sleep");
    const std::int64_t before = recorder->now_ns();
    log->push(name);
    std::this_thread::sleep_for(20ms);
    log->pop();
    const std::int64_t after = recorder->now_ns();
    recorder->finish();
    ASSERT_EQ(got_.ranges.size(), 1u);
    EXPECT_GE(got_.ranges[0].start, before - 20'000);
    EXPECT_LE(*got_.ranges[0].end, after + 20'000);
    EXPECT_GE(*got_.ranges[0].end - got_.ranges[0].start, 20'000'000 - 20'000);
}

TEST_F(Recording, puts_time_zero_at_the_given_instant) {
    RecorderOptions options;
    options.start_system_ns = monotonic_ns() - 5'000'000'000;
    auto recorder = start(options);
    recorder->attach_thread("main", -1)->mark(recorder->name("now"));
    recorder->finish();
    EXPECT_GE(got_.range("now").start, 5'000'000'000);
    EXPECT_LE(got_.range("now").start, 65'000'000'000);
}

TEST_F(Recording, finishes_once) {
    auto recorder = start();
    recorder->finish();
    recorder->finish();
    recorder.reset();
    EXPECT_EQ(finished_.calls, 1);
}

TEST_F(Recording, commits_while_it_runs) {
    RecorderOptions options;
    options.commit_period = 5ms;
    auto recorder = start(options);
    for (int i = 0; i < 1000 && got_.commits < 2; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_GE(got_.commits, 2);
    recorder->finish();
}

TEST_F(Recording, loses_nothing_from_many_threads) {
    constexpr int kThreads = 8, kRanges = 20'000;
    auto recorder = start();
    const NameId outer = recorder->name("outer"), inner = recorder->name("inner");
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            ThreadLog* log = recorder->attach_thread("worker " + std::to_string(t), t);
            for (int i = 0; i < kRanges; ++i) {
                log->push(outer, t);
                log->push(inner, t);
                log->pop();
                log->pop();
                if (i % 1000 == 0) recorder->name("name " + std::to_string(t * kRanges + i));
            }
        });  // the thread ends before finish() is called
    }
    for (auto& thread : threads) thread.join();
    recorder->finish();

    ASSERT_EQ(got_.ranges.size(), std::size_t{2} * kThreads * kRanges);
    EXPECT_EQ(finished_.dropped, 0);
    EXPECT_EQ(got_.threads.size(), std::size_t{kThreads});
    // For each thread: inner before outer, each pair nested, in order of time.
    std::map<int, const traces::schema::RangeRow*> last_inner;
    std::map<int, std::int64_t> last_end;
    for (const auto& row : got_.ranges) {
        ASSERT_TRUE(row.end.has_value());
        if (got_.text(row.text) == "inner") {
            last_inner[row.module] = &row;
            continue;
        }
        const traces::schema::RangeRow* in = last_inner[row.module];
        ASSERT_NE(in, nullptr);
        ASSERT_EQ(in->global_tid, row.global_tid);
        ASSERT_LE(last_end[row.module], row.start);
        ASSERT_LE(row.start, in->start);
        ASSERT_LE(in->start, *in->end);
        ASSERT_LE(*in->end, *row.end);
        last_end[row.module] = *row.end;
        last_inner[row.module] = nullptr;
    }
}

TEST_F(Recording, lets_threads_outlive_it) {
    auto recorder = start();
    std::barrier phase(2);
    std::thread thread([&] {
        ThreadLog* log = recorder->attach_thread("long", -1);
        const NameId name = recorder->name("range");
        log->push(name);
        log->pop();
        phase.arrive_and_wait();  // stopped recording
        phase.arrive_and_wait();  // finished
        log->push(name);          // ignored
        log->pop();
    });
    phase.arrive_and_wait();
    recorder->finish();
    EXPECT_EQ(got_.ranges.size(), 1u);
    phase.arrive_and_wait();
    thread.join();
    EXPECT_EQ(got_.ranges.size(), 1u);
}

TEST_F(Recording, lets_threads_outlive_its_destruction) {
    auto recorder = start();
    std::barrier phase(2);
    std::thread thread([&] {
        ThreadLog* log = recorder->attach_thread("long", -1);
        const NameId name = recorder->name("range");
        log->push(name);
        log->pop();
        phase.arrive_and_wait();  // stopped recording
        phase.arrive_and_wait();  // destroyed
        // More than the thread's chunk can hold: the rest is dropped, without harm.
        for (int i = 0; i < 100'000; ++i) {
            log->push(name);
            log->pop();
        }
    });
    phase.arrive_and_wait();
    recorder.reset();
    phase.arrive_and_wait();
    thread.join();
    EXPECT_EQ(got_.ranges.size(), 1u);
}

TEST_F(Recording, bounds_the_memory_of_all_threads_together) {
    RecorderOptions options;
    options.max_bytes = 1 << 20;  // four chunks of 256 KiB
    auto recorder = start(options);
    got_.blocked = true;  // the writer is blocked at its first row and drains nothing
    recorder->describe(traces::schema::RunInfoRow{"key", "value"});
    constexpr int kThreads = 4, kEvents = 40'000;  // of 40 bytes: 1.6 MB per thread
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            ThreadLog* log = recorder->attach_thread("worker", t);
            for (int i = 0; i < kEvents; ++i) log->counter(t, NameId::none, i);
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_GT(recorder->dropped(), kThreads * kEvents - (2 << 20) / 40);
    got_.blocked = false;
    recorder->finish();
    EXPECT_EQ(static_cast<std::int64_t>(got_.counters.size()) + finished_.dropped,
              std::int64_t{kThreads} * kEvents);
    EXPECT_EQ(finished_.dropped, recorder->dropped());
}

TEST_F(Recording, gives_back_the_memory_of_threads_that_ended) {
    RecorderOptions options;
    options.max_bytes = 1 << 20;  // four threads' first chunks
    auto recorder = start(options);
    for (int t = 0; t < 40; ++t) {
        std::thread([&] {
            ThreadLog* log = recorder->attach_thread("short", -1);
            log->push(NameId::none);  // and the range stays open
        }).join();
        // Each is added by a later drain, so a complete one follows the thread's end.
        for (int i = 0; i < 3; ++i) {
            std::atomic<bool> added{false};
            recorder->describe_with([&](traces::store::EventSink&) { added = true; });
            while (!added) std::this_thread::sleep_for(1ms);
        }
    }
    recorder->finish();
    EXPECT_EQ(finished_.dropped, 0);
    ASSERT_EQ(got_.ranges.size(), 40u);
    for (const auto& row : got_.ranges) EXPECT_LT(*row.end, finished_.duration_ns);
}

TEST_F(Recording, leaves_a_forked_child_alone) {
    auto recorder = start();
    ThreadLog* log = recorder->attach_thread("main", 0);
    log->push(recorder->name("parent"));
    const pid_t child = ::fork();
    if (child == 0) {
        for (int i = 0; i < 100'000; ++i) log->mark(NameId::none);  // more than the chunk can hold
        recorder->finish();
        recorder.reset();
        ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    log->pop();
    recorder->finish();
    EXPECT_EQ(got_.ranges.size(), 1u);
    EXPECT_EQ(finished_.calls, 1);
}

TEST_F(Recording, reports_the_processor_time_of_its_writer) {
    auto recorder = start();
    ThreadLog* log = recorder->attach_thread("main", 0);
    for (int i = 0; i < 50'000; ++i) log->counter(0, NameId::none, i);
    EXPECT_GE(recorder->writer_cpu_ns(), 0);
    recorder->finish();
    EXPECT_GT(recorder->writer_cpu_ns(), 100'000);  // 50,000 rows took it more than 2 ns each
}

TEST_F(Recording, counts_what_a_blocked_sink_makes_it_lose) {
    RecorderOptions options;
    options.max_bytes_per_thread = 512 << 10;  // two chunks
    auto recorder = start(options);
    ThreadLog* log = recorder->attach_thread("main", -1);
    const NameId before = recorder->name("before"), lost = recorder->name("lost"),
                 after = recorder->name("after");
    got_.blocked = true;
    // More than two chunks can hold: 40,000 ranges of 32 + 24 bytes are 2.2 MB.
    constexpr int kRanges = 40'000;
    log->push(before);
    for (int i = 0; i < kRanges; ++i) {
        log->push(lost);
        log->pop();
    }
    log->pop();  // the end of "before" is lost, too
    EXPECT_GT(recorder->dropped(), 0);
    const std::int64_t dropped = recorder->dropped();
    got_.blocked = false;
    // Recording continues as soon as the sink does.
    for (int i = 0; i < 2000; ++i) {
        const std::int64_t now = recorder->dropped();
        log->push(after);
        log->pop();
        if (recorder->dropped() == now) break;
        std::this_thread::sleep_for(1ms);
    }
    recorder->finish();

    std::int64_t ranges = 0, afterwards = 0, outer = 0;
    for (const auto& row : got_.ranges) {
        const std::string text = got_.text(row.text);
        ranges += text == "lost";
        afterwards += text == "after";
        if (text != "before") continue;
        ++outer;
        EXPECT_LT(*row.end, finished_.duration_ns);  // it ends where the loss began, not with the run
    }
    EXPECT_EQ(outer, 1);
    EXPECT_GE(afterwards, 1);
    EXPECT_GE(finished_.dropped, dropped);
    // What was not lost is present. Each range is two records, and at most one range was split by the loss.
    EXPECT_NEAR(static_cast<double>(2 * ranges + dropped), 2.0 * kRanges + 1, 2);
    EXPECT_GE(ranges, 2 * (256 << 10) / (32 + 24) - 100);  // about two chunks' worth
}

TEST_F(Recording, becomes_a_no_op_when_the_sink_fails) {
    auto recorder = start();
    ThreadLog* log = recorder->attach_thread("main", -1);
    const NameId name = recorder->name("range");
    got_.fails = true;
    log->mark(name);
    for (int i = 0; i < 2000 && !recorder->failed(); ++i) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(recorder->failed());
    for (int i = 0; i < 100'000; ++i) {
        log->push(name);
        log->pop();
    }
    recorder->describe(traces::schema::RunInfoRow{"k", "v"});
    EXPECT_THAT([&] { recorder->finish(); },
                ::testing::ThrowsMessage<std::runtime_error>(::testing::HasSubstr("no space left")));
    EXPECT_THROW(recorder->finish(), std::runtime_error);  // the same error again
    EXPECT_EQ(finished_.calls, 0);
    recorder.reset();  // and the destructor does not throw
}

TEST_F(Recording, reports_a_failure_of_the_last_step) {
    Recorder recorder(std::make_unique<MemorySink>(got_),
                      [](traces::store::EventSink&, std::int64_t, std::int64_t) {
                          throw std::runtime_error("cannot finish");
                      });
    EXPECT_THAT([&] { recorder.finish(); },
                ::testing::ThrowsMessage<std::runtime_error>(::testing::HasSubstr("cannot finish")));
    EXPECT_TRUE(recorder.failed());
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
