#include "traces/store/plan/plan_rows.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "traces/store/load/load_source.h"

namespace shardscope::traces {

namespace {

// In the order of insert_plan and load_plan.
const std::initializer_list<std::string_view> kColumns = {"number",
                                                          "outcome",
                                                          "reason",
                                                          "settings",
                                                          "job",
                                                          "ranks",
                                                          "nodes",
                                                          "limitBytes",
                                                          "peakBytes",
                                                          "moment",
                                                          "peakUnit",
                                                          "peakUnitBytes",
                                                          "peakModule",
                                                          "peakModuleBytes",
                                                          "reservedBytes",
                                                          "step",
                                                          "exposed",
                                                          "lastStep",
                                                          "lastKernel",
                                                          "lastCopy",
                                                          "lastExposed",
                                                          "samplesPerSecond",
                                                          "mfu",
                                                          "tokensPerSecond",
                                                          "costPerMillion",
                                                          "exposedOperation",
                                                          "exposedPhase",
                                                          "exposedTime",
                                                          "exposedUnit",
                                                          "front",
                                                          "beatenBy",
                                                          "sameAs",
                                                          "why",
                                                          "trace",
                                                          kMemoryCategoryNames[0],
                                                          kMemoryCategoryNames[1],
                                                          kMemoryCategoryNames[2],
                                                          kMemoryCategoryNames[3],
                                                          kMemoryCategoryNames[4],
                                                          kMemoryCategoryNames[5],
                                                          kMemoryCategoryNames[6],
                                                          kMemoryCategoryNames[7]};
static_assert(kMemoryCategories == 8, "one column for each category");

}  // namespace

std::vector<BatchInsert::Target> plan_targets() {
    std::vector<BatchInsert::Target> targets;
    for (const std::string_view column : kColumns) targets.push_back({column});
    return targets;
}

void insert_plan(BatchInsert& into, const PlanRow& row) {
    const auto text = [&](const std::string& value) { value.empty() ? into.null() : into.text(value); };
    const auto above_0 = [&](auto value) {
        if (value <= 0) {
            into.null();
        } else if constexpr (std::is_floating_point_v<decltype(value)>) {
            into.real(value);
        } else {
            into.integer(value);
        }
    };
    into.integer(row.number).text(row.outcome);
    text(row.reason);
    into.text(row.settings);
    text(row.job);
    above_0(row.ranks);
    above_0(row.nodes);
    into.id(row.limit_bytes).id(row.peak_bytes);
    text(row.moment);
    text(row.peak_unit);
    into.id(row.peak_unit_bytes);
    text(row.peak_module);
    into.id(row.peak_module_bytes).id(row.reserved_bytes);
    for (const double value : {row.step_us, row.exposed_us, row.last_step_us, row.last_kernel_us,
                               row.last_copy_us, row.last_exposed_us, row.samples_per_second, row.mfu})
        row.simulated() ? into.real(value) : into.null();
    above_0(row.tokens_per_second);
    above_0(row.cost_per_million);
    text(row.exposed_operation);
    text(row.exposed_phase);
    row.exposed_operation.empty() ? into.null() : into.real(row.most_exposed_us);
    text(row.exposed_unit);
    into.integer(row.front ? 1 : 0);
    above_0(row.beaten_by);
    above_0(row.same_as);
    text(row.why);
    text(row.trace);
    for (const std::int64_t bytes : row.at_peak) row.peak_bytes < 0 ? into.null() : into.integer(bytes);
    into.end_row();
}

void load_plan(LoadSource& source) {
    source.scan("SHARD_PLAN", kColumns, [&](const Statement& rows) {
        int column = 0;
        const auto text = [&] { return std::string(rows.text(column++)); };
        const auto integer = [&](std::int64_t none) { return rows.integer_or(column++, none); };
        const auto number = [&] { return static_cast<int>(rows.integer_or(column++, 0)); };
        const auto real = [&] {
            const int own = column++;
            return rows.is_null(own) ? 0.0 : rows.real(own);
        };
        PlanRow row;
        row.number = number();
        for (std::string* value : {&row.outcome, &row.reason, &row.settings, &row.job}) *value = text();
        row.ranks = number();
        row.nodes = number();
        row.limit_bytes = integer(-1);
        row.peak_bytes = integer(-1);
        row.moment = text();
        row.peak_unit = text();
        row.peak_unit_bytes = integer(-1);
        row.peak_module = text();
        row.peak_module_bytes = integer(-1);
        row.reserved_bytes = integer(-1);
        for (double* value : {&row.step_us, &row.exposed_us, &row.last_step_us, &row.last_kernel_us,
                              &row.last_copy_us, &row.last_exposed_us, &row.samples_per_second, &row.mfu,
                              &row.tokens_per_second, &row.cost_per_million})
            *value = real();
        row.exposed_operation = text();
        row.exposed_phase = text();
        row.most_exposed_us = real();
        row.exposed_unit = text();
        row.front = integer(0) != 0;
        row.beaten_by = number();
        row.same_as = number();
        row.why = text();
        row.trace = text();
        for (std::int64_t& bytes : row.at_peak) bytes = integer(0);
        source.sink.add(row);
    });
}

}  // namespace shardscope::traces
