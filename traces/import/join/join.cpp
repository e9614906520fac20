#include "traces/import/join/join.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/import/join/join_columns.h"
#include "traces/import/join/join_ids.h"
#include "traces/merge/run_facts.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::importer {

namespace {

// Rows that a trace keeps as they are (Trace::kept).
void join_kept_rows(const Parts& parts, const JoinIds& ids, store::Trace& out) {
    store::Trace::each_kind([&]<typename Row>(Row*) {
        std::vector<Row>& rows = out.kept<Row>();
        for (std::size_t p = 0; p < parts.size(); ++p) {
            for (Row row : std::as_const(*parts[p]).template kept<Row>()) {
                schema::visit_names(row, [&](schema::StringId& id) { id = ids.text(p, id); });
                schema::visit_times(row, [&](std::int64_t& time) { time = ids.time(p, time); });
                schema::visit_ranks(row, [&](int& number) { number = ids.rank_number(p, number); });
                rows.push_back(std::move(row));
            }
        }
        schema::put_in_order(rows);
    });
}

void join_facts(const Parts& parts, const JoinIds& ids, store::Trace& out) {
    std::vector<merge::RunFacts> facts;
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
    std::set<int> versions;
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const store::Trace& t = *parts[p];
        facts.push_back(t.config);
        versions.insert(t.schema_version);
        out.ended = out.ended && t.ended;
        out.dropped += t.dropped;
        out.invalid_events += t.invalid_events;
        if (t.first_ns < t.last_ns) {
            first = std::min(first, ids.time(p, t.first_ns));
            last = std::max(last, ids.time(p, t.last_ns));
        }
        for (store::Step step : t.steps) {
            step.rank = ids.rank(p, step.rank);
            step.start = ids.time(p, step.start);
            step.end = ids.time(p, step.end);
            out.steps.push_back(step);
        }
        for (schema::PredictionRow row : t.predictions) {
            row.rank = ids.rank_number(p, row.rank);
            out.predictions.push_back(std::move(row));
        }
        for (schema::PredictionPartRow row : t.prediction_parts) {
            row.rank = ids.rank_number(p, row.rank);
            const int id = static_cast<int>(row.id);
            if (row.kind == schema::PredictionPart::unit) row.id = ids.unit(p, id);
            if (row.kind == schema::PredictionPart::module) row.id = ids.module(p, id);
            out.prediction_parts.push_back(std::move(row));
        }
        for (schema::DiagnosticRow row : t.diagnostics) {
            row.time = ids.time(p, row.time);
            row.text = fmt::format("{}: {}", t.path, row.text);
            out.diagnostics.push_back(std::move(row));
        }
    }
    if (first <= last) {
        out.first_ns = first;
        out.last_ns = last;
    }
    for (const std::string& text : ids.renumbered())
        out.diagnostics.push_back({.time = 0, .severity = schema::Severity::information, .text = text});
    out.schema_version = versions.size() == 1 ? *versions.begin() : 0;
    out.path = fmt::format("{} and {} more", parts[0]->path, parts.size() - 1);
    schema::sort_rows(out.steps, [](const store::Step& a, const store::Step& b) {
        return std::tie(a.rank, a.start) < std::tie(b.rank, b.start);
    });
    out.config = merge::merge_run_facts(facts);
    const auto us = [](std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) * 1e-3); };
    out.config.emplace_back("merge.parts", std::to_string(parts.size()));
    std::set<std::int64_t> unended;
    for (const auto& part : parts) {
        if (part->ended && !merge::was_finished_later(part->config)) continue;
        for (const store::Rank& rank : part->ranks) unended.insert(rank.number);
    }
    if (!unended.empty()) {
        const std::vector<std::int64_t> ranks(unended.begin(), unended.end());
        out.config.emplace_back(merge::kUnendedRanks, store::number_list(ranks));
    }
    out.config.emplace_back("merge.collectives", std::to_string(ids.alignment().collectives));
    out.config.emplace_back("merge.residual_us", us(ids.alignment().residual_ns));
    out.config.emplace_back("merge.residual_worst_us", us(ids.alignment().worst_ns));
    out.config.emplace_back("merge.residual_by_wall_clock_us", us(ids.alignment().residual_by_wall_ns));
    std::int64_t uncertainty = -1;
    for (const merge::AlignedPart& part : ids.alignment().parts)
        uncertainty = std::max(uncertainty, part.uncertainty_ns);
    if (uncertainty >= 0) {
        out.config.emplace_back("merge.residual_measured_us", us(ids.alignment().residual_measured_ns));
        out.config.emplace_back("merge.clock_uncertainty_us", us(uncertainty));
    }
}

}  // namespace

std::vector<merge::PartClock> clocks_of(const std::vector<std::unique_ptr<store::Trace>>& parts) {
    std::vector<merge::PartClock> clocks;
    for (const auto& part : parts) {
        merge::PartClock& clock = clocks.emplace_back();
        clock.utc_ns = part->start_utc_ns;
        clock.system_ns = part->start_system_ns;
        clock.length_ns = part->last_ns;
        if (!part->ranks.empty()) {
            clock.host = part->ranks.front().host;
            clock.has_rank_0 = part->ranks.front().number == 0;
        }
        for (const schema::ClockRow& row : part->clocks) {
            const auto rank = std::find_if(part->ranks.begin(), part->ranks.end(),
                                           [&](const store::Rank& r) { return r.number == row.rank; });
            if (rank != part->ranks.end() && rank->host == clock.host)
                clock.measures.push_back({row.at_ns, row.offset_ns, row.uncertainty_ns});
        }
        const store::Collectives& c = part->collectives;
        for (std::size_t i = 0; i < c.size(); ++i) {
            if (c.event[i] < 0) continue;
            const auto event = static_cast<std::size_t>(c.event[i]);
            clock.add(c.operation[i], c.group[i], c.group_size[i], c.sequence[i], c.rank[i],
                      part->device.start[event], part->device.end[event]);
        }
    }
    return clocks;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): frees the parts' memory on return
std::unique_ptr<store::Trace> join_traces(std::vector<std::unique_ptr<store::Trace>> parts) {
    auto result = std::make_unique<store::Trace>();
    const JoinIds ids(parts, *result);
    join_columns(parts, ids, *result);
    join_kept_rows(parts, ids, *result);
    join_facts(parts, ids, *result);
    return result;
}

}  // namespace shardscope::traces::importer
