// Evaluates each run by its own summary and collectives, then relative to the smallest; see scaling.h.
#include "traces/analysis/compare/scaling.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/job/work_size.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

void add_samples(const store::Trace& trace, ScalingRun& run) {
    const WorkSize work = work_of_step(trace);
    run.samples_per_step = work.samples;
    run.tokens_per_step = work.tokens;
}

void add_times(const store::Trace& trace, const Selection& selection, ScalingRun& run) {
    const ExecutionSummary summary = summarize(trace, selection);
    double ranks = 0;
    std::array<double, kTimeCategories> known{};  // number of ranks
    for (const RankSummary& rank : summary.ranks) {
        if (rank.steps.empty()) continue;
        ++ranks;
        run.steps = std::max(run.steps, static_cast<std::int64_t>(rank.steps.size()));
        run.step_us += rank.average_step_us;
        for (std::size_t c = 0; c < known.size(); ++c) {
            if (!rank.knows(static_cast<TimeCategory>(c))) continue;
            run.categories_us[c] += rank.average_us[c];
            ++known[c];
        }
    }
    if (ranks == 0) return;
    run.step_us /= ranks;
    for (std::size_t c = 0; c < known.size(); ++c) run.categories_us[c] /= known[c];  // NaN without ranks
}

void add_operations(const store::Trace& trace, const Selection& selection, ScalingRun& run) {
    const CollectivesReport report = collectives_report(trace, selection);
    if (report.ranks.empty()) return;
    const double share = 1.0 / static_cast<double>(report.ranks.size());
    for (const RankCollectives& rank : report.ranks) {
        for (const OperationStats& stats : rank.operations) {
            if (stats.count_per_step == 0) continue;
            auto it = std::find_if(run.operations.begin(), run.operations.end(),
                                   [&](const OperationTime& o) { return o.operation == stats.operation; });
            if (it == run.operations.end())
                it = run.operations.insert(it, OperationTime{.operation = stats.operation});
            it->count += share * stats.count_per_step;
            it->bytes += share * stats.bytes_per_step;
            it->us += share * stats.us_per_step;
            // The share of transfer is known only for all collectives of the kind together.
            if (stats.us > 0) it->transfer_us += share * stats.us_per_step * stats.transfer_us / stats.us;
        }
    }
    std::sort(run.operations.begin(), run.operations.end(),
              [](const OperationTime& a, const OperationTime& b) { return a.operation < b.operation; });
}

// Keys that make a run another job, not the same job at another size.
bool is_of_the_job(std::string_view key) {
    constexpr std::array<std::string_view, 8> kPrefixes = {
        "parallel.", "fsdp.", "ddp.", "precision.", "memory.", "data.batch", "run.device", "sim.cluster"};
    return key == "train.accumulation" || key == "optimizer.type" ||
           std::any_of(kPrefixes.begin(), kPrefixes.end(),
                       [key](std::string_view p) { return key.starts_with(p); });
}

std::int64_t parameters_of(const store::Trace& trace) {
    std::int64_t sum = 0;
    for (const schema::ModuleRow& module : trace.modules) sum += module.parameters;
    return sum;
}

// A value that only one of the two runs has is not reported.
void tell_differences(const store::Trace& base, const store::Trace& trace, ScalingRun& run) {
    const auto add = [&](std::string_view key, std::string_view first, std::string_view own) {
        run.differs.push_back(
            fmt::format("{} ({}, {})", key, first.empty() ? "-" : first, own.empty() ? "-" : own));
    };
    if (!base.config_value("model.type").empty() && !trace.config_value("model.type").empty()) {
        for (const std::string& key : differing_keys({&base, &trace})) {
            const bool model = key.starts_with("model.");
            if (model) run.same_model = false;
            if (model || is_of_the_job(key)) add(key, base.config_value(key), trace.config_value(key));
        }
    }
    std::stable_partition(run.differs.begin(), run.differs.end(),
                          [](const std::string& key) { return key.starts_with("model."); });
    const std::int64_t first = parameters_of(base), own = parameters_of(trace);
    if (first > 0 && own > 0 && first != own) {
        run.same_model = false;
        add("parameters", std::to_string(first), std::to_string(own));
    }
}

void compare_with(const ScalingRun& base, ScalingRun& run) {
    if (!run.same_model) return;
    if (base.samples_per_second() > 0 && run.samples_per_second() > 0) {
        run.speed_up = run.samples_per_second() / base.samples_per_second();
        run.efficiency = run.speed_up * base.ranks / run.ranks;
    }
    for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
        const double more = run.categories_us[c] - base.categories_us[c];
        if (!(more > run.grew_us)) continue;  // also skips unknown values (NaN)
        run.grew = static_cast<int>(c);
        run.grew_us = more;
    }
}

}  // namespace

ScalingReport scaling_report(const std::vector<const store::Trace*>& traces, const Selection& selection) {
    ScalingReport report;
    std::vector<const store::Trace*> by_ranks = traces;
    sort_rows(by_ranks, [](const store::Trace* a, const store::Trace* b) {
        return ranks_of_job(*a) < ranks_of_job(*b);
    });
    for (const store::Trace* trace : by_ranks) {
        ScalingRun run;
        run.file = trace->path;
        run.ranks_in_trace = static_cast<int>(trace->ranks.size());
        run.ranks = ranks_of_job(*trace);
        add_samples(*trace, run);
        add_times(*trace, selection, run);
        add_operations(*trace, selection, run);
        tell_differences(*by_ranks.front(), *trace, run);
        report.runs.push_back(std::move(run));
    }
    if (report.runs.empty()) return report;
    const ScalingRun base = report.runs.front();
    for (ScalingRun& run : report.runs) compare_with(base, run);
    return report;
}

double ScalingRun::us_of(schema::Operation operation) const {
    for (const OperationTime& o : operations) {
        if (o.operation == operation) return o.us;
    }
    return 0;
}

Fields<OperationTime> operation_time_fields() {
    using O = OperationTime;
    static constexpr Field<O> kFields[] = {
        {{"name", "Operation", Unit::text, "The kind of collective."},
         [](const O& o) { return to_cell(name(o.operation)); }},
        {{"count_per_step", "Count/step", Unit::count, "Collectives per rank and step."},
         value_of<&O::count>},
        {{"bytes_per_step", "MiB/step", Unit::bytes, "Their bytes."}, known_value_of<&O::bytes>},
        {{"us_per_step", "Time", Unit::us, "Their time."}, value_of<&O::us>},
        {{"transfer_us_per_step", "Transfer", Unit::us, "That without waiting for other ranks."},
         value_of<&O::transfer_us>},
    };
    return kFields;
}

Fields<ScalingRun> scaling_fields() {
    using S = ScalingRun;
    static constexpr Field<S> kFields[] = {
        {{"ranks", "Ranks", Unit::index, "Ranks of the job, and those in the trace where these are fewer.",
          in_table},
         [](const S& run) {
             return run.ranks == run.ranks_in_trace
                        ? to_cell(run.ranks)
                        : store::Cell(fmt::format("{} ({} here)", run.ranks, run.ranks_in_trace));
         }},
        {{"file", "Run", Unit::text, "The trace."}, value_of<&S::file>},
        {{"ranks", "", Unit::index, "Ranks of the job.", in_programs}, value_of<&S::ranks>},
        {{"ranks_in_trace", "", Unit::index, "Those in the trace.", in_programs},
         value_of<&S::ranks_in_trace>},
        {{"steps", "", Unit::count, "Kept steps, of the rank with the most.", in_programs},
         value_of<&S::steps>},
        {{"average_step_us", "Step", Unit::us, "Mean step time."}, value_of<&S::step_us>},
        {{"samples_per_second", "Samples/s", Unit::number, "Samples of all ranks.", everywhere, 1},
         [](const S& run) { return known_cell(run.samples_per_second()); }},
        {{"tokens_per_second", "Tokens/s", Unit::number, "Tokens of all ranks, for text models.", everywhere,
          1},
         [](const S& run) { return known_cell(run.tokens_per_second()); }},
        {{"same_model", "", Unit::text, "Whether the run trains the smallest one's model.", in_json},
         value_of<&S::same_model>},
        {{"differs", "", Unit::text, "What differs from the smallest run beside the size.", in_json},
         nested<S>},
        {{"speed_up", "Speed-up", Unit::number, "Samples a second over those of the smallest run.",
          everywhere, 3},
         known_value_of<&S::speed_up>},
        {{"efficiency", "", Unit::number, "The speed-up over that of the ranks.", in_programs},
         known_value_of<&S::efficiency>},
        {{"efficiency", "Efficiency", Unit::percent, "The speed-up over that of the ranks.", in_table, 1},
         [](const S& run) { return known_cell(100 * run.efficiency); }},
        {{"grew", "Grew most", Unit::text, "The category that grew most over the smallest run.",
          in_json | in_table},
         [](const S& run) {
             return run.grew >= 0 ? to_cell(kTimeCategoryNames[static_cast<std::size_t>(run.grew)])
                                  : store::Cell();
         }},
        {{"grew_us", "", Unit::us, "Growth per step.", in_json},
         [](const S& run) { return run.same_model ? store::Cell(run.grew_us) : store::Cell(); }},
        {{"grew_us", "by", Unit::us, "Growth per step.", in_table, -1, false, true},
         [](const S& run) { return run.grew >= 0 ? store::Cell(run.grew_us) : blank_cell(); }},
        {{"categories_us", "", Unit::us, "Each category's time in a step.", in_json}, nested<S>},
        {{"operations", "", Unit::text, "The collectives of a step.", in_json}, nested<S>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
