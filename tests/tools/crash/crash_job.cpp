// A job that a test kills: two threads record numbered events at a steady rate until then, and note in a
// mapped file how many events had ended at which time.
//   crash_job recorder WATERMARKS TRACE    through a Recorder in this process
//   crash_job nvtx WATERMARKS              through NVTX, for shardscope-record
// Each event is a call (recorder: with the number as its correlation, times 2 + thread) or a range (nvtx:
// with the same as its colour).
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <time.h>
#include <unistd.h>

#include "profiler/recorder/calibration.h"
#include "profiler/recorder/recorder.h"
#include "tests/profiler/nvtx_calls.h"
#include "tests/tools/crash/watermarks.h"
#include "traces/store/write/writer.h"

namespace {

using namespace shardscope;

constexpr auto kPeriod = std::chrono::milliseconds(1);
constexpr int kEventsPerPeriod = 20;  // per thread: 20,000 per second

// Calls `event(number)` for the next numbers, a burst per period, forever.
template <typename Event>
void record_for_ever(tools::ThreadMoments& moments, Event event) {
    std::int64_t number = 0;
    auto next = std::chrono::steady_clock::now();
    while (true) {
        for (int i = 0; i < kEventsPerPeriod; ++i) event(++number);
        moments.add(profiler::monotonic_ns(), number);
        next += kPeriod;
        std::this_thread::sleep_until(next);
    }
}

void record_in_process(tools::JobMoments& moments, const char* path) {
    traces::store::WriterOptions writer;
    writer.path = path;
    writer.start_system_ns = profiler::monotonic_ns();
    profiler::RecorderOptions options;
    options.start_system_ns = writer.start_system_ns;
    profiler::Recorder recorder(std::make_unique<traces::store::DatabaseWriter>(writer), {}, options);
    std::vector<std::thread> threads;
    for (int t = 0; t < tools::kJobThreads; ++t) {
        threads.emplace_back([&, t] {
            profiler::ThreadLog* log = recorder.attach_thread(t == 0 ? "thread 0" : "thread 1", -1);
            const profiler::NameId call = recorder.name("work_v1000"), range = recorder.name("range");
            record_for_ever(moments.threads[static_cast<std::size_t>(t)], [&](std::int64_t number) {
                log->push(range);
                const profiler::Ticks begin = profiler::ticks();
                log->runtime(call, begin, profiler::ticks(), number * tools::kJobThreads + t);
                log->pop();
            });
        });
    }
    for (std::thread& thread : threads) thread.join();
}

void record_through_nvtx(tools::JobMoments& moments) {
    std::vector<std::thread> threads;
    for (int t = 0; t < tools::kJobThreads; ++t) {
        threads.emplace_back([&, t] {
            record_for_ever(moments.threads[static_cast<std::size_t>(t)], [&](std::int64_t number) {
                nvtx_calls::Event event;
                event.text = "work";
                event.color = static_cast<std::uint32_t>(number * tools::kJobThreads + t);
                nvtx_calls::push_ex(event);
                nvtx_calls::pop();
            });
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
    const bool nvtx = argc == 3 && std::strcmp(argv[1], "nvtx") == 0;
    if (!nvtx && !(argc == 4 && std::strcmp(argv[1], "recorder") == 0)) {
        std::fputs("usage: crash_job recorder WATERMARKS TRACE | crash_job nvtx WATERMARKS\n", stderr);
        return 2;
    }
    const tools::Watermarks watermarks(argv[2]);
    watermarks->pid = ::getpid();
    ::alarm(60);  // in case nothing kills it
    if (nvtx) {
        record_through_nvtx(*watermarks);
    } else {
        record_in_process(*watermarks, argv[3]);
    }
}
