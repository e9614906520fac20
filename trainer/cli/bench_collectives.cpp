#include "trainer/cli/bench_collectives.h"

#include <cstdio>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "traces/analysis/communication/collectives.h"
#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"
#include "traces/store/error.h"
#include "trainer/cli/environment.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/trace_output.h"
#include "trainer/executor/collective_bench.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

namespace {

using traces::report::Align;
using traces::store::grouped;

std::string size_text(std::int64_t bytes) {
    return bytes >= 1 << 20 ? fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20))
                            : fmt::format("{:.4g} KiB", static_cast<double>(bytes) / (1 << 10));
}

double algbw_gbps(const executor::CollectiveRate& rate) {
    return static_cast<double>(rate.bytes) / rate.us / 1e3;
}

double busbw_gbps(const executor::CollectiveRate& rate, int ranks) {
    return algbw_gbps(rate) * traces::analysis::bus_factor(rate.operation, ranks);
}

std::string table(const executor::CollectiveBench& bench, const std::string& group, int ranks) {
    const bool bounded = bench.copy_gbps > 0;
    std::vector<Align> columns(bounded ? 8 : 6, Align::right);
    columns[0] = Align::left;
    traces::report::TextTable rows(columns, 2);
    std::vector<std::string> header = {"Collective", "Size",         "Time (µs)",
                                       "Alone (µs)", "algbw (GB/s)", "busbw (GB/s)"};
    if (bounded) header.insert(header.end(), {"Bound (µs)", "Of bound (%)"});
    rows.header(header);
    const executor::CollectiveRate* before = nullptr;
    for (const executor::CollectiveRate& rate : bench.rates) {
        if (before && before->operation != rate.operation) rows.rule();
        before = &rate;
        std::vector<std::string> cells = {std::string(traces::schema::name(rate.operation)),
                                          size_text(rate.bytes),
                                          grouped(rate.us, 1),
                                          grouped(rate.latency_us, 1),
                                          grouped(algbw_gbps(rate), 2),
                                          grouped(busbw_gbps(rate, ranks), 2)};
        if (bounded) {
            cells.push_back(grouped(rate.bound_us, 1));
            cells.push_back(grouped(100 * rate.bound_us / rate.us, 1));
        }
        rows.row(cells);
    }
    std::string text =
        fmt::format("Collectives of {} ranks over {}, fp32\n\n{}\n", ranks, group, rows.text());
    text += fmt::format(
        "Time: per collective, back to back. Alone: from the call until the host knows that\n"
        "it is done. All take turns, and the fastest of {} rounds counts. algbw is size / time, busbw as\n"
        "nccl-tests computes it; GB is 10^9 bytes.\n",
        executor::kCollectiveBenchRounds);
    if (bounded) {
        text += fmt::format(
            "Bound: the bytes that must move through a rank's memory (all_gather and broadcast read and "
            "write the\n"
            "size; reduce_scatter reads it and writes a piece; all_reduce is both) at {:.1f} GB/s, the rate "
            "at which\n"
            "the ranks copy 64 MiB each, all at the same time. Data that stay in a cache can be faster.\n",
            bench.copy_gbps);
    }
    return text;
}

std::string json(const executor::CollectiveBench& bench, const std::string& group, int ranks,
                 const std::string& trace) {
    nlohmann::ordered_json all;
    all["ranks"] = ranks;
    all["group"] = group;
    if (bench.copy_gbps > 0) all["copy_gbps"] = bench.copy_gbps;
    all["trace"] = trace;
    all["collectives"] = nlohmann::ordered_json::array();
    for (const executor::CollectiveRate& rate : bench.rates) {
        nlohmann::ordered_json row = {{"name", traces::schema::name(rate.operation)},
                                      {"bytes", rate.bytes},
                                      {"repeats", rate.repeats},
                                      {"us", rate.us},
                                      {"latency_us", rate.latency_us},
                                      {"algbw_gbps", algbw_gbps(rate)},
                                      {"busbw_gbps", busbw_gbps(rate, ranks)}};
        if (rate.bound_us > 0) row["bound_us"] = rate.bound_us;
        all["collectives"].push_back(std::move(row));
    }
    return traces::schema::dump_json(all) + "\n";
}

std::string group_text(const job::Job& job, Joined* joined) {
    if (joined) return joined->line();
    return job.run.device == job::DeviceKind::cuda ? "the GPUs of this process"
                                                   : "threads of this process (local)";
}

}  // namespace

int bench_collectives(const job::Job& job, bool as_json, Joined* joined) {
    if (job.run.ranks < 2) {
        throw job::JobError(
            "--bench-collectives: one rank has no collectives; set run.ranks, or run.processes, to 2 or "
            "more");
    }
    if (job.run.device == job::DeviceKind::sim) {
        throw job::JobError(
            "--bench-collectives: it measures real devices; set run.device to \"cpu\" or \"cuda\"");
    }
    std::optional<sharding::Program> program;
    std::optional<TraceOutput> trace;
    world::World* world = joined ? &joined->world() : nullptr;
    const bool speaks = !world || world->rank() == 0;
    together(joined, [&] {
        program.emplace(job);
        const RunEnvironment environment = environment_of(job, joined ? &joined->processes() : nullptr);
        trace.emplace(job, world);
        if (profiler::Recorder* recorder = trace->recorder()) {
            for (const traces::schema::RunInfoRow& fact : environment.facts) recorder->describe(fact);
            if (joined)
                for (const traces::schema::RunInfoRow& fact : joined->facts()) recorder->describe(fact);
        }
        if (speaks) fmt::print(stderr, "{}\n", environment.line);
    });
    executor::CollectiveBenchOptions options;
    options.recorder = trace->recorder();
    if (joined) options.processes = &joined->processes();
    const bool terminal = isatty(STDERR_FILENO) == 1;
    options.on_rate = [&](const executor::CollectiveRate& rate) {
        if (terminal)
            fmt::print(stderr, "\r{:<60}",
                       fmt::format("{} {}", traces::schema::name(rate.operation), size_text(rate.bytes)));
    };
    executor::CollectiveBench bench;
    try {
        trace->measure_clock();
        bench = bench_collectives(*program, options);
        trace->measure_clock();
    } catch (...) {
        (void)trace->give_up();
        throw;
    }
    const TraceOutput::End end = trace->finish();
    if (speaks) {
        if (terminal) fmt::print(stderr, "\r{:<60}\r", "");
        for (const std::string& warning : end.warnings)
            fmt::print(stderr, "shardscope-train: warning: {}\n", warning);
        if (!end.note.empty()) fmt::print(stderr, "shardscope-train: note: {}\n", end.note);
        const std::string group = group_text(job, joined);
        fmt::print("{}", as_json ? json(bench, group, job.run.ranks, end.trace)
                                 : table(bench, group, job.run.ranks));
        if (!as_json && !end.trace.empty()) fmt::print("\nTrace: {}\n", end.trace);
    }
    return end.failed ? kFailed : 0;
}

}  // namespace shardscope::trainer::cli
