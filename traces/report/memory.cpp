// Peak memory. MB = 2^20 bytes.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/memory_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

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

// The holders of memory, largest first. Empty if the only holder has no name.
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

Json holders(const std::vector<MemoryHolder>& all) {
    Json json = Json::array();
    for (const MemoryHolder& holder : all) {
        json.push_back({{"name", holder.name}, {"bytes", holder.bytes}});
        if (!holder.stack.empty()) json.back()["stack"] = holder.stack;
    }
    return json;
}

}  // namespace

Json bytes_by_category(const CategoryBytes& bytes) {
    Json json = Json::object();
    for (std::size_t c = 0; c < bytes.size(); ++c) json[std::string(kMemoryCategoryNames[c])] = bytes[c];
    return json;
}

Json memory_json(const RankMemory& rank) {
    Json json = {{"rank", rank.rank},
                 {"peak_bytes", rank.peak_bytes},
                 {"peak_time_ns", rank.peak_time_ns},
                 {"at_peak", bytes_by_category(rank.at_peak)},
                 {"reserved_bytes", rank.reserved_bytes},
                 {"predicted_peak_bytes", nullptr},
                 {"predicted_of_steps_bytes", nullptr},
                 {"units", holders(rank.units)},
                 {"modules", holders(rank.modules)},
                 {"buffers", holders(rank.buffers)},
                 {"annotations", holders(rank.annotations)},
                 {"stacks", holders(rank.stacks)},
                 {"devices", rank.devices},
                 {"growth", nullptr},
                 {"counted", rank.until_last_use ? "active" : "allocated"},
                 {"fragmentation", nullptr},
                 {"other_spaces", Json::array()},
                 {"failures", Json::array()}};
    if (rank.fragmentation) {
        const Fragmentation& f = *rank.fragmentation;
        json["fragmentation"] = {{"held_bytes", f.held_bytes},           {"segments", f.segments},
                                 {"free_bytes", f.free_bytes},           {"free_blocks", f.free_blocks},
                                 {"largest_free_bytes", f.largest_free}, {"percent", f.percent()}};
    }
    if (rank.growth) {
        const MemoryGrowth& g = *rank.growth;
        json["growth"] = {{"category", name(MemoryCategory::communication)},
                          {"steps", g.steps},
                          {"first_bytes", g.first_bytes},
                          {"last_bytes", g.last_bytes},
                          {"host_library", g.host_library.empty() ? Json(nullptr) : Json(g.host_library)}};
    }
    for (const SpacePeak& space : rank.other_spaces) {
        json["other_spaces"].push_back({{"space", std::string(name(space.space))},
                                        {"peak_bytes", space.peak_bytes},
                                        {"peak_time_ns", space.peak_time_ns}});
    }
    for (const MemoryFailure& failure : rank.failures)
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
        const auto add = [&](const char* by, std::string_view name, std::int64_t bytes, Cell predicted) {
            rows.push_back({to_cell(rank.rank), to_cell(by), to_cell(name), bytes, std::move(predicted)});
        };
        const bool predicted = rank.predicted_peak_bytes >= 0;
        add("peak", "total", rank.peak_bytes, predicted ? to_cell(rank.predicted_peak_bytes) : Cell());
        for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
            add("category", kMemoryCategoryNames[c], rank.at_peak[c],
                predicted ? to_cell(rank.predicted_at_peak[c]) : Cell());
        }
        for (const MemoryHolder& holder : rank.units) add("unit", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.modules) add("module", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.buffers) add("buffer", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.annotations) add("annotation", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.stacks) add("stack", holder.name, holder.bytes, {});
        for (const SpacePeak& space : rank.other_spaces)
            add("space", name(space.space), space.peak_bytes, {});
    }
    return rows_csv(csv_columns({"rank", "by", "name", "bytes", "predicted_bytes"}), rows);
}

}  // namespace

std::string render(const MemoryReport& result, Format format, std::size_t width) {
    return render_as(
        format, [&] { return table_text(result, width); }, [&] { return json_text(result); },
        [&] { return csv_text(result); });
}

}  // namespace shardscope::traces
