// The table of a planner's findings about the configurations of a job.
#include <array>

#include "traces/schema/enums.h"
#include "traces/schema/row_access.h"
#include "traces/schema/schema.h"
#include "traces/schema/shard_columns.h"

namespace shardscope::traces::schema {

namespace {

using namespace own;

struct IsSimulated {
    bool operator()(const PlanRow& row) const { return row.simulated(); }
};
struct IsExposed {
    bool operator()(const PlanRow& row) const { return !row.exposed_operation.empty(); }
};
template <std::size_t Category>
struct AtPeak {
    static void get(SqlValue cell, const void* row) {
        const auto& plan = *static_cast<const PlanRow*>(row);
        if (plan.peak_bytes >= 0) cell.integer(plan.at_peak[Category]);
    }
};
template <std::size_t Category>
constexpr ColumnAccess plan_at_peak = {.get = AtPeak<Category>::get,
                                       .set = element<&PlanRow::at_peak, Category>.set};

constexpr std::array kPlan = {
    SchemaColumn{"number", own::kKey, "",
                 "Number of the configuration, in the order in which the planner tries them.",
                 from<&PlanRow::number>},
    SchemaColumn{"outcome", kTextNN, "",
                 "\"fits\", \"too_large\", \"impossible\" (no such job is possible), \"excluded\" (a lower "
                 "bound shows "
                 "that it cannot win) or \"not_run\" (the search was stopped before).",
                 from<&PlanRow::outcome>},
    SchemaColumn{"reason", kText, "",
                 "Why it is impossible or excluded or, where its allocations would fit, too large.",
                 unless_zero<&PlanRow::reason>},
    SchemaColumn{"settings", kTextNN, "",
                 "What differs from the job's file, as JSON: {\"fsdp.wrap\":\"root\"}.",
                 from<&PlanRow::settings>},
    SchemaColumn{"job", kText, "", "The whole job file of the configuration.", unless_zero<&PlanRow::job>},
    SchemaColumn{"ranks", kInt, "count", "Ranks of it.", unless_zero<&PlanRow::ranks>},
    SchemaColumn{"nodes", kInt, "count", "Nodes of the cluster that the ranks fill.",
                 unless_zero<&PlanRow::nodes>},
    SchemaColumn{"limitBytes", kInt, "bytes", "Device memory that a rank may reserve.",
                 unless_negative<&PlanRow::limit_bytes>},
    SchemaColumn{"peakBytes", kInt, "bytes", "Peak of allocated device memory; the categories sum to it.",
                 unless_negative<&PlanRow::peak_bytes>},
    SchemaColumn{"moment", kText, "", "When it is reached, in words.", unless_zero<&PlanRow::moment>},
    SchemaColumn{kMemoryCategoryNames[0], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<0>},
    SchemaColumn{kMemoryCategoryNames[1], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<1>},
    SchemaColumn{kMemoryCategoryNames[2], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<2>},
    SchemaColumn{kMemoryCategoryNames[3], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<3>},
    SchemaColumn{kMemoryCategoryNames[4], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<4>},
    SchemaColumn{kMemoryCategoryNames[5], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<5>},
    SchemaColumn{kMemoryCategoryNames[6], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<6>},
    SchemaColumn{kMemoryCategoryNames[7], kInt, "bytes", "Bytes of this category at the peak.",
                 plan_at_peak<7>},
    SchemaColumn{"peakUnit", kText, "", "The FSDP unit with most of the peak.",
                 unless_zero<&PlanRow::peak_unit>},
    SchemaColumn{"peakUnitBytes", kInt, "bytes", "Of that unit at the peak.",
                 unless_negative<&PlanRow::peak_unit_bytes>},
    SchemaColumn{"peakModule", kText, "", "The module with most of the peak, by its path.",
                 unless_zero<&PlanRow::peak_module>},
    SchemaColumn{"peakModuleBytes", kInt, "bytes", "Of that module at the peak.",
                 unless_negative<&PlanRow::peak_module_bytes>},
    SchemaColumn{"reservedBytes", kInt, "bytes",
                 "Most memory that the allocator of a rank reserved; NULL, as are the times and rates below, "
                 "if the configuration was not simulated.",
                 unless_negative<&PlanRow::reserved_bytes>},
    SchemaColumn{"step", "REAL", "us", "Mean step time.", from_if<IsSimulated, &PlanRow::step_us>},
    SchemaColumn{"exposed", "REAL", "us",
                 "Exposed communication (outside kernels) per step, averaged over the ranks.",
                 from_if<IsSimulated, &PlanRow::exposed_us>},
    SchemaColumn{"lastStep", "REAL", "us", "The last step of rank 0, which is a steady one.",
                 from_if<IsSimulated, &PlanRow::last_step_us>},
    SchemaColumn{"lastKernel", "REAL", "us", "Time of kernels in that step.",
                 from_if<IsSimulated, &PlanRow::last_kernel_us>},
    SchemaColumn{"lastCopy", "REAL", "us", "Time of copies in that step.",
                 from_if<IsSimulated, &PlanRow::last_copy_us>},
    SchemaColumn{"lastExposed", "REAL", "us", "Time of communication outside kernels in that step.",
                 from_if<IsSimulated, &PlanRow::last_exposed_us>},
    SchemaColumn{"samplesPerSecond", "REAL", "", "Samples per second of all ranks together.",
                 from_if<IsSimulated, &PlanRow::samples_per_second>},
    SchemaColumn{"mfu", "REAL", "", "Model FLOPs utilisation, 0 to 1.", from_if<IsSimulated, &PlanRow::mfu>},
    SchemaColumn{"tokensPerSecond", "REAL", "",
                 "Of all ranks together; NULL where the model counts no tokens.",
                 unless_zero<&PlanRow::tokens_per_second>},
    SchemaColumn{"costPerMillion", "REAL", "USD",
                 "Of a million tokens, or samples where the model counts none; NULL: the cluster has no "
                 "price.",
                 unless_zero<&PlanRow::cost_per_million>},
    SchemaColumn{"exposedOperation", kText, "",
                 "The collective operation that leaves most time outside kernels; NULL: none.",
                 unless_zero<&PlanRow::exposed_operation>},
    SchemaColumn{"exposedPhase", kText, "", "In which part of the step.",
                 unless_zero<&PlanRow::exposed_phase>},
    SchemaColumn{"exposedTime", "REAL", "us", "How much, in the last step of rank 0.",
                 from_if<IsExposed, &PlanRow::most_exposed_us>},
    SchemaColumn{"exposedUnit", kText, "", "The FSDP unit with most of that.",
                 unless_zero<&PlanRow::exposed_unit>},
    SchemaColumn{"front", kIntNN, "0/1",
                 "1: every other configuration that fits allocates or reserves more, or is slower.",
                 from<&PlanRow::front>},
    SchemaColumn{"beatenBy", kInt, "",
                 "The fastest on the Pareto front that allocates and reserves no more. SHARD_PLAN.number",
                 unless_zero<&PlanRow::beaten_by>},
    SchemaColumn{"sameAs", kInt, "", "A row with the same figures that represents it. SHARD_PLAN.number",
                 unless_zero<&PlanRow::same_as>},
    SchemaColumn{"why", kText, "",
                 "Why it is dominated or too large, in words; on the Pareto front: what makes its peak.",
                 unless_zero<&PlanRow::why>},
    SchemaColumn{"trace", kText, "", "Its simulated trace, where one was written: a path.",
                 unless_zero<&PlanRow::trace>},
};

constexpr std::array kPlanParts = {
    SchemaColumn{"number", kIntNN, "", "The configuration. SHARD_PLAN.number"},
    SchemaColumn{"part", kTextNN, "", "\"model\", \"gradients\", \"optimizer\" or \"activations\"."},
    SchemaColumn{"stage", kInt, "", "ZeRO stage of the configuration, 0 to 3."},
    SchemaColumn{"devices", kInt, "count", "Devices that shard among themselves."},
    SchemaColumn{"offloaded", kInt, "0/1",
                 "1: model, gradients and optimizer are on the host, so that `formula` is 0 for them."},
    SchemaColumn{"parameters", kInt, "count", "Of the model."},
    SchemaColumn{"stage0", "REAL", "bytes",
                 "By formula, on one device, at stage 0; NULL, as are the next four, where there is none."},
    SchemaColumn{"stage1", "REAL", "bytes", "At stage 1."},
    SchemaColumn{"stage2", "REAL", "bytes", "At stage 2."},
    SchemaColumn{"stage3", "REAL", "bytes", "At stage 3."},
    SchemaColumn{"formula", "REAL", "bytes", "By formula, of this configuration."},
    SchemaColumn{"simulated", "REAL", "bytes", "Of `categories` at the peak of the memory account."},
    SchemaColumn{"categories", kText, "", "The memory categories that make up this part."},
};

constexpr std::array<SchemaTable, 2> kTables = {{
    {"SHARD_PLAN",
     "A planner's results for each configuration of a job. Since schema version 5.",
     kPlan,
     {},
     5},
    {"SHARD_PLAN_PARTS",
     "The memory of a planner's configurations by the formulas of docs/planning.md, next to the simulated "
     "peak."
     " Since schema version 5.",
     kPlanParts,
     {},
     5},
}};

}  // namespace

std::span<const SchemaTable> shard_plan_tables() {
    return kTables;
}

}  // namespace shardscope::traces::schema
