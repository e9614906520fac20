// Each run from its own summary and collectives, then beside the smallest; see scaling.h.
#include "traces/analysis/scaling.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "traces/analysis/collectives.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

// 0 where the key is missing or no number above 0.
std::int64_t number(const Trace& trace, std::string_view key) {
    const std::string_view text = trace.config_value(key);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value > 0 ? value : 0;
}

int ranks_of_job(const Trace& trace) {
    std::int64_t ranks =
        std::max<std::int64_t>(static_cast<std::int64_t>(trace.ranks.size()), number(trace, "run.ranks"));
    for (const std::int32_t size : trace.collectives.group_size) ranks = std::max<std::int64_t>(ranks, size);
    return static_cast<int>(std::min<std::int64_t>(ranks, 1 << 30));
}

void add_samples(const Trace& trace, ScalingRun& run) {
    const std::int64_t batch = number(trace, "data.batch");
    if (batch == 0) return;
    const std::int64_t accumulation = std::max<std::int64_t>(number(trace, "train.accumulation"), 1);
    run.samples_per_step =
        static_cast<double>(batch) * static_cast<double>(run.ranks) * static_cast<double>(accumulation);
    const std::string_view model = trace.config_value("model.type");
    if (model == "gpt" || model == "llama")
        run.tokens_per_step = run.samples_per_step * static_cast<double>(number(trace, "model.context"));
}

void add_times(const Trace& trace, const Selection& selection, ScalingRun& run) {
    const ExecutionSummary summary = summarize(trace, selection);
    double ranks = 0;
    for (const RankSummary& rank : summary.ranks) {
        if (rank.steps.empty()) continue;
        ++ranks;
        run.steps = std::max(run.steps, static_cast<std::int64_t>(rank.steps.size()));
        run.step_us += rank.average_step_us;
        for (std::size_t c = 0; c < run.categories_us.size(); ++c) run.categories_us[c] += rank.average_us[c];
    }
    if (ranks == 0) return;
    run.step_us /= ranks;
    for (double& us : run.categories_us) us /= ranks;
}

void add_operations(const Trace& trace, const Selection& selection, ScalingRun& run) {
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
            // The share of transfer is known of all collectives of the kind together.
            if (stats.us > 0) it->transfer_us += share * stats.us_per_step * stats.transfer_us / stats.us;
        }
    }
    std::sort(run.operations.begin(), run.operations.end(),
              [](const OperationTime& a, const OperationTime& b) { return a.operation < b.operation; });
}

void compare_with(const ScalingRun& base, ScalingRun& run) {
    if (base.samples_per_second() > 0 && run.samples_per_second() > 0) {
        run.speed_up = run.samples_per_second() / base.samples_per_second();
        run.efficiency = run.speed_up * base.ranks / run.ranks;
    }
    for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
        const double more = run.categories_us[c] - base.categories_us[c];
        if (more <= run.grew_us) continue;
        run.grew = static_cast<int>(c);
        run.grew_us = more;
    }
}

}  // namespace

ScalingReport scaling_report(const std::vector<const Trace*>& traces, const Selection& selection) {
    ScalingReport report;
    for (const Trace* trace : traces) {
        ScalingRun run;
        run.file = trace->path;
        run.ranks_in_trace = static_cast<int>(trace->ranks.size());
        run.ranks = ranks_of_job(*trace);
        add_samples(*trace, run);
        add_times(*trace, selection, run);
        add_operations(*trace, selection, run);
        report.runs.push_back(std::move(run));
    }
    std::stable_sort(report.runs.begin(), report.runs.end(),
                     [](const ScalingRun& a, const ScalingRun& b) { return a.ranks < b.ranks; });
    if (report.runs.empty()) return report;
    const ScalingRun base = report.runs.front();
    for (ScalingRun& run : report.runs) compare_with(base, run);
    return report;
}

}  // namespace shardscope::traces
