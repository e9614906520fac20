// Peak memory; see memory_part_fields(). MB = 2^20 bytes.
#include "traces/analysis/memory/memory.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/memory_parts.h"
#include "traces/report/print.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::string memory_headline(const RankMemory& rank, std::size_t width) {
    std::string line = fmt::format("Rank {}: peak {} MB ({} bytes) at {} ms", rank.rank, mb(rank.peak_bytes),
                                   grouped(rank.peak_bytes), milliseconds(rank.peak_time_ns));
    if (rank.predicted_peak_bytes >= 0) {
        line += "; " + predicted_text(rank);
        if (!rank.predicted_where.empty()) line += fmt::format(", in {}", printable(rank.predicted_where));
    }
    if (rank.devices > 1)
        line += fmt::format("; of the rank's {} devices the one with the most allocated", rank.devices);
    if (rank.reserved_bytes > 0) line += fmt::format("; reserved {} MB", mb(rank.reserved_bytes));
    return paragraph(line, width);
}

std::string category_table(const RankMemory& rank, std::size_t width) {
    ResultTable table = with_total(category_parts(rank), {{"name", "At the peak"},
                                                          {"mb"},
                                                          {"bytes"},
                                                          {"share"},
                                                          {"predicted_mb", "Predicted MB"},
                                                          {"difference_bytes", "Difference (bytes)"}});
    table.columns.back().difference = false;  // a plain number here
    return text_of(table, width);
}

constexpr std::size_t kShownHolders = 12;

// The holders of memory, largest first. Empty if the only holder has no name.
std::string holder_table(std::string_view title, const std::vector<MemoryHolder>& all, std::int64_t peak,
                         std::size_t width) {
    if (!names_somebody(all)) return {};
    const std::vector<MemoryPart> parts = holder_parts(holders_at_peak(all), peak, kShownHolders);
    return "\n" + text_of(parts_table(parts, {{"name", title}, {"mb"}, {"bytes"}, {"share"}}), width);
}

std::string table_text(const MemoryReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text = counted_title(report) + "; MB = 2^20 bytes\n";
    for (const RankMemory& rank : report.ranks) {
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
        // Kineto's traces name operators, and nothing else that shows who allocated.
        if (!names_somebody(rank.units) && !names_somebody(rank.modules) && rank.stacks.empty())
            text += holder_table("By name", rank.buffers, rank.peak_bytes, width);
    }
    return text;
}

std::string json_text(const MemoryReport& report) {
    return ranks_line(report.ranks, [&](const RankMemory& rank) {
        Json json = memory_json(rank);
        json["space"] = name(report.space);
        return json;
    });
}

std::string csv_text(const MemoryReport& report) {
    std::vector<std::vector<Cell>> rows;
    for (const RankMemory& rank : report.ranks) {
        const auto add = [&](std::string_view by, std::string_view name, std::int64_t bytes, Cell predicted) {
            rows.push_back({to_cell(rank.rank), to_cell(by), to_cell(name), bytes, std::move(predicted)});
        };
        const bool predicted = rank.predicted_peak_bytes >= 0;
        add("peak", "total", rank.peak_bytes, predicted ? to_cell(rank.predicted_peak_bytes) : Cell());
        for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
            add("category", kMemoryCategoryNames[c], rank.at_peak[c],
                predicted ? to_cell(rank.predicted_at_peak[c]) : Cell());
        }
        for (const HolderList& list : kHolderLists) {
            for (const MemoryHolder& holder : rank.*list.holders) add(list.by, holder.name, holder.bytes, {});
        }
        for (const SpacePeak& space : rank.other_spaces)
            add("space", name(space.space), space.peak_bytes, {});
    }
    return rows_csv({{"rank"}, {"by"}, {"name"}, {"bytes"}, {"predicted_bytes"}}, rows);
}

}  // namespace

std::string render(const MemoryReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces
