// See unit_rows.h.
#include "viewer/panels/units/unit_rows.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

using Cell = tables::CellTable::Cell;
using Kind = tables::TableColumn::Kind;
using traces::analysis::UnitCosts;
using traces::analysis::UnitPhase;

Cell time_of(std::int64_t ns, std::int64_t steps) {
    return steps > 0 ? tables::us_cell(static_cast<double>(ns) * 1e-3 / static_cast<double>(steps))
                     : tables::no_cell();
}
Cell size_of(std::int64_t bytes, std::int64_t steps) {
    return steps > 0 && bytes > 0
               ? tables::decimal_cell(static_cast<double>(bytes) / (1 << 20) / static_cast<double>(steps), 2)
               : tables::no_cell();
}
Cell count_of(std::int64_t count, std::int64_t steps) {
    if (steps <= 0) return tables::no_cell();
    return count % steps == 0
               ? tables::count_cell(count / steps)
               : tables::decimal_cell(static_cast<double>(count) / static_cast<double>(steps), 2);
}
Cell known_size(std::int64_t bytes) {
    return bytes >= 0 ? tables::mb_cell(bytes) : tables::no_cell();
}

// Sums and means are different quantities: "gather_us", as in the verb's JSON, and "gather_per_step_us".
void name_means(std::vector<tables::TableColumn>& columns) {
    constexpr std::array<std::string_view, 6> kNoSums = {"unit",     "rank",    "steps",
                                                         "shard_mb", "peak_mb", "hidden_by"};
    for (tables::TableColumn& column : columns) {
        if (std::find(kNoSums.begin(), kNoSums.end(), column.id) != kNoSums.end()) continue;
        const bool unit = column.id.ends_with("_us") || column.id.ends_with("_mb");
        column.id.insert(column.id.size() - (unit ? 3 : 0), "_per_step");
        column.unit += column.unit.empty() ? "per step" : " per step";
        if (unit) column.width = std::max(column.width, 5.8F);
    }
}

std::vector<tables::TableColumn> unit_columns() {
    const theme::Color gather = theme::kind_color(traces::store::DeviceKind::communication);
    const theme::Color reduce = theme::shard_color(traces::analysis::ShardState::reducing);
    return {
        {"unit", "Unit and phase", "", Kind::text, 11, 10, 0, {}},
        {"gathers", "Gathers", "", Kind::number, 4.5F, 7, 0, "All-gathers of the unit."},
        {"gathered_mb", "Gathered", "MiB", Kind::number, 5.5F, 6, 0,
         "Bytes of the gathered unit, padding included."},
        {"gather_us", "Gather", tables::kMicro, Kind::number, 6, 10, gather,
         "Time of the gathers on the device, waiting for other ranks included."},
        {"wait_us", "Wait", tables::kMicro, Kind::number, 5.5F, 9, theme::waiting_color(),
         "The unit's compute was next on its stream, and the gather not done."},
        {"limiter_us", "Limiter", tables::kMicro, Kind::number, 6, 5, 0,
         "The limiter blocked the host before these gathers."},
        {"exposed_us", "Exposed", tables::kMicro, Kind::number, 6, 10, theme::exposed_color(),
         "Time of gathers and reductions outside compute kernels."},
        {"reductions", "Reduces", "", Kind::number, 4.5F, 7, 0, "Reduce-scatters, all-reduces and reduces."},
        {"reduced_mb", "Reduced", "MiB", Kind::number, 5.5F, 6, 0,
         "Bytes of the whole gradient, padding included."},
        {"reduce_us", "Reduce", tables::kMicro, Kind::number, 6, 8, reduce,
         "Time of the reductions on the device."},
        {"issue_to_ready_us", "To ready", tables::kMicro, Kind::number, 6, 3, 0,
         "From the host's launch of a gather to its end on the device."},
        {"held_us", "Held", tables::kMicro, Kind::number, 6.5F, 4, 0,
         "From the start of a gather to the end of the last compute that used it."},
        {"regathers", "Again", "", Kind::number, 4, 2, 0, "Gathers of a unit that was freed just before."},
        {"hidden_by", "Mainly hidden by", "", Kind::text, 9, 4, 0,
         "The unit whose compute overlapped most of it."},
    };
}

}  // namespace

std::string unit_row_name(const UnitPhase& row) {
    return row.phase == traces::schema::Phase::none ? row.name
                                                    : fmt::format("{} {}", row.name, name(row.phase));
}

std::shared_ptr<const tables::CellTable> unit_table(const std::vector<UnitPhase>& rows,
                                                    std::optional<std::int64_t> means_of) {
    std::vector<tables::TableColumn> columns = unit_columns();
    if (means_of) name_means(columns);
    const std::int64_t steps = means_of.value_or(1);
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (const UnitPhase& row : rows) {
        const UnitCosts& c = row.sum;
        const auto gathered = [&](const Cell& cell) { return c.gathers > 0 ? cell : tables::no_cell(); };
        const auto reduced = [&](const Cell& cell) { return c.reductions > 0 ? cell : tables::no_cell(); };
        table->add({tables::text_cell(unit_row_name(row)), gathered(count_of(c.gathers, steps)),
                    gathered(size_of(c.gather_bytes, steps)), gathered(time_of(c.gather_ns, steps)),
                    gathered(time_of(c.wait_ns, steps)), gathered(time_of(c.limiter_ns, steps)),
                    time_of(c.exposed_ns(), steps), reduced(count_of(c.reductions, steps)),
                    reduced(size_of(c.reduce_bytes, steps)), reduced(time_of(c.reduce_ns, steps)),
                    gathered(time_of(c.issue_to_ready_ns, steps)), gathered(time_of(c.held_ns, steps)),
                    gathered(count_of(c.regathers, steps)),
                    tables::text_cell(row.hidden_by.empty() ? "-" : row.hidden_by)});
    }
    return table;
}

std::shared_ptr<const tables::CellTable> unit_rank_table(const traces::analysis::UnitsReport& report,
                                                         bool means) {
    std::vector<tables::TableColumn> columns = {
        {"rank", "Rank", "", Kind::number, 4, 10, 0, {}},
        {"steps", "Steps", "", Kind::number, 4, 5, 0, "Kept steps that the row is made of."},
        {"gather_us",
         "Gather",
         tables::kMicro,
         Kind::number,
         7,
         9,
         theme::kind_color(traces::store::DeviceKind::communication),
         {}},
        {"wait_us", "Wait", tables::kMicro, Kind::number, 7, 9, theme::waiting_color(), {}},
        {"limiter_us", "Limiter", tables::kMicro, Kind::number, 7, 7, 0, {}},
        {"reduce_us",
         "Reduce",
         tables::kMicro,
         Kind::number,
         7,
         8,
         theme::shard_color(traces::analysis::ShardState::reducing),
         {}},
        {"exposed_us", "Exposed", tables::kMicro, Kind::number, 7, 9, theme::exposed_color(), {}},
        {"shard_mb", "Shards", "MiB", Kind::number, 6, 6, 0, "Parameters that the rank stores."},
        {"peak_mb", "Peak", "MiB", Kind::number, 6.5F, 6, 0, "Largest allocated device memory."},
        {"busy_us", "Busy", tables::kMicro, Kind::number, 7, 6, theme::accent(),
         "Time with any event on the device."},
    };
    if (means) name_means(columns);
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (const traces::analysis::RankUnits& rank : report.ranks) {
        const UnitCosts& c = rank.sum;
        const std::int64_t n = means ? rank.steps : 1;
        table->add({tables::count_cell(rank.rank), tables::count_cell(rank.steps), time_of(c.gather_ns, n),
                    time_of(c.wait_ns, n), time_of(c.limiter_ns, n), time_of(c.reduce_ns, n),
                    time_of(c.exposed_ns(), n), known_size(rank.shard_bytes), known_size(rank.peak_bytes),
                    time_of(rank.busy_ns, n)});
    }
    return table;
}

std::string regather_text(const std::vector<UnitPhase>& rows, std::int64_t steps, bool stepped) {
    std::string text;
    for (const UnitPhase& row : rows) {
        if (row.sum.regathers == 0 || steps <= 0) continue;
        const double ns = static_cast<double>(row.sum.gather_ns) / static_cast<double>(row.sum.gathers) *
                          static_cast<double>(row.sum.regathers) / static_cast<double>(steps);
        if (!text.empty()) text += "  ";
        text += fmt::format("{} is gathered again right after it was freed ({}): {}{}.", row.name,
                            name(row.phase), draw::format_duration(ns), stepped ? " per step" : "");
    }
    return text;
}

std::int32_t first_gather(const traces::store::Trace& trace, const traces::analysis::ShardStates& states,
                          traces::store::RankIndex rank, std::string_view unit, traces::schema::Phase phase,
                          std::int64_t from) {
    const auto at = std::find(states.units.begin(), states.units.end(), unit);
    if (at == states.units.end() || rank.at() >= states.ranks) return -1;
    const auto& history = states.of(rank, traces::store::UnitIndex(at - states.units.begin()));
    std::int32_t any = -1;
    for (const traces::analysis::ShardChange& change : history.changes) {
        const bool moves = change.state == traces::analysis::ShardState::gathering ||
                           change.state == traces::analysis::ShardState::reducing;
        if (!moves || change.event < 0 || change.time < from) continue;
        const std::int32_t row = trace.device.collective[static_cast<std::size_t>(change.event)];
        const traces::schema::Phase told =
            row >= 0 ? trace.collectives.phase[static_cast<std::size_t>(row)] : traces::schema::Phase::none;
        if (told == phase) return change.event;
        if (any < 0) any = change.event;
    }
    return any;
}

}  // namespace shardscope::viewer::panels
