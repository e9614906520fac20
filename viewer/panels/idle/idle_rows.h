// Idle time of one rank as tables: its streams, and its longest gaps one by one. Text and numbers over
// analysis results (traces/analysis/{idle,idle_details}.h), no drawing; any thread. Times in us, or ms since
// the start.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "traces/analysis/time/idle.h"
#include "traces/analysis/waits/wait_names.h"
#include "traces/store/columns/trace.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

std::string_view gap_title(traces::analysis::GapKind kind);  // "Host wait"
std::string_view gap_help(traces::analysis::GapKind kind);   // the definition
theme::Color gap_color(traces::analysis::GapKind kind);

// "0 compute", "all as one".
std::string idle_stream_title(const traces::analysis::StreamIdle& stream, bool device);

// Row 0 is all streams as one, then one row per stream, in the order of StreamIdleDetails.
std::shared_ptr<const tables::TableModel> idle_stream_table(const traces::analysis::RankIdle& rank);

// The device's idle time of one kind; nullptr: none.
const traces::analysis::IdleWait* device_wait(const traces::analysis::RankIdle& rank,
                                              traces::analysis::WaitFor what);

// Row i is gap i of the details.
std::shared_ptr<const tables::TableModel> idle_gap_table(const traces::store::Trace& trace,
                                                         const traces::analysis::TraceWaits& waits,
                                                         const traces::analysis::StreamIdleDetails& stream);

struct HistogramBin {
    double value = 0;   // number of launches, or time in ns
    std::string from;   // start of the bin, with unit
    std::string title;  // "1.02 to 2.05 ms"
};

// From the first bin that is not empty to the last; empty if nothing was launched.
std::vector<HistogramBin> delay_histogram(const traces::analysis::StreamIdleDetails& stream);
std::vector<HistogramBin> queue_histogram(const traces::analysis::StreamIdleDetails& stream);

}  // namespace shardscope::viewer::panels
