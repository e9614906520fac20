// What recording costs on the thread that records, compared with two readings of the clock, the least that a
// range can cost. Not a test: run it on a quiet machine.
//
//   bench_recorder [--benchmark_repetitions=15 --benchmark_enable_random_interleaving=true …]
//
// An iteration is a batch of a thousand, timed as a whole; between batches the writer gets time to drain, as
// in a program that does something besides recording. `burst` gives it none, so that each chunk is memory
// that was never touched. Times are of one call or pair; "dropped" must be 0, a lost event is cheaper.
#include <chrono>
#include <memory>
#include <thread>

#include <benchmark/benchmark.h>

#include "profiler/recorder/recorder.h"
#include "traces/store/sink.h"

namespace {

using namespace shardscope;
using namespace shardscope::profiler;

// Takes everything and keeps nothing: the writer's own cost stays in the background.
class NullSink final : public traces::store::EventSink {
  public:
    traces::schema::StringId intern(std::string_view) override { return traces::schema::StringId{1}; }
    void add(const traces::schema::KernelRow&) override {}
    void add(const traces::schema::MemcpyRow&) override {}
    void add(const traces::schema::MemsetRow&) override {}
    void add(const traces::schema::RuntimeRow&) override {}
    void add(const traces::schema::SynchronizationRow&) override {}
    void add(const traces::schema::RangeRow&) override {}
    void add(const traces::schema::CollectiveRow&) override {}
    void add(const traces::schema::MemoryRow&) override {}
    void add(const traces::schema::CounterRow&) override {}
    void add(const traces::schema::StepRow&) override {}
    void add(const traces::schema::LossRow&) override {}
    void add(const traces::schema::RunInfoRow&) override {}
    void add(const traces::schema::RankRow&) override {}
    void add(const traces::schema::ProcessRow&) override {}
    void add(const traces::schema::ThreadRow&) override {}
    void add(const traces::schema::StreamRow&) override {}
    void add(const traces::schema::ModuleRow&) override {}
    void add(const traces::schema::UnitRow&) override {}
    void add(const traces::schema::PredictionRow&) override {}
    void add(const traces::schema::PredictionPartRow&) override {}
    void add(const traces::schema::DiagnosticRow&) override {}
    void commit() override {}
};

constexpr int kBatch = 1000;
constexpr int kBatches = 200;

// A compiler barrier: memory accesses before it are not delayed past it.
void keep_in_order() {
    asm volatile("" ::: "memory");
}

// Times `call` in batches. `rest`: the time that the writer gets between them.
template <typename Call>
void measure(benchmark::State& state, Call call, std::chrono::microseconds rest) {
    using Clock = std::chrono::steady_clock;
    for (auto _ : state) {
        const auto start = Clock::now();
        for (int i = 0; i < kBatch; ++i) {
            call();
            keep_in_order();
        }
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count() / kBatch);
        if (rest.count() != 0) std::this_thread::sleep_for(rest);
    }
}

constexpr std::chrono::microseconds kRest{1000}, kNone{0};  // about a million ranges a second

void two_clock_reads(benchmark::State& state) {
    measure(
        state,
        [] {
            benchmark::DoNotOptimize(ticks());
            benchmark::DoNotOptimize(ticks());
        },
        kRest);
}
BENCHMARK(two_clock_reads)->UseManualTime()->Iterations(kBatches);

// `work(recorder, log)` returns the call to time.
template <typename Work>
void record(benchmark::State& state, Work work, std::chrono::microseconds rest = kRest) {
    Recorder recorder(std::make_unique<NullSink>(), nullptr);
    ThreadLog* log = recorder.attach_thread("bench", -1);
    measure(state, work(recorder, log), rest);
    recorder.finish();
    state.counters["dropped"] = static_cast<double>(recorder.dropped());
}

auto push_and_pop_of(Recorder& recorder, ThreadLog* log) {
    return [log, name = recorder.name("range")] {
        log->push(name);
        keep_in_order();
        log->pop();
    };
}

void push_and_pop(benchmark::State& state) {
    record(state, [](Recorder& recorder, ThreadLog* log) { return push_and_pop_of(recorder, log); });
}
BENCHMARK(push_and_pop)->UseManualTime()->Iterations(kBatches);

void push_and_pop_burst(benchmark::State& state) {
    record(
        state, [](Recorder& recorder, ThreadLog* log) { return push_and_pop_of(recorder, log); }, kNone);
}
BENCHMARK(push_and_pop_burst)->UseManualTime()->Iterations(kBatches);

// As the trainer does without a recorder: a test for a null log.
void push_and_pop_off(benchmark::State& state) {
    ThreadLog* log = nullptr;
    benchmark::DoNotOptimize(log);
    measure(
        state,
        [&log] {
            benchmark::DoNotOptimize(log);
            if (log != nullptr) log->push(NameId::none);
            keep_in_order();
            if (log != nullptr) log->pop();
        },
        kNone);
}
BENCHMARK(push_and_pop_off)->UseManualTime()->Iterations(kBatches);

void kernel(benchmark::State& state) {
    record(state, [](Recorder& recorder, ThreadLog* log) {
        DeviceWork work;
        work.name = recorder.name("sgemm_nt");
        const Ticks now = ticks();
        return [=] { log->kernel(now, now + 100, work); };
    });
}
BENCHMARK(kernel)->UseManualTime()->Iterations(kBatches);

void memory(benchmark::State& state) {
    record(state, [](Recorder&, ThreadLog* log) {
        MemoryWork work;
        work.bytes = 1024;
        return [=] { log->memory(work); };
    });
}
BENCHMARK(memory)->UseManualTime()->Iterations(kBatches);

}  // namespace

BENCHMARK_MAIN();
