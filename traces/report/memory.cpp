// Peak memory as a table for people: what `memory` prints. MB = 2^20 bytes.
#include <algorithm>

#include <fmt/core.h>

#include "traces/report/formats.h"
#include "traces/report/memory_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

namespace shardscope::traces {
namespace {

std::string memory_headline(const RankMemory& rank, std::size_t width) {
    std::string line = fmt::format("Rank {}: peak {} MB ({} bytes) at {} ms", rank.rank, mb(rank.peak_bytes),
                                   grouped(rank.peak_bytes), milliseconds(rank.peak_time_ns));
    if (rank.predicted_peak_bytes >= 0) {
        line += "; " + predicted_text(rank);
        if (!rank.predicted_where.empty()) line += fmt::format(", in {}", printable(rank.predicted_where));
    }
    if (rank.devices > 1)
        line += fmt::format("; of the rank's {} devices the one that holds most", rank.devices);
    if (rank.reserved_bytes > 0) line += fmt::format("; reserved {} MB", mb(rank.reserved_bytes));
    return paragraph(line, width);
}

std::string category_table(const RankMemory& rank, std::size_t width) {
    const bool predicted = rank.predicted_peak_bytes >= 0 && rank.prediction_applies;
    std::vector<std::string> header = {"At the peak", "MB", "Bytes", "Share (%)"};
    if (predicted) header.insert(header.end(), {"Predicted MB", "Difference (bytes)"});
    std::vector<Align> align(header.size(), Align::right);
    align.front() = Align::left;
    TextTable table(align);
    table.header(header);
    const auto add = [&](std::string_view name, std::int64_t bytes, std::int64_t expected) {
        std::vector<std::string> cells = {std::string(name), mb(bytes), grouped(bytes),
                                          percent(bytes, rank.peak_bytes)};
        if (predicted) cells.insert(cells.end(), {mb(expected), grouped(bytes - expected)});
        table.row(std::move(cells));
    };
    for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
        add(kMemoryCategoryNames[c], rank.at_peak[c], rank.predicted_at_peak[c]);
    }
    table.rule();
    add("total", rank.peak_bytes, rank.predicted_peak_bytes);
    return table.text(width);
}

constexpr std::size_t kShownHolders = 12, kHolderWidth = 64;

// What held something, largest first. A single line that names nobody says nothing.
std::string holder_table(std::string_view title, const std::vector<MemoryHolder>& all, std::int64_t peak,
                         std::size_t width) {
    std::vector<const MemoryHolder*> holders;
    for (const MemoryHolder& holder : all) {
        if (holder.bytes != 0) holders.push_back(&holder);
    }
    if (!names_somebody(all)) return {};
    TextTable table({Align::left, Align::right, Align::right, Align::right});
    table.header({std::string(title), "MB", "Bytes", "Share (%)"});
    const std::size_t shown = holders.size() <= kShownHolders + 1 ? holders.size() : kShownHolders;
    const auto add = [&](const std::string& name, std::int64_t bytes) {
        table.row({name, mb(bytes), grouped(bytes), percent(bytes, peak)});
    };
    for (std::size_t i = 0; i < shown; ++i) add(shortened(holders[i]->name, kHolderWidth), holders[i]->bytes);
    std::int64_t rest = 0;
    for (std::size_t i = shown; i < holders.size(); ++i) rest += holders[i]->bytes;
    if (shown < holders.size()) add(fmt::format("… {} more", holders.size() - shown), rest);
    return "\n" + table.text(width);
}

}  // namespace

std::string table_text(const MemoryReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    std::string text = counted_title(report) + "; MB = 2^20 bytes\n";
    for (const RankMemory& rank : report.ranks) {
        if (rank.units.empty() && rank.peak_bytes == 0 && rank.predicted_peak_bytes < 0) {
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
        // Kineto's traces tell operators, and nothing else that names who allocated.
        if (!names_somebody(rank.units) && !names_somebody(rank.modules) && rank.stacks.empty())
            text += holder_table("By name", rank.buffers, rank.peak_bytes, width);
    }
    return text;
}

}  // namespace shardscope::traces
