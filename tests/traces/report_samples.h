// Small results with round numbers, for the tests of the printed texts.
#pragma once

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/summary.h"

namespace shardscope::traces {

inline analysis::ExecutionSummary sample_summary() {
    analysis::RankSummary rank;
    rank.rank = 0;
    rank.steps.resize(2);
    rank.steps[0].number = 3;
    rank.steps[0].window_end = 2'000'000;
    rank.steps[0].ns[0] = 1'500'000;
    rank.steps[0].ns[7] = 500'000;
    rank.steps[1] = rank.steps[0];
    rank.steps[1].number = 4;
    rank.cut_steps = 1;
    rank.average_step_us = 2000;
    rank.median_step_us = 1990;
    rank.first_left_out = true;
    rank.average_host_step_us = 1700;
    rank.average_us[0] = 1500;
    rank.average_us[7] = 500;
    analysis::RankSummary idle;
    idle.rank = 1;
    return {{rank, idle}};
}

inline analysis::ModuleView sample_modules() {
    analysis::ModuleNode linear{.name = "Linear_0",
                                .module = 2,
                                .occurrences = 20,
                                .operators = 20,
                                .host_us = 800,
                                .host_self_us = 800,
                                .device_us = 12'345.25,
                                .device_self_us = 12'345.25,
                                .device_busy_us = 12'000,
                                .backward_host_us = 300,
                                .backward_device_us = 8000,
                                .parameters = 65'792};
    analysis::ModuleNode relu{
        .name = "ReLU_0", .module = 3, .occurrences = 20, .operators = 20, .host_us = 90, .host_self_us = 90};
    analysis::ModuleNode unit{.name = "FullyShardedDataParallel_1",
                              .module = 1,
                              .occurrences = 20,
                              .host_us = 1000,
                              .host_self_us = 200,
                              .device_us = 12'345.25,
                              .device_busy_us = 12'000,
                              .backward_host_us = 300,
                              .backward_device_us = 8000,
                              .parameters = 65'792,
                              .gathered_bytes = 10 << 20,
                              .reduced_bytes = 5 << 20,
                              .peak_bytes = 3 << 20};
    unit.children = {linear};
    analysis::ModuleNode net{.name = "MLP_0",
                             .module = 0,
                             .occurrences = 20,
                             .host_us = 1200,
                             .host_self_us = 110,
                             .device_us = 12'345.25,
                             .device_busy_us = 12'000,
                             .backward_host_us = 300,
                             .backward_device_us = 8000,
                             .parameters = 65'792,
                             .peak_bytes = 4 << 20};
    net.children = {unit, relu};
    return {{{.rank = 0, .modules = {net}}, {.rank = 1, .modules = {}}}};
}

inline analysis::MemoryReport sample_memory() {
    analysis::RankMemory rank;
    rank.rank = 2;
    rank.peak_bytes = 3 << 20;
    rank.peak_time_ns = 1'234'500'000;
    rank.at_peak[0] = 1 << 20;
    rank.at_peak[5] = 2 << 20;
    rank.units = {{"net.0", 2 << 20}, {"(no unit)", 1 << 20}};
    rank.modules = {{"(no module)", 3 << 20}};
    rank.buffers = {{"x", 3 << 20}};
    rank.reserved_bytes = 4 << 20;
    rank.predicted_peak_bytes = (3 << 20) - 512;
    rank.predicted_at_peak[0] = 1 << 20;
    rank.predicted_at_peak[5] = (2 << 20) - 512;
    rank.predicted_where = "first step, backward";
    return {{rank}};
}

// Predictions by part, with one more buffer than was measured; three steps, two of them alike.
inline analysis::MemoryExplanation sample_explanation() {
    analysis::RankExplanation rank;
    rank.memory = sample_memory().ranks[0];
    rank.memory.units = {{"net.0", 2 << 20, (2 << 20) - 512}, {"(no unit)", 1 << 20, 1 << 20}};
    rank.memory.modules = {{"(no module)", 3 << 20, (3 << 20) - 512}};
    rank.memory.buffers = {{"x", 3 << 20, (3 << 20) - 1024}, {"y", 0, 512}};
    rank.moment = {.step = 1,
                   .phase = schema::Phase::backward,
                   .buffer = "x",
                   .unit = "net.0",
                   .module = "Linear_0",
                   .bytes = 3 << 20};
    const analysis::StepMemory first = {.step = 0,
                                        .peak_bytes = 2 << 20,
                                        .active_bytes = 2 << 20,
                                        .reserved_bytes = 3 << 20,
                                        .predicted = 2 << 20,
                                        .growths = 5};
    analysis::StepMemory second = first;
    second.step = 1;
    second.peak_bytes = 3 << 20;
    second.active_bytes = 3 << 20;
    second.reserved_bytes = 4 << 20;
    second.predicted = (3 << 20) - 512;
    second.growths = 0;
    analysis::StepMemory third = second;
    third.step = 2;
    rank.steps = {first, second, third};
    rank.pool = {.active_peak_bytes = 3 << 20,
                 .reserved_peak_bytes = 4 << 20,
                 .reserved_at_peak = 4 << 20,
                 .cached_at_peak = 1 << 20,
                 .allocated_at_reserved_peak = 3 << 20,
                 .active_at_reserved_peak = (3 << 20) + (1 << 19),
                 .fragmentation_percent = 25,
                 .growths = 7,
                 .growths_in_steps = 5};
    return {{rank}};
}

inline analysis::CollectivesReport sample_collectives() {
    analysis::OperationStats gather{.operation = schema::Operation::all_gather,
                                    .count = 32,
                                    .bytes = 64 << 20,
                                    .us = 4000,
                                    .transfer_us = 3000,
                                    .waiting_us = 1000,
                                    .exposed_us = 500,
                                    .algbw_gbps = 22.3696213,
                                    .busbw_gbps = 16.777216,
                                    .count_per_step = 16,
                                    .bytes_per_step = 32 << 20,
                                    .us_per_step = 2000};
    return {{{.rank = 0, .operations = {gather}, .unmatched = 2}}};
}

inline analysis::Comparison sample_comparison() {
    analysis::RunColumn root;
    root.file = "runs/root.sqlite";
    root.config = {{"fsdp.wrap", "root"}, {"train.extra", ""}};
    root.ranks = 4;
    root.steps = 18;
    root.average_step_us = 2000;
    root.median_step_us = 1990;
    root.first_left_out = true;
    root.spread_step_us = 20;
    root.categories_us[0] = 1500;
    root.categories_us[7] = 500;
    root.peak_bytes = 100 << 20;
    root.at_peak[1] = 100 << 20;
    root.communication_us = 400;
    root.exposed_communication_us = 200;
    root.memcpy_us = 10;
    root.device_busy_percent = 90;
    analysis::RunColumn block = root;
    block.file = "runs/block.sqlite";
    block.config = {{"fsdp.wrap", "module:Block"}, {"train.extra", "1"}};
    block.average_step_us = 2010;  // within the spread
    block.median_step_us = 1990;
    block.first_left_out = true;
    block.peak_bytes = 40 << 20;
    block.at_peak[1] = 40 << 20;
    block.exposed_communication_us = 100;
    block.collectives = sample_collectives().ranks[0].operations;
    return {{root, block}};
}

inline analysis::TraceInfo sample_info() {
    return {.file = "run.sqlite",
            .schema_version = 1,
            .ended = false,
            .dropped = 0,
            .started_utc = "2026-03-01T12:34:56.789Z",
            .duration_ms = 1234.5,
            .ranks = 4,
            .steps = 20,
            .device = "processor",
            .counts = {{"kernels", 12345}, {"memcpys", 7}},
            .config = {{"model.type", "mlp"}, {"model.width", "256"}}};
}

}  // namespace shardscope::traces
