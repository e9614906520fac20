// Allocations as table, JSON and CSV. MB = 2^20 bytes.
#include <algorithm>
#include <functional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/memory/allocations_report.h"
#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"
#include "traces/store/grouped.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kSiteWidth = 80;

std::string asked_by(const AllocationDetail& a) {
    const std::string_view frame = asking_frame(a.stack);
    return frame.empty() ? std::string() : short_frame(frame);
}

std::string hexadecimal(std::uint64_t address) {
    return fmt::format("{:#x}", address);
}

struct TextColumn {
    const char* title;
    std::function<std::string(const AllocationDetail&)> cell;  // empty: not told
};

const std::vector<TextColumn>& text_columns() {
    const auto text = [](std::string_view AllocationDetail::*member) {
        return [member](const AllocationDetail& a) { return std::string(a.*member); };
    };
    static const std::vector<TextColumn> columns = {
        {"Category", [](const AllocationDetail& a) { return std::string(name(a.category)); }},
        {"Space", [](const AllocationDetail& a) { return std::string(name(a.space)); }},
        {"Unit", text(&AllocationDetail::unit)},
        {"Module", text(&AllocationDetail::module)},
        {"Name", text(&AllocationDetail::name)},
        {"Annotation", text(&AllocationDetail::annotation)},
        {"Asked for by", asked_by},
        {"Phase",
         [](const AllocationDetail& a) {
             return a.phase == Phase::none ? std::string() : std::string(name(a.phase));
         }},
    };
    return columns;
}

std::string rank_table(const RankAllocations& rank, bool all_spaces, std::size_t width) {
    std::vector<std::string> header = {"Bytes", "MB", "From (ms)", "Lived (ms)"};
    std::vector<Align> align(header.size(), Align::right);
    std::vector<const TextColumn*> shown;  // that some row has
    for (const TextColumn& column : text_columns()) {
        const bool told = std::any_of(rank.allocations.begin(), rank.allocations.end(),
                                      [&](const AllocationDetail& a) { return !column.cell(a).empty(); });
        if (!told || (std::string_view(column.title) == "Space" && !all_spaces)) continue;
        shown.push_back(&column);
        header.emplace_back(column.title);
        align.push_back(Align::left);
    }
    TextTable table(align);
    table.header(std::move(header));
    for (const AllocationDetail& a : rank.allocations) {
        std::vector<std::string> cells = {grouped(a.bytes), mb(a.bytes), milliseconds(a.time),
                                          a.freed ? milliseconds(*a.freed - a.time) : "-"};
        for (const TextColumn* column : shown) cells.push_back(shortened(column->cell(a), kSiteWidth));
        table.row(std::move(cells));
    }
    return table.text(width);
}

// JSON and CSV tell what is not known as null and as an empty cell.
Json text_json(std::string_view text) {
    return text.empty() ? Json(nullptr) : Json(std::string(text));
}
Cell text_cell(std::string_view text) {
    return text.empty() ? Cell() : Cell(std::string(text));
}
std::string_view phase_name(const AllocationDetail& a) {
    return a.phase == Phase::none ? std::string_view() : name(a.phase);
}

}  // namespace

std::string table_text(const AllocationsReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const std::string where =
        report.space ? fmt::format(" of {} memory", name(*report.space)) : std::string();
    std::string text = paragraph(
        "Lived: until the address was freed or given again; - to the end of the trace. MB = 2^20 bytes.",
        width);
    for (const RankAllocations& rank : report.ranks) {
        text += fmt::format("\nRank {}: {}{}, {} MB in all", rank.rank,
                            counted(rank.count, "allocation", "allocations"), where, mb(rank.bytes));
        const auto shown = static_cast<std::int64_t>(rank.allocations.size());
        if (shown < rank.count) text += fmt::format("; the largest {}", grouped(shown));
        text += '\n';
        if (shown > 0) text += rank_table(rank, !report.space, width);
    }
    return text;
}

std::string json_text(const AllocationsReport& report) {
    Json ranks = Json::array();
    for (const RankAllocations& rank : report.ranks) {
        Json allocations = Json::array();
        for (const AllocationDetail& a : rank.allocations) {
            allocations.push_back({{"bytes", a.bytes},
                                   {"time_ns", a.time},
                                   {"freed_ns", a.freed ? Json(*a.freed) : Json(nullptr)},
                                   {"category", name(a.category)},
                                   {"space", name(a.space)},
                                   {"unit", text_json(a.unit)},
                                   {"module", text_json(a.module)},
                                   {"name", text_json(a.name)},
                                   {"annotation", text_json(a.annotation)},
                                   {"stack", text_json(a.stack)},
                                   {"phase", text_json(phase_name(a))},
                                   {"address", hexadecimal(a.address)}});
        }
        ranks.push_back({{"rank", rank.rank},
                         {"count", rank.count},
                         {"bytes", rank.bytes},
                         {"allocations", std::move(allocations)}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const AllocationsReport& report) {
    std::vector<std::vector<Cell>> rows;
    for (const RankAllocations& rank : report.ranks) {
        for (const AllocationDetail& a : rank.allocations) {
            rows.push_back({std::int64_t(rank.rank), a.bytes, a.time, a.freed ? Cell(*a.freed) : Cell(),
                            std::string(name(a.category)), std::string(name(a.space)), text_cell(a.unit),
                            text_cell(a.module), text_cell(a.name), text_cell(a.annotation),
                            text_cell(asked_by(a)), text_cell(phase_name(a)), hexadecimal(a.address)});
        }
    }
    return csv_text({{"rank"},
                     {"bytes"},
                     {"time_ns"},
                     {"freed_ns"},
                     {"category"},
                     {"space"},
                     {"unit"},
                     {"module"},
                     {"name"},
                     {"annotation"},
                     {"asked_for_by"},
                     {"phase"},
                     {"address"}},
                    rows);
}

}  // namespace shardscope::traces
