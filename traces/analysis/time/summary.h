// Execution Summary: how the time of a step was spent. Definition: docs/definitions.md, "Execution Summary"
// (the categories of PyTorch's TensorBoard profiler plugin).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// In order of priority: each instant of a step's window goes to the first category that covers it.
enum class TimeCategory { kernel, memcpy, memset, communication, runtime, data_loader, cpu_exec, other };
inline constexpr int kTimeCategories = 8;
inline constexpr std::array<std::string_view, kTimeCategories> kTimeCategoryNames = {
    "Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CPU Exec", "Other"};

struct StepSummary {
    std::int64_t number = 0;
    std::int64_t window_start = 0, window_end = 0;   // device work included (step_windows.h)
    std::array<std::int64_t, kTimeCategories> ns{};  // sums to the window exactly
    std::int64_t host_ns = 0;                        // of the selected part of the host step
};

struct RankSummary {
    int rank = 0;
    std::vector<StepSummary> steps;  // the kept steps
    std::int64_t cut_steps = 0;      // last steps omitted because they were cut off
    double average_step_us = 0;      // mean window of the kept steps
    std::array<double, kTimeCategories> average_us{};
    double median_step_us = 0;        // of the windows, without the trace's first step if three are kept
    bool first_left_out = false;      // from the median
    double average_host_step_us = 0;  // mean of the kept host steps
    bool on_device = true;            // false: nothing is recorded on the rank's device
    // Device times are unknown, not 0, if no device was recorded.
    bool knows(TimeCategory c) const { return on_device || c > TimeCategory::communication; }
    double percent(TimeCategory c) const {
        return average_step_us > 0 ? 100.0 * average_us[static_cast<std::size_t>(c)] / average_step_us : 0.0;
    }
};

// The position of communication among the categories.
enum class CommunicationAs {
    category,  // a separate category after Memset: what compute and copies do not cover
    kernel,    // counts as kernels, before the copies, as in the FSDP talk's seven rows, whose profiler took
               // NCCL's kernels for compute. The category Communication is 0.
};

struct ExecutionSummary {
    std::vector<RankSummary> ranks;
    CommunicationAs communication = CommunicationAs::category;
    bool stepped = true;  // false: the trace has no steps, and all of it is one "step"
    // Whether the category is used here and should be shown.
    bool has(TimeCategory c) const {
        return c != TimeCategory::communication || communication == CommunicationAs::category;
    }
    double mean_step_us() const;  // over the ranks
};

// A row of a rank's summary: the whole step, or one category; the time is unknown if no device was
// recorded.
struct CategoryTime {
    std::string_view name;
    store::Cell us, percent;
};
Fields<CategoryTime> category_time_fields();
// The step, then the categories that are used here.
std::vector<CategoryTime> category_times(const ExecutionSummary& summary, const RankSummary& rank);

// A run without steps is one step from its first to its last event.
ExecutionSummary summarize(const store::Trace& trace, const Selection& selection = {},
                           CommunicationAs communication = CommunicationAs::category);

}  // namespace shardscope::traces::analysis
