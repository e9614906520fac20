#include "trainer/cli/collectives_report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/communication/bus_bandwidth.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"
#include "traces/store/grouped.h"

namespace shardscope::trainer::cli {

namespace {

using traces::analysis::size_text;
using traces::report::Align;
using traces::report::TextTable;
using traces::store::grouped;
using Json = nlohmann::ordered_json;

// Bytes per microsecond, in GB/s; 0 unknown.
double gbps(std::int64_t bytes, double us) {
    return us > 0 ? static_cast<double>(bytes) / us / 1e3 : 0;
}
double algbw(const executor::CollectiveRate& rate) {
    return gbps(rate.bytes, rate.us);
}
double busbw(const executor::CollectiveRate& rate, int ranks) {
    return algbw(rate) * traces::analysis::bus_factor(rate.operation, ranks);
}
// Microseconds in which a rank can move the bytes through memory; 0 unknown.
double bound_us(const executor::CollectiveRate& rate, const BenchedCollectives& result) {
    return result.bench.copy_gbps <= 0 ? 0
                                       : traces::analysis::memory_bytes_moved(
                                             rate.operation, static_cast<double>(rate.bytes), result.ranks) /
                                             result.bench.copy_gbps / 1e3;
}

std::vector<Align> numbers_after(std::size_t texts, std::size_t columns) {
    std::vector<Align> all(columns, Align::right);
    std::fill_n(all.begin(), texts, Align::left);
    return all;
}

std::string collectives_table(const BenchedCollectives& result) {
    const executor::CollectiveBench& bench = result.bench;
    const bool bounded = bench.copy_gbps > 0;
    TextTable rows(numbers_after(1, bounded ? 8 : 6), 2);
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
                                          grouped(algbw(rate), 2),
                                          grouped(busbw(rate, result.ranks), 2)};
        if (bounded) {
            const double bound = bound_us(rate, result);
            cells.push_back(grouped(bound, 1));
            cells.push_back(grouped(100 * bound / rate.us, 1));
        }
        rows.row(cells);
    }
    return rows.text();
}

bool has_wire(const std::vector<executor::MessageRate>& messages) {
    return std::any_of(messages.begin(), messages.end(),
                       [](const executor::MessageRate& rate) { return rate.on_wire.us > 0; });
}

// Messages between ranks 0 and 1.
std::string messages_table(const std::vector<executor::MessageRate>& messages) {
    const bool wire = has_wire(messages);
    TextTable rows(numbers_after(0, wire ? 7 : 4));
    std::vector<std::string> header = {"Message", "Latency (µs)", "One way (GB/s)", "Both ways (GB/s)"};
    if (wire) header.insert(header.end(), {"Wire: latency (µs)", "One way (GB/s)", "Both ways (GB/s)"});
    rows.header(header);
    for (const executor::MessageRate& rate : messages) {
        if (rate.from != 0 || rate.to != 1) continue;
        std::vector<std::string> cells = {size_text(rate.bytes)};
        const auto add = [&](const executor::MessageTimes& times) {
            cells.push_back(grouped(times.latency_us, 2));
            cells.push_back(grouped(gbps(rate.bytes, times.us), 3));
            cells.push_back(grouped(gbps(2 * rate.bytes, times.both_us), 3));
        };
        add(rate.in_plan);
        if (wire) add(rate.on_wire);
        rows.row(cells);
    }
    return rows.text();
}

// From the rank of the row to that of the column.
std::string matrix(const BenchedCollectives& result, std::int64_t bytes,
                   const std::function<std::string(const executor::MessageRate&)>& cell_of) {
    TextTable rows(numbers_after(0, static_cast<std::size_t>(result.ranks) + 1));
    std::vector<std::string> header = {"From \\ to"};
    for (int to = 0; to < result.ranks; ++to) header.push_back(std::to_string(to));
    rows.header(header);
    for (int from = 0; from < result.ranks; ++from) {
        std::vector<std::string> cells(static_cast<std::size_t>(result.ranks) + 1, "-");
        cells[0] = std::to_string(from);
        for (const executor::MessageRate& rate : result.bench.messages) {
            if (rate.from == from && rate.bytes == bytes)
                cells[static_cast<std::size_t>(rate.to) + 1] = cell_of(rate);
        }
        rows.row(cells);
    }
    return rows.text();
}

std::string matrices(const BenchedCollectives& result) {
    const std::vector<executor::MessageRate>& messages = result.bench.messages;
    const bool wire = has_wire(messages);
    const auto times = [wire](const executor::MessageRate& rate) -> const executor::MessageTimes& {
        return wire ? rate.on_wire : rate.in_plan;
    };
    // The sizes that every pair has: those of the last one.
    std::int64_t smallest = 0, largest = 0;
    for (const executor::MessageRate& rate : messages) {
        if (rate.from != messages.back().from || rate.to != messages.back().to) continue;
        smallest = smallest == 0 ? rate.bytes : std::min(smallest, rate.bytes);
        largest = std::max(largest, rate.bytes);
    }
    const char* how = wire ? "over the wire alone" : "as pipeline stages send";
    return fmt::format("\nLatency of {} in µs, {}\n\n{}", size_text(smallest), how,
                       matrix(result, smallest,
                              [&](const auto& rate) { return grouped(times(rate).latency_us, 2); })) +
           fmt::format("\nBandwidth of {} one way in GB/s, {}\n\n{}", size_text(largest), how,
                       matrix(result, largest, [&](const auto& rate) {
                           return grouped(gbps(rate.bytes, times(rate).us), 2);
                       }));
}

std::string messages_text(const BenchedCollectives& result) {
    const std::vector<executor::MessageRate>& messages = result.bench.messages;
    if (messages.empty()) return result.no_messages_why.empty() ? "" : "\n" + result.no_messages_why + "\n";
    std::string text = fmt::format("\nMessages between rank 0 and rank 1\n\n{}\n", messages_table(messages));
    text += result.simulated
                ? "As the cost model has them, without the host's part.\n"
                : "As pipeline stages send them, through streams and the process group: latency is "
                  "half a round trip,\n"
                  "one way a message at a time, both ways one in each direction, whose bytes both "
                  "count.\n";
    if (has_wire(messages)) {
        text +=
            "Wire: the same by one thread on the wire alone, as OSU's osu_latency, osu_bw and osu_bibw: 64\n"
            "messages under way (of more than 4 MiB fewer, 256 MiB together), then an acknowledgement. What "
            "is\n"
            "between the two is what threads, streams and the agreement of both ranks on each message "
            "take.\n";
    }
    if (result.bench.alone_copy_gbps > 0) {
        text += fmt::format(
            "Bound through memory: {:.1f} GB/s one way (one rank copies at {:.1f} GB/s, read and written), "
            "{:.1f} both ways.\n",
            result.bench.alone_copy_gbps / 2, result.bench.alone_copy_gbps, result.bench.copy_gbps);
    }
    return result.pairs ? text + matrices(result) : text;
}

Json json_of(const executor::MessageTimes& times, std::int64_t bytes) {
    return {{"latency_us", times.latency_us},
            {"us", times.us},
            {"both_us", times.both_us},
            {"one_way_gbps", gbps(bytes, times.us)},
            {"both_ways_gbps", gbps(2 * bytes, times.both_us)}};
}

Json json_of(const BenchedCollectives& result) {
    Json all;
    all["ranks"] = result.ranks;
    all["group"] = result.group;
    if (result.bench.copy_gbps > 0) {
        all["copy_gbps"] = result.bench.copy_gbps;
        all["copy_alone_gbps"] = result.bench.alone_copy_gbps;
    }
    if (result.simulated) all["simulated"] = true;
    all["trace"] = result.trace;
    all["collectives"] = Json::array();
    for (const executor::CollectiveRate& rate : result.bench.rates) {
        Json row = {{"name", traces::schema::name(rate.operation)},
                    {"bytes", rate.bytes},
                    {"repeats", rate.repeats},
                    {"us", rate.us},
                    {"latency_us", rate.latency_us},
                    {"algbw_gbps", algbw(rate)},
                    {"busbw_gbps", busbw(rate, result.ranks)}};
        if (const double bound = bound_us(rate, result); bound > 0) row["bound_us"] = bound;
        all["collectives"].push_back(std::move(row));
    }
    all["messages"] = Json::array();
    for (const executor::MessageRate& rate : result.bench.messages) {
        Json row = {{"from", rate.from}, {"to", rate.to}, {"bytes", rate.bytes}, {"repeats", rate.repeats}};
        row.update(json_of(rate.in_plan, rate.bytes));
        row["wire"] = rate.on_wire.us > 0 ? json_of(rate.on_wire, rate.bytes) : Json();
        all["messages"].push_back(std::move(row));
    }
    if (!result.no_messages_why.empty()) all["no_messages_because"] = result.no_messages_why;
    return all;
}

constexpr const char* kCsvHeader =
    "operation,from,to,ranks,bytes,repeats,us,latency_us,both_us,algbw_gbps,busbw_gbps,bound_us,"
    "wire_us,wire_latency_us,wire_both_us\n";

// The rows of a result that was parsed from its JSON; `first`: what each row begins with.
std::string csv_rows(const Json& result, const std::string& first) {
    const auto number = [](const Json& row, const char* key) {
        return row.is_object() && row.contains(key) ? traces::schema::dump_json(row.at(key)) : std::string();
    };
    std::string text;
    const std::string ranks = number(result, "ranks");
    for (const Json& row : result.at("collectives")) {
        text += first + row.at("name").get<std::string>();
        text += fmt::format(",,,{},{},{},{},{},,{},{},{},,,\n", ranks, number(row, "bytes"),
                            number(row, "repeats"), number(row, "us"), number(row, "latency_us"),
                            number(row, "algbw_gbps"), number(row, "busbw_gbps"), number(row, "bound_us"));
    }
    for (const Json& row : result.at("messages")) {
        const Json& wire = row.at("wire");
        const std::string rate = number(row, "one_way_gbps");
        text += fmt::format("{}send,{},{},2,{},{},{},{},{},{},{},,{},{},{}\n", first, number(row, "from"),
                            number(row, "to"), number(row, "bytes"), number(row, "repeats"),
                            number(row, "us"), number(row, "latency_us"), number(row, "both_us"), rate, rate,
                            number(wire, "us"), number(wire, "latency_us"), number(wire, "both_us"));
    }
    return text;
}

}  // namespace

std::string collectives_text(const BenchedCollectives& result) {
    const executor::CollectiveBench& bench = result.bench;
    std::string text = fmt::format("Collectives of {} ranks over {}, fp32\n", result.ranks, result.group);
    if (bench.rates.empty()) return text + messages_text(result);
    text += fmt::format("\n{}\n", collectives_table(result));
    text +=
        "Time: per collective, back to back. Alone: from the call until the host knows that\n"
        "it is done. algbw is size / time, busbw as nccl-tests computes it; GB is 10^9 bytes.\n";
    text += result.simulated ? "Nothing ran: the cost model predicts these times.\n"
                             : fmt::format("All take turns, and the fastest of {} rounds counts.\n",
                                           executor::kCollectiveBenchRounds);
    if (bench.copy_gbps > 0) {
        text += fmt::format(
            "Bound: the bytes that must move through a rank's memory (all_gather, broadcast and all_to_all "
            "read and\n"
            "write the size; reduce_scatter reads it and writes a piece; all_reduce is both) at {:.1f} GB/s, "
            "the rate\n"
            "at which the ranks copy 64 MiB each, all at the same time. Data that stay in a cache can be "
            "faster.\n",
            bench.copy_gbps);
    }
    return text + messages_text(result);
}

std::string collectives_json(const BenchedCollectives& result) {
    return traces::schema::dump_json(json_of(result)) + "\n";
}

std::string collectives_csv(const BenchedCollectives& result) {
    return kCsvHeader + csv_rows(json_of(result), "");
}

// --- several engines -------------------------------------------------------------------------------------

namespace {

struct Parsed {
    std::string engine;
    Json result;
};

std::vector<Parsed> parsed(const std::vector<BenchedEngine>& engines) {
    std::vector<Parsed> all;
    for (const BenchedEngine& engine : engines)
        if (!engine.json.empty())
            all.push_back({engine.engine,
                           traces::schema::parse_ordered_json(engine.json, traces::schema::BadJson::throws)});
    return all;
}

// A row for each key that any engine has, in the order of the first that has it; two figures per engine.
using Key = std::pair<std::string, std::int64_t>;

// "wire" of "wire 1 to 2".
std::string_view kind_of(const Key& key) {
    return std::string_view(key.first).substr(0, key.first.find(' '));
}

struct Cells {
    std::vector<Key> keys;
    std::vector<std::map<Key, std::pair<double, double>>> of_engine;
};

template <class Visit>  // visit(result, add(key, first figure, second figure))
Cells cells_of(const std::vector<Parsed>& engines, const Visit& visit) {
    Cells cells;
    for (const Parsed& engine : engines) {
        auto& own = cells.of_engine.emplace_back();
        visit(engine.result, [&](const Key& key, double first, double second) {
            if (std::find(cells.keys.begin(), cells.keys.end(), key) == cells.keys.end())
                cells.keys.push_back(key);
            own[key] = {first, second};
        });
    }
    return cells;
}

std::string table_of(const std::vector<Parsed>& engines, const Cells& cells, const char* what,
                     const char* first, const char* second) {
    TextTable rows(numbers_after(1, 2 + 2 * engines.size()), 2);
    std::vector<std::string> header = {what, "Size"};
    for (const Parsed& engine : engines) {
        header.push_back(fmt::format("{} ({})", engine.engine, first));
        header.emplace_back(second);
    }
    rows.header(header);
    const Key* before = nullptr;
    for (const Key& key : cells.keys) {
        if (before && kind_of(*before) != kind_of(key)) rows.rule();
        before = &key;
        std::vector<std::string> row = {key.first, size_text(key.second)};
        for (const auto& own : cells.of_engine) {
            const auto found = own.find(key);
            row.push_back(found == own.end() ? "-" : grouped(found->second.first, 1));
            row.push_back(found == own.end() ? "-" : grouped(found->second.second, 2));
        }
        rows.row(row);
    }
    return rows.text();
}

}  // namespace

std::string engines_text(const std::vector<BenchedEngine>& engines, int ranks) {
    const std::vector<Parsed> measured = parsed(engines);
    std::string text = fmt::format("Collectives of {} ranks by engine, fp32\n", ranks);
    if (!measured.empty()) {
        const Cells collectives = cells_of(measured, [](const Json& result, const auto& add) {
            for (const Json& row : result.at("collectives"))
                add(Key(row.at("name"), row.at("bytes")), row.at("us"), row.at("busbw_gbps"));
        });
        if (!collectives.keys.empty())
            text += "\nTime of each, back to back, and bus bandwidth in GB/s\n\n" +
                    table_of(measured, collectives, "Collective", "µs", "busbw");
        const auto messages = [&](bool wire) {
            return cells_of(measured, [wire](const Json& result, const auto& add) {
                for (const Json& row : result.at("messages")) {
                    const int from = row.at("from"), to = row.at("to");
                    const bool first = from == 0 && to == 1, has_wire = row.at("wire").is_object();
                    if (wire ? !has_wire : has_wire && !first) continue;
                    const std::string kind = wire ? "wire" : "message";
                    const Json& own = wire ? row.at("wire") : row;
                    add(Key(first ? kind : fmt::format("{} {} to {}", kind, from, to), row.at("bytes")),
                        own.at("latency_us"), own.at("one_way_gbps"));
                }
            });
        };
        Cells both = messages(false);
        const Cells wires = messages(true);
        both.keys.insert(both.keys.end(), wires.keys.begin(), wires.keys.end());
        for (std::size_t i = 0; i < both.of_engine.size(); ++i)
            both.of_engine[i].insert(wires.of_engine[i].begin(), wires.of_engine[i].end());
        if (!both.keys.empty())
            text +=
                "\nMessages, from rank 0 to rank 1 where no ranks are named: latency, and bandwidth one way "
                "in "
                "GB/s;\nmessage: as pipeline stages send; wire: as OSU's benchmarks, on the wire alone\n\n" +
                table_of(measured, both, "Message", "µs", "GB/s");
    }
    for (const BenchedEngine& engine : engines)
        if (engine.json.empty()) text += fmt::format("\n{}: {}\n", engine.engine, engine.error);
    return text;
}

std::string engines_json(const std::vector<BenchedEngine>& engines) {
    Json all = Json::array();
    for (const BenchedEngine& engine : engines) {
        all.push_back({{"engine", engine.engine},
                       {"error", engine.json.empty() ? Json(engine.error) : Json()},
                       {"result", engine.json.empty() ? Json()
                                                      : traces::schema::parse_ordered_json(
                                                            engine.json, traces::schema::BadJson::throws)}});
    }
    return traces::schema::dump_json(Json{{"engines", std::move(all)}}) + "\n";
}

std::string engines_csv(const std::vector<BenchedEngine>& engines) {
    std::string text = std::string("engine,") + kCsvHeader;
    for (const Parsed& engine : parsed(engines)) text += csv_rows(engine.result, engine.engine + ",");
    return text;
}

}  // namespace shardscope::trainer::cli
