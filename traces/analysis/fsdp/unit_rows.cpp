// See unit_rows.h.
#include "traces/analysis/fsdp/unit_rows.h"

#include <algorithm>
#include <map>

#include "traces/schema/sort_rows.h"

namespace shardscope::traces::analysis {

UnitRows::Place UnitRows::place(store::RankIndex rank, store::UnitIndex unit, schema::Phase phase,
                                std::int32_t number_of_step, std::int64_t number) {
    const std::size_t at = row(rank, unit, phase);
    return {at, step(rows_[at], number_of_step, number)};
}

std::string_view UnitRows::name(store::UnitIndex unit) const {
    return unit.known() ? std::string_view(names_[unit.at()]) : "(no unit)";
}

std::size_t UnitRows::row(store::RankIndex rank, store::UnitIndex unit, schema::Phase phase) {
    const std::size_t of_unit = rank.at() * (names_.size() + 1) + (unit.known() ? unit.at() : names_.size());
    const auto [it, is_new] =
        row_of_.try_emplace(of_unit * schema::kPhases + static_cast<std::size_t>(phase), rows_.size());
    if (is_new) {
        Row& made = rows_.emplace_back();
        made.rank = rank;
        made.result.name = name(unit);
        made.result.phase = phase;
    }
    return it->second;
}

std::size_t UnitRows::step(Row& row, std::int32_t step, std::int64_t number) {
    if (row.last_step != step || row.result.steps.empty()) {
        const std::pair<std::int32_t, std::size_t> first(step, 0);
        auto it = std::lower_bound(row.order.begin(), row.order.end(), first);
        if (it == row.order.end() || it->first != step) {
            it = row.order.insert(it, {step, row.result.steps.size()});
            row.result.steps.push_back({number, {}});
        }
        row.last_step = step;
        row.last_place = it->second;
    }
    return row.last_place;
}

void UnitRows::sum_over_steps(Row& row) const {
    UnitPhase& result = row.result;
    std::sort(result.steps.begin(), result.steps.end(),
              [](const UnitStep& a, const UnitStep& b) { return a.number < b.number; });
    for (const UnitStep& step : result.steps) result.sum.add(step.costs);
    // Ties go to no unit, then to the first unit.
    std::pair<std::int64_t, int> most{0, 0};
    for (const auto& [unit, ns] : row.hidden) most = std::max(most, {ns, -unit.value});
    if (most.first > 0) {
        result.hidden_by = name(store::UnitIndex(-most.second));
        result.hidden_ns = most.first;
    }
}

void UnitRows::finish(UnitsReport& report, std::span<const std::size_t> place_of_rank) {
    for (std::size_t u = 0; u < names_.size(); ++u) order_.emplace(names_[u], u);
    for (Row& row : rows_) {
        sum_over_steps(row);
        RankUnits& rank = report.ranks[place_of_rank[row.rank.at()]];
        rank.sum.add(row.result.sum);
        rank.rows.push_back(std::move(row.result));
    }
    for (RankUnits& rank : report.ranks) in_order(rank.rows);
    sum_over_ranks(report);
}

// Sorts by the order of the units' names; rows without a unit come last.
void UnitRows::in_order(std::vector<UnitPhase>& rows) {
    const auto place = [&](const UnitPhase& row) {
        const auto it = order_.find(row.name);
        return std::pair(it != order_.end() ? it->second : names_.size(), row.phase);
    };
    schema::sort_rows(rows, [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

void UnitRows::sum_over_ranks(UnitsReport& report) {
    std::map<std::pair<std::string_view, schema::Phase>, std::size_t> places;
    std::vector<std::map<std::string_view, std::int64_t>> hidden;
    for (const RankUnits& rank : report.ranks) {
        for (const UnitPhase& row : rank.rows) {
            const auto [it, is_new] = places.try_emplace({row.name, row.phase}, report.all_ranks.size());
            if (is_new) {
                report.all_ranks.push_back(
                    {.name = row.name, .phase = row.phase, .sum = {}, .steps = {}, .hidden_by = {}});
                hidden.emplace_back();
            }
            report.all_ranks[it->second].sum.add(row.sum);
            if (row.hidden_ns > 0) hidden[it->second][row.hidden_by] += row.hidden_ns;
        }
    }
    for (std::size_t i = 0; i < hidden.size(); ++i) {
        UnitPhase& row = report.all_ranks[i];
        for (const auto& [unit, ns] : hidden[i]) {
            if (ns <= row.hidden_ns) continue;
            row.hidden_by = unit;
            row.hidden_ns = ns;
        }
    }
    in_order(report.all_ranks);
}

}  // namespace shardscope::traces::analysis
