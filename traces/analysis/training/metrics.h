// The metrics of training as curves over steps: the losses, SHARD_METRICS and what a program marks, for
// example with torch.cuda.nvtx.mark("metric loss=2.31 step=4"). Definition: docs/definitions.md, "Metrics".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct MetricPoint {
    std::int64_t step = -1, sample = -1;  // -1: unknown
    std::int64_t time = 0;                // ns, since the start of the capture
    double value = 0;
};

struct MetricCurve {
    std::string name;
    int rank = -1;                    // -1: of the whole job
    std::vector<MetricPoint> points;  // by step, then time; at least one
    // The job's curve is made from those of the ranks that report it (schema/metric_kinds.h), of the steps
    // that all of them do.
    bool from_ranks = false;

    const MetricPoint& lowest() const;  // the first of equals; of the values that are numbers, if any is
    const MetricPoint& highest() const;
};
Fields<MetricCurve> metric_fields();

struct PointOfCurve {
    const MetricCurve& curve;
    const MetricPoint& point;
};
Fields<PointOfCurve> metric_point_fields();
std::vector<PointOfCurve> points_of(const MetricCurve& curve);

// When a loss was first at most as large as asked for.
struct ReachedLoss {
    double asked = 0;
    std::optional<MetricPoint> point;  // none: never
    std::int64_t since_start = 0;      // ns, from the start of the first step; without steps, of the capture
    bool has_steps = true;
};

struct MetricsReport {
    std::vector<MetricCurve> curves;     // losses first, then by name and rank
    bool one_metric = false;             // it was asked for by name
    std::optional<ReachedLoss> reached;  // if it was asked for

    const MetricCurve* find(std::string_view name) const;  // the job's or, if it has none, the lowest rank's
};

// `name`: only this metric; empty: all.
MetricsReport metrics_report(const store::Trace& trace, const Selection& selection = {},
                             std::string_view name = {}, std::optional<double> loss = {});

// The step from which a run diverged: of the metric "diverged" that is not 0, or of the first loss that is
// not finite.
std::optional<std::int64_t> diverged_step(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
