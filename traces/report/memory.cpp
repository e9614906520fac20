// Peak memory; see memory_part_fields().
#include "traces/analysis/memory/memory.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/memory_parts.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {

using Json = nlohmann::ordered_json;

std::string counted_title(bool until_last_use, schema::MemorySpace space) {
    return until_last_use ? fmt::format("Active {} memory (until the last stream has used it)", name(space))
                          : fmt::format("Allocated {} memory", name(space));
}

std::string counted_title(const analysis::MemoryReport& report) {
    const bool active = std::any_of(report.ranks.begin(), report.ranks.end(),
                                    [](const analysis::RankMemory& r) { return r.until_last_use; });
    return counted_title(active, report.space);
}

std::string since_step(const analysis::RankMemory& rank) {
    return rank.predicted_step ? fmt::format(" from step {} on", *rank.predicted_step) : " in the whole run";
}

std::string predicted_text(const analysis::RankMemory& rank) {
    const auto beside = [&](std::int64_t predicted) {
        const std::int64_t more = rank.peak_bytes - predicted;
        return more == 0
                   ? "the same"
                   : fmt::format("{}{} bytes", more > 0 ? "measured +" : "measured ", store::grouped(more));
    };
    const std::string whole = store::grouped(rank.predicted_peak_bytes);
    if (rank.prediction_applies)
        return fmt::format("predicted {} bytes ({})", whole, beside(rank.predicted_peak_bytes));
    if (rank.predicted_of_steps < 0) return fmt::format("predicted {} bytes (of the whole run)", whole);
    return fmt::format("predicted for the steps shown {} bytes ({}), {} bytes{}",
                       store::grouped(rank.predicted_of_steps), beside(rank.predicted_of_steps), whole,
                       since_step(rank));
}

std::string fragmentation_line(const analysis::RankMemory& rank) {
    if (!rank.fragmentation) return {};
    const analysis::Fragmentation& f = *rank.fragmentation;
    return fmt::format(
        "The allocator then had reserved {} MiB in {}: {} MiB free in {}, the largest {} MiB;\n"
        "fragmentation of the free bytes {} %\n",
        mb(f.held_bytes), store::counted(f.segments, "segment", "segments"), mb(f.free_bytes),
        store::counted(f.free_blocks, "block", "blocks"), mb(f.largest_free), store::grouped(f.percent(), 1));
}

std::string spaces_and_failures(const analysis::RankMemory& rank) {
    std::string text;
    for (const analysis::SpacePeak& space : rank.other_spaces) {
        text += fmt::format("Peak of {} memory: {} MiB ({} bytes) at {} ms\n", name(space.space),
                            mb(space.peak_bytes), store::grouped(space.peak_bytes),
                            milliseconds(space.peak_time_ns));
    }
    for (const analysis::MemoryFailure& failure : rank.failures)
        text += fmt::format("At {} ms: {}\n", milliseconds(failure.time_ns), printable(failure.text));
    return text;
}

std::string growth_text(const analysis::RankMemory& rank, std::size_t width) {
    if (!rank.growth) return {};
    const analysis::MemoryGrowth& g = *rank.growth;
    const std::string why =
        g.host_library.empty()
            ? "the trace has no frees of it; look for buffers or communicators that each step makes"
            : fmt::format(
                  "PyTorch does not record what {0}'s threads free, so this and the peak may be too high; "
                  "whether it is freed is unknown",
                  g.host_library);
    return paragraph(
        fmt::format("Communication memory grows in each of {} steps, from {} MiB at the end of the "
                    "first to {} MiB at the end of the last: {}.",
                    store::grouped(g.steps), mb(g.first_bytes), mb(g.last_bytes), why),
        width);
}

bool names_somebody(const std::vector<analysis::MemoryHolder>& holders) {
    return std::any_of(holders.begin(), holders.end(), [](const analysis::MemoryHolder& h) {
        return (h.bytes != 0 || h.predicted.value_or(0) != 0) && !h.name.starts_with('(');
    });
}

namespace {

constexpr std::size_t kPartWidth = 64;

analysis::ResultTable table_of(std::vector<analysis::MemoryPart> parts, bool total,
                               std::initializer_list<analysis::ColumnChoice> columns) {
    const analysis::MemoryPart sum = sum_of(parts, "total");
    for (analysis::MemoryPart& part : parts) part.name = shortened(part.name, kPartWidth);
    if (total) parts.push_back(sum);
    analysis::ResultTable table = chosen(result_table(analysis::memory_part_fields(), parts), columns);
    if (total) table.rules = {parts.size() - 1};
    return sum.predicted ? table
                         : without(table, {"predicted_bytes", "predicted_mb", "difference_bytes",
                                           "difference_mb", "difference_percent"});
}

Json holders(const std::vector<analysis::MemoryHolder>& all) {
    Json json = Json::array();
    for (const analysis::MemoryHolder& holder : all) {
        json.push_back({{"name", holder.name}, {"bytes", holder.bytes}});
        if (!holder.stack.empty()) json.back()["stack"] = holder.stack;
    }
    return json;
}

}  // namespace

analysis::ResultTable parts_table(std::vector<analysis::MemoryPart> parts,
                                  std::initializer_list<analysis::ColumnChoice> columns) {
    return table_of(std::move(parts), false, columns);
}

analysis::ResultTable with_total(const std::vector<analysis::MemoryPart>& parts,
                                 std::initializer_list<analysis::ColumnChoice> columns) {
    return table_of(parts, true, columns);
}

Json bytes_by_category(const analysis::CategoryBytes& bytes) {
    Json json = Json::object();
    for (std::size_t c = 0; c < bytes.size(); ++c)
        json[std::string(schema::kMemoryCategoryNames[c])] = bytes[c];
    return json;
}

Json memory_json(const analysis::RankMemory& rank) {
    Json json = {{"rank", rank.rank},
                 {"peak_bytes", rank.peak_bytes},
                 {"peak_time_ns", rank.peak_time_ns},
                 {"at_peak", bytes_by_category(rank.at_peak)},
                 {"reserved_bytes", rank.reserved_bytes},
                 {"predicted_peak_bytes", nullptr},
                 {"predicted_of_steps_bytes", nullptr}};
    for (const analysis::HolderList& list : analysis::kHolderLists)
        json[std::string(list.by) + "s"] = holders(rank.*list.holders);
    json.update({{"devices", rank.devices},
                 {"growth", nullptr},
                 {"counted", rank.until_last_use ? "active" : "allocated"},
                 {"fragmentation", nullptr},
                 {"other_spaces", Json::array()},
                 {"failures", Json::array()}});
    if (rank.fragmentation) {
        const analysis::Fragmentation& f = *rank.fragmentation;
        json["fragmentation"] = {{"held_bytes", f.held_bytes},           {"segments", f.segments},
                                 {"free_bytes", f.free_bytes},           {"free_blocks", f.free_blocks},
                                 {"largest_free_bytes", f.largest_free}, {"percent", f.percent()}};
    }
    if (rank.growth) {
        const analysis::MemoryGrowth& g = *rank.growth;
        json["growth"] = {{"category", name(schema::MemoryCategory::communication)},
                          {"steps", g.steps},
                          {"first_bytes", g.first_bytes},
                          {"last_bytes", g.last_bytes},
                          {"host_library", g.host_library.empty() ? Json(nullptr) : Json(g.host_library)}};
    }
    for (const analysis::SpacePeak& space : rank.other_spaces) {
        json["other_spaces"].push_back({{"space", std::string(name(space.space))},
                                        {"peak_bytes", space.peak_bytes},
                                        {"peak_time_ns", space.peak_time_ns}});
    }
    for (const analysis::MemoryFailure& failure : rank.failures)
        json["failures"].push_back({{"time_ns", failure.time_ns}, {"text", failure.text}});
    if (rank.predicted_peak_bytes >= 0) {
        json["predicted_peak_bytes"] = rank.predicted_peak_bytes;
        json["predicted_at_peak"] = bytes_by_category(rank.predicted_at_peak);
        json["predicted_where"] = rank.predicted_where;
        if (rank.predicted_of_steps >= 0) json["predicted_of_steps_bytes"] = rank.predicted_of_steps;
        json["predicted_step"] = rank.predicted_step ? Json(*rank.predicted_step) : Json(nullptr);
    }
    return json;
}

namespace {

std::string memory_headline(const analysis::RankMemory& rank, std::size_t width) {
    std::string line = fmt::format("Rank {}: peak {} MiB ({} bytes) at {} ms", rank.rank, mb(rank.peak_bytes),
                                   store::grouped(rank.peak_bytes), milliseconds(rank.peak_time_ns));
    if (rank.predicted_peak_bytes >= 0) {
        line += "; " + predicted_text(rank);
        if (!rank.predicted_where.empty()) line += fmt::format(", in {}", printable(rank.predicted_where));
    }
    if (rank.devices > 1)
        line +=
            fmt::format("; on the one of the rank's {} devices that has the most allocated", rank.devices);
    if (rank.reserved_bytes > 0) line += fmt::format("; reserved {} MiB", mb(rank.reserved_bytes));
    return paragraph(line, width);
}

std::string category_table(const analysis::RankMemory& rank, std::size_t width) {
    analysis::ResultTable table =
        with_total(category_parts(rank), {{"name", "At the peak"},
                                          {"mb"},
                                          {"bytes"},
                                          {"share"},
                                          {"predicted_mb", "Predicted MiB"},
                                          {"difference_bytes", "Difference (bytes)"}});
    table.columns.back().difference = false;  // a plain number here
    return text_of(table, width);
}

constexpr std::size_t kShownHolders = 12;

// The holders of memory, largest first; "" if no holder has a name.
std::string holder_table(std::string_view title, const std::vector<analysis::MemoryHolder>& all,
                         std::int64_t peak, std::size_t width) {
    if (!names_somebody(all)) return {};
    const std::vector<analysis::MemoryPart> parts = holder_parts(holders_at_peak(all), peak, kShownHolders);
    return "\n" + text_of(parts_table(parts, {{"name", title}, {"mb"}, {"bytes"}, {"share"}}), width);
}

std::string table_text(const analysis::MemoryReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text = counted_title(report) + "\n";
    for (const analysis::RankMemory& rank : report.ranks) {
        if (rank.is_empty()) {
            text += fmt::format("\nRank {}: nothing allocated here, or allocations were not recorded\n",
                                rank.rank);
            continue;
        }
        text += '\n' + memory_headline(rank, width) + fragmentation_line(rank) + spaces_and_failures(rank) +
                growth_text(rank, width);
        text += category_table(rank, width);
        text += holder_table("By unit", rank.units, rank.peak_bytes, width);
        text += holder_table("By module", rank.modules, rank.peak_bytes, width);
        text += holder_table("By annotation", rank.annotations, rank.peak_bytes, width);
        text += holder_table("By frame of the program", rank.stacks, rank.peak_bytes, width);
        // In Kineto's traces only the names of operators show what allocated.
        if (!names_somebody(rank.units) && !names_somebody(rank.modules) && rank.stacks.empty())
            text += holder_table("By name", rank.buffers, rank.peak_bytes, width);
    }
    return text;
}

std::string json_text(const analysis::MemoryReport& report) {
    return ranks_line(report.ranks, [&](const analysis::RankMemory& rank) {
        Json json = memory_json(rank);
        json["space"] = name(report.space);
        return json;
    });
}

std::string csv_text(const analysis::MemoryReport& report) {
    std::vector<std::vector<store::Cell>> rows;
    for (const analysis::RankMemory& rank : report.ranks) {
        const auto add = [&](std::string_view by, std::string_view name, std::int64_t bytes,
                             store::Cell predicted) {
            rows.push_back({analysis::to_cell(rank.rank), analysis::to_cell(by), analysis::to_cell(name),
                            bytes, std::move(predicted)});
        };
        const bool predicted = rank.predicted_peak_bytes >= 0;
        add("peak", "total", rank.peak_bytes,
            predicted ? analysis::to_cell(rank.predicted_peak_bytes) : store::Cell());
        for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
            add("category", schema::kMemoryCategoryNames[c], rank.at_peak[c],
                predicted ? analysis::to_cell(rank.predicted_at_peak[c]) : store::Cell());
        }
        for (const analysis::HolderList& list : analysis::kHolderLists) {
            for (const analysis::MemoryHolder& holder : rank.*list.holders)
                add(list.by, holder.name, holder.bytes, {});
        }
        for (const analysis::SpacePeak& space : rank.other_spaces)
            add("space", name(space.space), space.peak_bytes, {});
    }
    return rows_csv({{"rank"}, {"by"}, {"name"}, {"bytes"}, {"predicted_bytes"}}, rows);
}

}  // namespace

std::string render(const analysis::MemoryReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
