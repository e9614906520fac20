// What recording costs on the thread that records, in ns per call. Not a test: run it on a quiet machine.
//   build/<preset>/bin/bench_recorder
#include <memory>

#include <benchmark/benchmark.h>

#include "profiler/recorder.h"
#include "traces/store/sink.h"

namespace {

using namespace shardscope;
using namespace shardscope::profiler;

// Takes everything and keeps nothing: the writer's own cost stays in the background.
class NullSink final : public traces::EventSink {
  public:
    traces::StringId intern(std::string_view) override { return traces::StringId{1}; }
    void add(const traces::KernelRow&) override {}
    void add(const traces::MemcpyRow&) override {}
    void add(const traces::MemsetRow&) override {}
    void add(const traces::RuntimeRow&) override {}
    void add(const traces::SynchronizationRow&) override {}
    void add(const traces::RangeRow&) override {}
    void add(const traces::CollectiveRow&) override {}
    void add(const traces::MemoryRow&) override {}
    void add(const traces::CounterRow&) override {}
    void add(const traces::StepRow&) override {}
    void add(const traces::LossRow&) override {}
    void add(const traces::RunInfoRow&) override {}
    void add(const traces::RankRow&) override {}
    void add(const traces::ProcessRow&) override {}
    void add(const traces::ThreadRow&) override {}
    void add(const traces::StreamRow&) override {}
    void add(const traces::ModuleRow&) override {}
    void add(const traces::UnitRow&) override {}
    void add(const traces::PredictionRow&) override {}
    void add(const traces::PredictionPartRow&) override {}
    void add(const traces::DiagnosticRow&) override {}
    void commit() override {}
};

// Events that fit in a thread's buffers even if the writer gets no processor at all.
constexpr int kFits = 800'000;

std::unique_ptr<Recorder> make_recorder() {
    return std::make_unique<Recorder>(std::make_unique<NullSink>(), nullptr);
}

// Told with each figure: a lost event is cheaper than a recorded one.
void report_dropped(benchmark::State& state, const Recorder& recorder) {
    state.counters["dropped"] = static_cast<double>(recorder.dropped());
}

void tick(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ticks());
}
BENCHMARK(tick);

void push_and_pop(benchmark::State& state) {
    static std::unique_ptr<Recorder> recorder;
    if (state.thread_index() == 0) recorder = make_recorder();
    static NameId name;
    if (state.thread_index() == 0) name = recorder->name("range");
    ThreadLog* log = nullptr;
    for (auto _ : state) {
        if (log == nullptr) log = recorder->attach_thread("bench", -1);  // behind the start barrier
        log->push(name);
        log->pop();
    }
    if (state.thread_index() == 0) {
        recorder->finish();
        report_dropped(state, *recorder);
    }
}
BENCHMARK(push_and_pop)->Iterations(kFits)->Threads(1)->Threads(2);

void kernel(benchmark::State& state) {
    auto recorder = make_recorder();
    ThreadLog* log = recorder->attach_thread("bench", -1);
    DeviceWork work;
    work.name = recorder->name("sgemm_nt");
    const std::uint64_t now = ticks();
    for (auto _ : state) log->kernel(now, now + 100, work);
    recorder->finish();
    report_dropped(state, *recorder);
}
BENCHMARK(kernel)->Iterations(kFits);

void memory(benchmark::State& state) {
    auto recorder = make_recorder();
    ThreadLog* log = recorder->attach_thread("bench", -1);
    MemoryWork work;
    work.bytes = 1024;
    for (auto _ : state) log->memory(work);
    recorder->finish();
    report_dropped(state, *recorder);
}
BENCHMARK(memory)->Iterations(kFits);

}  // namespace

BENCHMARK_MAIN();
