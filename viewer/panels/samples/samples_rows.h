// What the Samples panel shows: the stacks as rows of boxes, the functions as a table, the threads that can
// be chosen, what a search finds. No drawing; any thread. Weights are ns of processor time or counts of an
// event.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/samples/flame.h"
#include "traces/store/columns/trace.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// All threads, those of a process, or one.
struct ThreadChoice {
    std::string label;  // "All threads", "Process 4242 (python3), rank 0", "pt_autograd_0"
    std::optional<std::int64_t> process, thread;  // as in SampleFilter
    std::int64_t samples = 0;
    bool inside = false;  // a thread below its process
    bool is_of(const std::optional<std::int64_t>& other_process,
               const std::optional<std::int64_t>& other_thread) const {
        return process == other_process && thread == other_thread;
    }
};
// All threads, then, those with the largest weight first, each process with its threads; of a single process
// the threads alone.
std::vector<ThreadChoice> thread_choices(const traces::store::Trace& trace,
                                         const std::vector<traces::analysis::ThreadSamples>& threads);

// The weights of the chosen threads' samples in equal parts of the trace's whole time, whatever is selected.
struct WeightsOverTime {
    std::int64_t from = 0, to = 0;
    std::vector<std::int64_t> parts;
    std::int64_t most = 0;
    double part_ns() const {
        return (static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(parts.size());
    }
};
// At most `most` parts, fewer where there are few samples.
WeightsOverTime weights_over_time(const traces::store::Trace& trace, std::string_view event,
                                  const traces::analysis::SampleFilter& filter, std::size_t most);

// Lives no longer than its trace.
struct ShownSamples {
    traces::analysis::SamplesReport report;
    std::vector<ThreadChoice> threads;
    WeightsOverTime over_time;
};

// "1.204 s" of processor time, "1,204 cycles".
std::string weight_text(const traces::analysis::SamplesReport& report, std::int64_t weight);
// Of a weight in so much time: "1.93 cores", "2.1 M cycles/s".
std::string rate_text(const traces::analysis::SamplesReport& report, std::int64_t weight, double ns);

// A frame without its library or program, and that: "std::sort(int*)", "libtorch_cpu.so". What is not in
// parentheses at the end belongs to the function.
struct FrameParts {
    std::string_view function, module;
};
FrameParts frame_parts(std::string_view frame);
// As boxes say it: of the root "all threads".
std::string node_label(const traces::analysis::FlameNode& node);

// --- The boxes, in pixels.

struct FlameCell {
    int node = 0;  // of narrow callees together: their caller
    double x = 0, width = 0;
    std::int64_t weight = 0;
    std::int64_t callees = 0;  // how many are in it together; 0: it is the node's own
};
struct FlameLayout {
    // By x: the callers of `top` from the root on, each as wide as the graph; `top`; what it calls ...
    std::vector<std::vector<FlameCell>> rows;
    int top = 0;
    double narrowest = 0;     // callees that are narrower are together
    std::int64_t hidden = 0;  // such callees

    const FlameCell* at(std::size_t row, double x) const;  // nullptr: there is none
};
// At most `most` cells: where there would be more, `narrowest` grows.
FlameLayout flame_layout(const std::vector<traces::analysis::FlameNode>& tree, int top, double width,
                         double narrowest, std::size_t most);

// From the root to a node, without the root; and the node there, or the deepest caller that is.
std::vector<std::string> path_of(const std::vector<traces::analysis::FlameNode>& tree, int node);
int node_at(const std::vector<traces::analysis::FlameNode>& tree, const std::vector<std::string>& path);
// The node of this function with the largest total; the root if there is none.
int largest_of(const std::vector<traces::analysis::FlameNode>& tree, std::string_view function);

// --- What a search finds.

struct FoundFrames {
    std::shared_ptr<const ShownSamples> in;
    std::vector<bool> nodes;               // by node
    std::vector<std::uint32_t> functions;  // indices into SamplesReport::functions, in its order
    std::int64_t weight = 0;               // of the stacks that have one of them
};
// Functions whose names contain the text, whatever its case. Stops, with any result, when cancelled.
FoundFrames find_frames(std::shared_ptr<const ShownSamples> samples, std::string_view text,
                        const std::atomic<bool>& cancel);

// --- The functions.

class FunctionTable final : public tables::LazyTable {
  public:
    // All, or those that were found.
    explicit FunctionTable(std::shared_ptr<const ShownSamples> samples,
                           const std::shared_ptr<const FoundFrames>& found = nullptr);
    // The row's index into SamplesReport::functions.
    std::size_t function(std::size_t row) const { return found_ != nullptr ? found_->functions[row] : row; }

  private:
    void add(std::string_view key, float width, int priority, int decimals,
             double (*of)(const traces::analysis::FunctionTime&), std::string_view unit = {});

    const traces::analysis::FunctionTime& time(std::size_t row) const {
        return samples_->report.functions[function(row)];
    }

    std::shared_ptr<const ShownSamples> samples_;
    std::shared_ptr<const FoundFrames> found_;  // nullptr: all
};

}  // namespace shardscope::viewer::panels
