#include "trainer/calibrate/measured_bench.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "trainer/calibrate/bench_facts.h"

namespace shardscope::trainer::calibrate {

namespace {

constexpr double kMicrosecond = 1e-6;

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

class BenchReader {
  public:
    BenchReader(const traces::store::Trace& trace, MeasuredBench& bench) : trace_(trace), bench_(bench) {}

    void read() {
        static constexpr std::array kOperations = {
            plan::Operation::all_gather, plan::Operation::reduce_scatter, plan::Operation::all_reduce,
            plan::Operation::broadcast, plan::Operation::all_to_all};
        for (const plan::Operation operation : kOperations)
            times(bench_fact(operation), operation, bench_.collectives);
        times(kMessageFact, plan::Operation::send, bench_.messages);
        std::vector<BenchedTime> planned, on_wire;
        times(kMessageLatencyFact, plan::Operation::send, planned);
        times(kWireLatencyFact, plan::Operation::send, on_wire);
        if (!planned.empty() && !on_wire.empty())
            bench_.latency_of_plan = std::max(0.0, planned.front().seconds - on_wire.front().seconds);
        if (!trace_.config_value(kPairBytesFact).empty()) pairs();
        if (bench_.collectives.empty() && bench_.messages.empty()) {
            refuse(
                "its benchmark recorded no times; record it again with this version of shardscope-train "
                "(--bench-collectives --pairs --trace FILE)");
        }
    }

  private:
    [[noreturn]] void refuse(const std::string& why) const {
        throw CalibrationError(fmt::format("{}: {}", bench_.file, why));
    }
    [[noreturn]] void refuse_text(std::string_view key) const {
        refuse(fmt::format("its fact {} is not what a benchmark writes; record it again", key));
    }
    double number(std::string_view key, std::string_view text) const {
        const auto number = traces::schema::number_of<double>(text);
        if (!number || !std::isfinite(*number) || *number < 0) refuse_text(key);
        return *number;
    }
    std::int64_t bytes(std::string_view key, std::string_view text) const {
        const auto bytes = traces::schema::number_of<std::int64_t>(text);
        if (!bytes || *bytes < 1) refuse_text(key);
        return *bytes;
    }

    // "8:0.31 16:0.32".
    void times(std::string_view key, plan::Operation operation, std::vector<BenchedTime>& into) const {
        for (const std::string_view part : parts_of(trace_.config_value(key), ' ')) {
            const std::size_t colon = std::min(part.find(':'), part.size());
            BenchedTime own{operation, bytes(key, part.substr(0, colon)), 0};
            own.seconds = kMicrosecond * number(key, part.substr(std::min(colon + 1, part.size())));
            if (!(own.seconds > 0)) refuse_text(key);
            into.push_back(own);
        }
    }
    // "0 1.8;1.9 0".
    std::vector<double> matrix(std::string_view key) const {
        const auto ranks = static_cast<std::size_t>(bench_.job.run.ranks);
        const std::vector<std::string_view> rows = parts_of(trace_.config_value(key), ';');
        std::vector<double> figures;
        for (std::size_t from = 0; from < ranks; ++from) {
            const auto row = from < rows.size() ? parts_of(rows[from], ' ') : std::vector<std::string_view>();
            for (std::size_t to = 0; to < ranks; ++to) {
                const double figure = to < row.size() ? number(key, row[to]) : 0;
                if (from != to && !(figure > 0)) {
                    refuse(fmt::format(
                        "{} has no time of a message from rank {} to rank {}, and [links] needs that of each "
                        "pair of its {} ranks; record the benchmark again with --pairs",
                        key, from, to, ranks));
                }
                figures.push_back(kMicrosecond * figure);
            }
        }
        return figures;
    }
    void pairs() {
        if (bench_.job.run.ranks < 2)
            refuse("it is of one rank, which has no links; record the benchmark with two ranks or more");
        BenchedPairs& pairs = bench_.pairs.emplace();
        pairs.ranks = bench_.job.run.ranks;
        const std::vector<std::string_view> sizes = parts_of(trace_.config_value(kPairBytesFact), ' ');
        if (sizes.size() != 2) refuse_text(kPairBytesFact);
        pairs.small_bytes = bytes(kPairBytesFact, sizes[0]);
        pairs.large_bytes = bytes(kPairBytesFact, sizes[1]);
        if (pairs.small_bytes >= pairs.large_bytes)
            refuse("its pairs have messages of one size; record the benchmark with a range of --sizes");
        pairs.latency = matrix(kPairLatencyFact);
        pairs.seconds = matrix(kPairFact);
        pairs.latency_spread = number(kPairLatencySpreadFact, trace_.config_value(kPairLatencySpreadFact));
        pairs.spread = number(kPairSpreadFact, trace_.config_value(kPairSpreadFact));
        for (int from = 0; from < pairs.ranks; ++from) {
            for (int to = 0; to < pairs.ranks; ++to) {
                const std::size_t at = pairs.at(from, to);
                if (from == to || pairs.seconds[at] > pairs.latency[at]) continue;
                refuse(fmt::format(
                    "from rank {} to rank {} a message of {} bytes took {:.3g} µs and one of {} bytes {:.3g} "
                    "µs, which contradict each other; record the benchmark again, on an otherwise idle "
                    "machine",
                    from, to, pairs.large_bytes, pairs.seconds[at] / kMicrosecond, pairs.small_bytes,
                    pairs.latency[at] / kMicrosecond));
            }
        }
    }

    const traces::store::Trace& trace_;
    MeasuredBench& bench_;
};

}  // namespace

bool is_bench(const traces::store::Trace& trace) {
    return std::any_of(trace.config.begin(), trace.config.end(),
                       [](const auto& fact) { return fact.first.starts_with(kBenchFacts); });
}

MeasuredBench measure_bench(const traces::store::Trace& trace) {
    MeasuredBench bench;
    static_cast<Machine&>(bench) = machine_of(trace);
    if (trace.collectives.size() > 0) bench.engine = engine_of(trace, 0);
    BenchReader(trace, bench).read();
    return bench;
}

}  // namespace shardscope::trainer::calibrate
