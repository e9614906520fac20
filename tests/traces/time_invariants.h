// Invariants of the analyses of time, which hold for every trace.
#pragma once

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/device_time.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/analysis/waits/waits.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {

inline std::int64_t sum_of(const std::array<std::int64_t, analysis::kTimeCategories>& ns) {
    return std::accumulate(ns.begin(), ns.end(), std::int64_t{0});
}

inline void expect_windows_are_whole(const store::Trace& trace, const analysis::Selection& selection) {
    const analysis::ExecutionSummary summary = summarize(trace, selection);
    const analysis::ExecutionSummary folded = summarize(trace, selection, analysis::CommunicationAs::kernel);
    const analysis::OverlapReport overlap = overlap_report(trace, selection);
    const analysis::StepsReport steps = steps_report(trace, selection);
    for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
        for (std::size_t s = 0; s < summary.ranks[r].steps.size(); ++s) {
            const analysis::StepSummary& step = summary.ranks[r].steps[s];
            const std::int64_t window = step.window_end - step.window_start;
            EXPECT_EQ(sum_of(step.ns), window);
            EXPECT_GE(*std::min_element(step.ns.begin(), step.ns.end()), 0);

            const analysis::StepSummary& seven = folded.ranks[r].steps[s];
            EXPECT_EQ(sum_of(seven.ns), window);
            EXPECT_EQ(seven.ns[static_cast<std::size_t>(analysis::TimeCategory::communication)], 0);
            EXPECT_GE(seven.ns[0], step.ns[0]);

            const analysis::OverlapParts& parts = overlap.ranks[r].steps[s].parts;
            EXPECT_EQ(parts.whole(), window);
            EXPECT_EQ(parts.computation + parts.overlapped, step.ns[0]);  // Kernel is the first of the eight
            EXPECT_EQ(parts.computation + parts.overlapped + parts.exposed_communication, seven.ns[0]);
            EXPECT_GE(
                std::min({parts.computation, parts.overlapped, parts.exposed_communication, parts.other}), 0);

            const analysis::StepDetail& detail = steps.ranks[r].steps[s];
            EXPECT_EQ(detail.device_busy, step.ns[0] + step.ns[1] + step.ns[2] + step.ns[3]);
        }
    }
}

inline void expect_device_time_is_whole(const store::Trace& trace, const analysis::Selection& selection) {
    const analysis::TemporalReport temporal = temporal_breakdown(trace, selection);
    const analysis::IdleReport idle = idle_report(trace, selection);
    const bool all = !selection.first_step && !selection.last_step && !selection.from_ns && !selection.to_ns;
    for (std::size_t r = 0; r < temporal.ranks.size(); ++r) {
        const analysis::TemporalParts& whole = temporal.ranks[r].whole;
        EXPECT_GE(std::min({whole.idle, whole.compute, whole.exposed_communication, whole.exposed_memory}),
                  0);
        for (const analysis::StepTemporal& step : temporal.ranks[r].steps) {
            EXPECT_EQ(step.parts.whole(), step.parts.time.length());
        }
        if (!all) continue;
        EXPECT_EQ(whole.whole(), whole.time.length());
        EXPECT_EQ(idle.ranks[r].device.idle(), whole.idle);
        EXPECT_EQ(idle.ranks[r].device.busy, whole.whole() - whole.idle);
        for (const analysis::StreamIdle& stream : idle.ranks[r].streams) {
            EXPECT_LE(stream.span, idle.ranks[r].device.span);
            EXPECT_GE(stream.launch.shortest, 0);
            EXPECT_LE(stream.queue.mean, static_cast<double>(stream.queue.longest) + 1e-9);
        }
    }
}

inline void expect_tables_are_whole(const store::Trace& trace, const analysis::Selection& selection) {
    for (const analysis::RankKernels& rank : kernels_report(trace, selection).ranks) {
        double share = 0;
        std::int64_t total = 0;
        for (const analysis::KernelStats& k : rank.kernels) {
            share += k.share;
            total += k.total;
            EXPECT_LE(static_cast<double>(k.shortest), k.median);
            EXPECT_LE(k.median, k.p95);
            EXPECT_LE(k.p95, static_cast<double>(k.longest));
        }
        EXPECT_EQ(total, rank.total);
        if (rank.total > 0) {
            EXPECT_NEAR(share, 100, 1e-6);
        }
    }
    const analysis::OperatorsReport by_name = operators_report(trace, selection);
    const analysis::OperatorsReport by_shape = operators_report(trace, selection, true);
    for (std::size_t r = 0; r < by_name.ranks.size(); ++r) {
        for (const analysis::OperatorStats& o : by_name.ranks[r].operators) {
            EXPECT_GE(o.host_self, 0) << o.name;
            EXPECT_LE(o.host_self, o.host_total) << o.name;
            EXPECT_GE(o.device_self, 0) << o.name;
            EXPECT_LE(o.device_self, o.device_total) << o.name;
        }
        EXPECT_EQ(by_name.ranks[r].calls, by_shape.ranks[r].calls);
        EXPECT_EQ(by_name.ranks[r].host_self, by_shape.ranks[r].host_self);
        EXPECT_EQ(by_name.ranks[r].device_self, by_shape.ranks[r].device_self);
    }
}

// A row's totals are the sum of its own and its children's, and nothing is negative.
inline void expect_sound(const analysis::ModuleNode& node) {
    EXPECT_GE(node.host_self_us, 0) << node.name;
    EXPECT_GE(node.device_self_us, 0) << node.name;
    EXPECT_GE(node.backward_host_us, 0) << node.name;
    EXPECT_LE(node.backward_device_us, node.device_us + 1e-6) << node.name;
    EXPECT_LE(node.device_busy_us, node.device_us + 1e-6) << node.name;
    double host = node.host_self_us, device = node.device_self_us;
    for (const analysis::ModuleNode& child : node.children) {
        host += child.host_us;
        device += child.device_us;
        expect_sound(child);
    }
    EXPECT_NEAR(node.host_us, host, 1e-6 * std::max(1.0, host)) << node.name;
    EXPECT_NEAR(node.device_us, device, 1e-6 * std::max(1.0, device)) << node.name;
}

// The parts of every gap and of every exposed time sum to the whole.
inline void expect_waits_are_whole(const store::Trace& trace) {
    using namespace analysis;
    const WaitFinder waits(trace);
    const store::DeviceEvents& device = trace.device;
    const std::vector<KindUnions> unions = device_unions(trace);
    std::int64_t gaps = 0;
    for (std::size_t i = 0; i < device.size(); ++i) {
        std::int64_t at = -1;
        for (const Wait& wait : waits.gap_before(i)) {
            ASSERT_TRUE(at < 0 || wait.from == at) << "a hole before event " << i;
            ASSERT_GT(wait.to, wait.from);
            at = wait.to;
            gaps += wait.length();
        }
        ASSERT_TRUE(at < 0 || at == device.start[i]);
        const Exposure exposure = waits.exposure(i);
        if (device.kind[i] == store::DeviceKind::kernel) continue;
        const IntervalSet& compute = of(unions[device.rank[i]], store::DeviceKind::kernel);
        ASSERT_EQ(exposure.ns,
                  device.end[i] - device.start[i] - length_within(compute, {device.start[i], device.end[i]}));
        ASSERT_EQ(std::accumulate(exposure.causes.begin(), exposure.causes.end(), std::int64_t{0}),
                  exposure.ns)
            << i;
        for (const std::int64_t part : exposure.causes) ASSERT_GE(part, 0);
    }
    std::int64_t idle = 0;
    for (const RankIdle& rank : idle_report(trace).ranks) {
        for (const StreamIdle& stream : rank.streams) idle += stream.idle();
    }
    EXPECT_EQ(gaps, idle);
}

inline void expect_time_invariants(const store::Trace& trace, const analysis::Selection& selection = {}) {
    expect_windows_are_whole(trace, selection);
    expect_device_time_is_whole(trace, selection);
    expect_tables_are_whole(trace, selection);
    expect_waits_are_whole(trace);
    for (const analysis::RankModules& rank : module_view(trace, selection).ranks) {
        for (const analysis::ModuleNode& node : rank.modules) expect_sound(node);
    }
}

}  // namespace shardscope::traces
