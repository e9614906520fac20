#include "trainer/cli/bench_collectives.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "traces/store/error.h"
#include "trainer/calibrate/bench_facts.h"
#include "trainer/cli/bench_engines.h"
#include "trainer/cli/child.h"
#include "trainer/cli/collectives_report.h"
#include "trainer/cli/environment.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/simulated.h"
#include "trainer/cli/stop.h"
#include "trainer/cli/trace_output.h"
#include "trainer/executor/collective_bench.h"
#include "trainer/sharding/program.h"
#include "trainer/sim/bench.h"

namespace shardscope::trainer::cli {

namespace {

constexpr std::int64_t kLargestBench = std::int64_t{1} << 30;

// Bytes: "8", "64K", "4M", "1G"; nullopt: it is none.
std::optional<std::int64_t> size_of_text(std::string_view text) {
    if (text.empty()) return std::nullopt;
    constexpr std::string_view kLetters = "KMG";
    int shift = 0;
    if (const std::size_t letter = kLetters.find(text.back()); letter != std::string_view::npos) {
        shift = 10 * (static_cast<int>(letter) + 1);
        text.remove_suffix(1);
    }
    const auto number = traces::schema::number_of<std::int64_t>(text);
    if (!number || *number < 1 || *number > (kLargestBench >> shift)) return std::nullopt;
    return *number << shift;
}

std::pair<std::int64_t, std::int64_t> sizes_of(const CollectivesBenchOptions& options) {
    if (options.sizes.empty()) {
        const executor::CollectiveBenchOptions usual;
        return {usual.smallest, usual.largest};
    }
    const std::size_t colon = options.sizes.find(':');
    const auto from = size_of_text(std::string_view(options.sizes).substr(0, colon));
    const auto to =
        colon == std::string::npos ? from : size_of_text(std::string_view(options.sizes).substr(colon + 1));
    if (!from || !to || *from < executor::kSmallestBenchBytes || *from > *to) {
        throw job::JobError(fmt::format(
            "command line: --sizes {}: it is no range of sizes from 8 bytes to 1G; write FROM:TO, "
            "such as 8:64M",
            options.sizes));
    }
    return {*from, *to};
}

void check_benched(const job::Job& job) {
    if (job.run.ranks < 2) {
        throw job::JobError(
            "--bench-collectives: one rank has no collectives; set run.ranks, or run.processes, to 2 or "
            "more");
    }
}

// What a cost model predicts, in place of a measurement.
void predict(const job::Job& job, const CollectivesBenchOptions& asked, BenchedCollectives& result) {
    if (!job.run.trace.empty())
        throw job::JobError(
            "--bench-collectives: on run.device = \"sim\" nothing runs that could be recorded; omit --trace "
            "(run.trace)");
    try {
        const sim::Cluster cluster = sim::load_cluster(job);
        sharding::Program program(sim::placed_on(job, cluster));
        program.let_talk(asked.pairs ? job.run.ranks : 2);
        executor::CollectiveBenchOptions options;
        std::tie(options.smallest, options.largest) = sizes_of(asked);
        options.collectives = !asked.messages;
        options.pairs = asked.pairs;
        result.bench = sim::simulate_bench(program, cluster, options);
        result.group = fmt::format("the cost model {}", cluster.name);
    } catch (const sim::ClusterError& error) {
        refuse(job, error);
    }
    result.simulated = true;
    result.ranks = job.run.ranks;
    result.pairs = asked.pairs;
}

void print(const BenchedCollectives& result, const std::string& format) {
    fmt::print("{}", format == "json"  ? collectives_json(result)
                     : format == "csv" ? collectives_csv(result)
                                       : collectives_text(result));
}

std::string group_text(const job::Job& job, Joined* joined) {
    if (joined) return joined->line();
    return job.run.device == job::DeviceKind::cuda ? "the GPUs of this process"
                                                   : "threads of this process (local)";
}

// On GPUs only NCCL sends messages.
bool sends_messages(const job::Job& job) {
    return job.run.device == job::DeviceKind::cpu || job.run.comm == job::CommKind::nccl;
}

}  // namespace

void check(const CollectivesBenchOptions& options) {
    (void)sizes_of(options);
}

int bench_collectives(const job::Job& job, const CollectivesBenchOptions& asked, Joined* joined) {
    check_benched(job);
    BenchedCollectives result;
    if (job.run.device == job::DeviceKind::sim) {
        predict(job, asked, result);
        print(result, asked.format);
        return 0;
    }
    std::optional<sharding::Program> program;
    std::optional<TraceOutput> trace;
    world::World* world = joined ? &joined->world() : nullptr;
    const bool speaks = !world || world->rank() == 0;
    together(joined, [&] {
        program.emplace(job);
        if (sends_messages(job)) {
            program->let_talk(asked.pairs ? job.run.ranks : 2);
        } else if (asked.messages) {
            throw job::JobError(
                "--messages: on GPUs only NCCL sends messages; set run.comm to \"nccl\", or omit --messages");
        } else {
            result.no_messages_why =
                "Messages were not measured: on GPUs only NCCL sends them; set run.comm to \"nccl\".";
        }
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
    std::tie(options.smallest, options.largest) = sizes_of(asked);
    options.collectives = !asked.messages;
    options.pairs = asked.pairs;
    options.recorder = trace->recorder();
    if (joined) options.processes = &joined->processes();
    const bool terminal = isatty(STDERR_FILENO) == 1;
    options.on_progress = [&](const std::string& what) {
        if (terminal) fmt::print(stderr, "\r{:<60}", what);
    };
    try {
        trace->measure_clock();
        result.bench = bench_collectives(*program, options);
        if (profiler::Recorder* recorder = trace->recorder(); recorder && speaks) {
            for (const auto& fact : calibrate::bench_facts(result.bench, job.run.ranks, asked.pairs))
                recorder->describe(fact);
        }
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
        result.group = group_text(job, joined);
        result.ranks = job.run.ranks;
        result.trace = end.trace;
        result.pairs = asked.pairs;
        print(result, asked.format);
        if (asked.format == "table" && !end.trace.empty()) fmt::print("\nTrace: {}\n", end.trace);
    }
    return end.failed ? kFailed : 0;
}

int bench_collectives_of_engines(const std::string& file, const std::vector<job::Override>& overrides,
                                 const job::Job& job, const CollectivesBenchOptions& options) {
    check_benched(job);
    if (job.run.device == job::DeviceKind::sim)
        throw job::JobError(
            "command line: --engines measures real devices; set run.device to \"cpu\" or \"cuda\", or omit "
            "--engines");
    if (!job.run.trace.empty())
        throw job::JobError(
            "command line: --engines runs each engine apart, and one trace cannot have them all; omit "
            "--trace "
            "(run.trace), or --engines and set run.comm and run.processes");
    const StopSignals listening;
    std::vector<BenchedEngine> engines;
    bool any = false;
    for (const std::string& engine : options.engines) {
        fmt::print(stderr, "Measuring {} ranks over {} ...\n", job.run.ranks, engine);
        std::vector<std::string> arguments = {file, "--bench-collectives", "--format", "json"};
        if (!options.sizes.empty()) arguments.push_back("--sizes=" + options.sizes);
        if (options.messages) arguments.emplace_back("--messages");
        if (options.pairs) arguments.emplace_back("--pairs");
        for (const job::Override& key :
             with_keys(overrides, engine_keys(engine, job.run.ranks, job.run.sums)))
            arguments.push_back(fmt::format("--{}={}", key.key, key.value));
        const ChildResult child = run_again(arguments);
        if (StopSignals::received() != 0) return kSignalled + StopSignals::received();
        BenchedEngine own{engine, {}, {}};
        if (child.status == 0 && child.signal == 0 && traces::schema::parse_json(child.out).is_object()) {
            own.json = child.out;
            any = true;
        } else {
            own.error = child.signal != 0 ? fmt::format("its process ended by signal {}", child.signal)
                        : child.status == 0 || child.last_error.empty() ? "it did not print its result"
                                                                        : child.last_error;
        }
        engines.push_back(std::move(own));
    }
    fmt::print("{}", options.format == "json"  ? engines_json(engines)
                     : options.format == "csv" ? engines_csv(engines)
                                               : engines_text(engines, job.run.ranks));
    return any ? 0 : kFailed;
}

}  // namespace shardscope::trainer::cli
