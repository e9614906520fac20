// A generated plan for the tests of the Plan panel: figures that are easy to follow, in a trace without
// events.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/rows.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"

namespace shardscope::viewer {

constexpr std::int64_t kPlanMB = 1 << 20;

inline std::string plan_settings_json(const std::string& strategy, const std::string& wrap, int batch = 2) {
    return fmt::format(
        R"({{"parallel.mode":"fsdp","fsdp.sharding_strategy":"{}","fsdp.wrap":"{}","fsdp.cpu_offload":"false",)"
        R"("memory.activation_checkpointing":"none","fsdp.backward_prefetch":"BACKWARD_PRE",)"
        R"("fsdp.limit_all_gathers":"true","precision.param":"bf16","data.batch":"{}"}})",
        strategy, wrap, batch);
}

// A row that was simulated: two ranks of two samples per step. It fits into 1,000 MB if it reserves no more.
inline traces::schema::PlanRow plan_row(int number, double step_ms, std::int64_t peak_mb,
                                        bool front = false) {
    traces::schema::PlanRow row;
    row.number = number;
    row.outcome = "fits";
    row.settings = plan_settings_json("FULL_SHARD", number % 2 == 0 ? "root" : "module:Block");
    row.job = fmt::format("# row {}\n[run]\nranks = 2\n", number);
    row.ranks = 2;
    row.nodes = 1;
    row.limit_bytes = 1000 * kPlanMB;
    row.peak_bytes = peak_mb * kPlanMB;
    row.at_peak[0] = row.peak_bytes / 4;
    row.at_peak[5] = row.peak_bytes - row.at_peak[0];
    row.moment = "backward of blocks.0";
    row.reserved_bytes = row.peak_bytes + 10 * kPlanMB;
    row.step_us = step_ms * 1e3;
    row.exposed_us = step_ms * 100;
    row.samples_per_second = 4 / (step_ms * 1e-3);
    row.tokens_per_second = row.samples_per_second * 100;
    row.mfu = 0.25;
    row.cost_per_million = 0.5;
    row.front = front;
    row.why = fmt::format("why of {}", number);
    return row;
}

// Pareto front: 3 (10 ms, 800 MB), 1 (20 ms, 400 MB), 5 (40 ms, 200 MB). Dominated: 2 and 4, of which 4
// repeats 2. Too large and not simulated: 6. Impossible: 7. Not tried: 8.
inline void add_plan_sample(traces::store::EventSink& sink) {
    sink.add(traces::schema::RunInfoRow{"plan.job", "samples/tiny.toml"});
    sink.add(traces::schema::RunInfoRow{"plan.cluster", "h100_ib"});
    sink.add(traces::schema::RunInfoRow{"plan.device", "NVIDIA H100"});
    sink.add(traces::schema::RunInfoRow{"plan.complete", "true"});
    sink.add(plan_row(1, 20, 400, true));
    traces::schema::PlanRow beaten = plan_row(2, 30, 500);
    beaten.beaten_by = 1;
    sink.add(beaten);
    sink.add(plan_row(3, 10, 800, true));
    traces::schema::PlanRow repeated = plan_row(4, 30, 500);
    repeated.beaten_by = 1;
    repeated.same_as = 2;
    sink.add(repeated);
    sink.add(plan_row(5, 40, 200, true));
    traces::schema::PlanRow large = plan_row(6, 1, 4000);
    large.outcome = "too_large";
    large.reserved_bytes = -1;
    large.step_us = large.exposed_us = large.samples_per_second = large.tokens_per_second = large.mfu = 0;
    sink.add(large);
    traces::schema::PlanRow impossible;
    impossible.number = 7;
    impossible.outcome = "impossible";
    impossible.settings = plan_settings_json("HYBRID_SHARD", "root");
    impossible.reason = "fsdp.shard_group: 3 does not divide 2 ranks";
    sink.add(impossible);
    traces::schema::PlanRow untried;
    untried.number = 8;
    untried.outcome = "not_run";
    untried.settings = plan_settings_json("NO_SHARD", "root");
    sink.add(untried);
}

inline std::unique_ptr<traces::store::Trace> plan_sample(const char* path = "plan.sqlite") {
    traces::store::ColumnSink sink;
    sink.set_path(path);
    add_plan_sample(sink);
    return sink.take();
}

}  // namespace shardscope::viewer
