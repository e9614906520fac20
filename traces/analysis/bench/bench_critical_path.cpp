// Measures the CPU time of the critical path, and of the waits, of one large step: `bench_critical_path
// [EVENTS] [RANKS]`. The step is synthetic: each rank's host launches EVENTS / RANKS device events in turn on
// three streams, with occasional waits between streams, blocking calls and collectives. A device event is
// four nodes: the start and end of its launching call and of itself.
#include <cstdlib>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <sys/resource.h>

#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/path/step_graph.h"
#include "traces/analysis/waits/waits.h"
#include "traces/store/columns/column_sink.h"

namespace {

using namespace shardscope::traces;

double cpu_seconds() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

std::unique_ptr<store::Trace> made_step(std::int64_t events, int ranks) {
    store::ColumnSink sink;
    const schema::StringId launch = sink.intern("cudaLaunchKernel"),
                           wait = sink.intern("cudaStreamWaitEvent"),
                           block = sink.intern("cudaEventSynchronize"), gemm = sink.intern("gemm"),
                           gather = sink.intern("ncclDevKernel_AllGather");
    std::int64_t id = 0;
    for (int r = 0; r < ranks; ++r) {
        const std::int64_t pid = schema::global_pid(100 + r), tid = schema::global_tid(100 + r, 100 + r);
        sink.add(schema::RankRow{
            .rank = r, .device = r, .global_pid = pid, .global_tid = tid, .host = {}, .device_name = {}});
        std::int64_t host = 0, ends[3] = {};
        const auto call = [&](schema::StringId name, std::int64_t start, std::int64_t end) {
            sink.add(schema::RuntimeRow{
                .start = start, .end = end, .global_tid = tid, .correlation = ++id, .name = name});
        };
        for (std::int64_t e = 0; e < events / ranks; ++e) {
            const bool collective = e % 40 == 0;
            const int stream = collective ? 1 : e % 17 == 0 ? 2 : 0;
            if (e % 20 == 1) call(wait, host, host + 500), host += 700;
            if (e % 100 == 99) {
                const std::int64_t until = std::max(host + 100, ends[0] + 300);
                call(block, host, until);
                host = until + 200;
            }
            call(launch, host, host + 2'000);
            std::int64_t start = std::max(host + 5'000, ends[stream] + 400);
            if (e % 20 == 1) start = std::max(start, ends[1] + 400);
            const std::int64_t end = start + (collective ? 60'000 : 4'000 + 7 * (e % 1'000)) + 900 * r;
            ends[stream] = end;
            sink.add(schema::KernelRow{.start = start,
                                       .end = end,
                                       .device = r,
                                       .stream = 7 + stream,
                                       .correlation = id,
                                       .global_pid = pid,
                                       .short_name = collective ? gather : gemm});
            if (collective) {
                sink.add(schema::CollectiveRow{.rank = r,
                                               .correlation = id,
                                               .operation = schema::Operation::all_gather,
                                               .bytes = 1 << 20,
                                               .group_size = ranks,
                                               .sequence = e});
            }
            host += 3'500;
        }
        sink.add(schema::StepRow{.rank = r, .step = 0, .start = 0, .end = host, .global_tid = tid});
    }
    return sink.take();
}

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t events = argc > 1 ? std::atoll(argv[1]) : 25'000;
    const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
    if (events < 1 || ranks < 1 || ranks > events) {
        fmt::print(stderr, "bench_critical_path: write [EVENTS] [RANKS], both at least 1\n");
        return 2;
    }
    const auto trace = made_step(events, ranks);
    const analysis::TraceSteps steps = analysis::find_steps(*trace);
    const analysis::GraphSources sources(*trace, steps);
    const std::size_t nodes = build_step_graph(sources, 0).size();

    analysis::PathFactors half = analysis::kUnscaled;
    half[static_cast<std::size_t>(analysis::PathKind::communication)] = 0.5;
    const double begin = cpu_seconds();
    const analysis::CriticalPathReport plain = analysis::critical_path(*trace);
    const double middle = cpu_seconds();
    const analysis::CriticalPathReport scaled = analysis::critical_path(*trace, {}, half);
    const double end = cpu_seconds();
    fmt::print("nodes            {}\ncritical path    {:.3f} s CPU\nwith a what-if   {:.3f} s CPU\n", nodes,
               middle - begin, end - middle);
    const analysis::WaitFinder waits(*trace);
    const double found = cpu_seconds();
    std::int64_t pieces = 0;
    for (std::size_t i = 0; i < trace->device.size(); ++i) {
        pieces += static_cast<std::int64_t>(waits.gap_before(i).size());
        pieces += waits.exposure(i).ns > 0 ? 1 : 0;
    }
    fmt::print("waits            {:.3f} s CPU, those of every event {:.3f} s CPU ({} waits and exposures)\n",
               found - end, cpu_seconds() - found, pieces);
    fmt::print("step             {:.1f} µs, predicted {:.1f} µs\n", plain.ranks.at(0).average_step_us,
               scaled.ranks.at(0).predicted_step_us);
    return 0;
}
