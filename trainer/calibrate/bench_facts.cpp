#include "trainer/calibrate/bench_facts.h"

#include <algorithm>

#include <fmt/core.h>

#include "traces/analysis/communication/bus_bandwidth.h"
#include "traces/schema/joined.h"

namespace shardscope::trainer::calibrate {

namespace {

using executor::CollectiveBench;
using executor::CollectiveRate;
using executor::MessageRate;
using traces::schema::RunInfoRow;

// "8:0.31 16:0.32": a figure by size, of the rows that `counts`.
template <class Rate, class Counts, class Figure>
std::string by_size(const std::vector<Rate>& rates, const Counts& counts, const Figure& figure) {
    std::string text;
    for (const Rate& rate : rates) {
        if (counts(rate))
            text += fmt::format("{}{}:{:.6g}", text.empty() ? "" : " ", rate.bytes, figure(rate));
    }
    return text;
}

// A figure of the messages of a size, from the rank of the row to that of the column.
template <class Figure>
std::string matrix(const CollectiveBench& bench, int ranks, std::int64_t bytes, const Figure& figure) {
    const auto n = static_cast<std::size_t>(ranks);
    std::vector<std::vector<std::string>> cells(n, std::vector<std::string>(n, "0"));
    for (const MessageRate& rate : bench.messages) {
        if (rate.bytes == bytes)
            cells[static_cast<std::size_t>(rate.from)][static_cast<std::size_t>(rate.to)] =
                fmt::format("{:.6g}", figure(rate));
    }
    std::vector<std::string> rows;
    rows.reserve(n);
    for (const std::vector<std::string>& row : cells) rows.push_back(traces::schema::joined(row, " "));
    return traces::schema::joined(rows, ";");
}

void add_pairs(const CollectiveBench& bench, int ranks, std::vector<RunInfoRow>& facts) {
    // The sizes that every pair has: those of the last one.
    const MessageRate& last = bench.messages.back();
    std::int64_t smallest = last.bytes;
    for (const MessageRate& rate : bench.messages) {
        if (rate.from == last.from && rate.to == last.to) smallest = std::min(smallest, rate.bytes);
    }
    const auto median = [&](std::int64_t bytes, double MessageRate::*spread) {
        std::vector<double> spreads;
        for (const MessageRate& rate : bench.messages) {
            if (rate.bytes == bytes) spreads.push_back(rate.*spread);
        }
        std::sort(spreads.begin(), spreads.end());
        return fmt::format("{:.4g}", spreads[(spreads.size() - 1) / 2]);
    };
    const auto add = [&](std::string_view key, std::string value) {
        facts.push_back({std::string(key), std::move(value)});
    };
    add(kPairBytesFact, fmt::format("{} {}", smallest, last.bytes));
    add(kPairLatencyFact,
        matrix(bench, ranks, smallest, [](const MessageRate& rate) { return rate.in_plan.latency_us; }));
    add(kPairFact, matrix(bench, ranks, last.bytes, [](const MessageRate& rate) { return rate.in_plan.us; }));
    add(kPairLatencySpreadFact, median(smallest, &MessageRate::latency_spread));
    add(kPairSpreadFact, median(last.bytes, &MessageRate::spread));
}

}  // namespace

std::string bench_fact(traces::schema::Operation operation) {
    return fmt::format("{}{}_us", kBenchFacts, name(operation));
}

std::vector<RunInfoRow> bench_facts(const CollectiveBench& bench, int ranks, bool pairs) {
    std::vector<RunInfoRow> facts;
    const auto add = [&](std::string_view key, std::string value) {
        facts.push_back({std::string(key), std::move(value)});
    };
    if (bench.copy_gbps > 0) {
        add(traces::analysis::kCopyRateFact, fmt::format("{:.0f}", bench.copy_gbps * 1e9));
        add(traces::analysis::kAloneCopyRateFact, fmt::format("{:.0f}", bench.alone_copy_gbps * 1e9));
    }
    for (std::size_t i = 0; i < bench.rates.size(); ++i) {
        const auto operation = bench.rates[i].operation;
        if (i > 0 && bench.rates[i - 1].operation == operation) continue;
        add(bench_fact(operation),
            by_size(
                bench.rates, [&](const CollectiveRate& rate) { return rate.operation == operation; },
                [](const CollectiveRate& rate) { return rate.us; }));
    }
    if (bench.messages.empty()) return facts;
    const auto message = [&](std::string_view key, const auto& figure) {
        add(key, by_size(
                     bench.messages, [](const MessageRate& rate) { return rate.from == 0 && rate.to == 1; },
                     figure));
    };
    message(kMessageLatencyFact, [](const MessageRate& rate) { return rate.in_plan.latency_us; });
    message(kMessageFact, [](const MessageRate& rate) { return rate.in_plan.us; });
    if (bench.messages.front().on_wire.us > 0) {
        const auto rate_of = [](std::int64_t bytes, double us) {
            return static_cast<double>(bytes) / us * 1e6;
        };
        message(kWireLatencyFact, [](const MessageRate& rate) { return rate.on_wire.latency_us; });
        message("bench.wire_one_way_bytes_per_second",
                [&](const MessageRate& rate) { return rate_of(rate.bytes, rate.on_wire.us); });
        message("bench.wire_both_ways_bytes_per_second",
                [&](const MessageRate& rate) { return rate_of(2 * rate.bytes, rate.on_wire.both_us); });
    }
    if (pairs) add_pairs(bench, ranks, facts);
    return facts;
}

}  // namespace shardscope::trainer::calibrate
