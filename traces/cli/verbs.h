// What each verb does: load, analyse, print. Text goes to standard output; the result is the exit status.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "traces/cli/arguments.h"
#include "traces/report/report.h"

namespace shardscope::traces {

struct AsDatabaseOptions;

inline constexpr int kDone = 0, kFailed = 1, kWrongUse = 2;

void print(const std::string& text);                          // to standard output
void print_notes(const std::vector<std::string>& sentences);  // to standard error
AsDatabaseOptions database_options(const Inputs& inputs);     // throws UsageError

int run_info(const Inputs& inputs);
// `fold_communication`: as kernels, without a row of its own.
int run_summary(const Inputs& inputs, bool fold_communication);
int run_modules(const Inputs& inputs);
struct MemoryArguments {
    bool explain = false;            // with the prediction beside every part, the steps and the pool
    bool allocations = false;        // each of them, instead of the peak
    std::string space;               // "device", "pinned" or "host"; empty: the device, of allocations all
    std::optional<std::size_t> top;  // as below, of allocations
};
int run_memory(const Inputs& inputs, const MemoryArguments& arguments);
int run_collectives(const Inputs& inputs);
int run_units(const Inputs& inputs);
int run_distributed(const Inputs& inputs);
int run_stragglers(const Inputs& inputs);
int run_scaling(const Inputs& inputs);  // each file is a run of its own
int run_overlap(const Inputs& inputs);
int run_temporal(const Inputs& inputs);
int run_steps(const Inputs& inputs);
int run_idle(const Inputs& inputs, double kernel_wait_us);
// `top`: rows a rank at most, 0 all; none: some in a table, all in JSON and CSV.
std::size_t most_rows(const Inputs& inputs, const std::optional<std::size_t>& top);
int run_kernels(const Inputs& inputs, const std::optional<std::size_t>& top);
int run_operators(const Inputs& inputs, bool by_shape, const std::optional<std::size_t>& top);
// `what_if`: "communication=0.5,host=2"; empty: nothing.
int run_critical_path(const Inputs& inputs, const std::string& what_if);
int run_advice(const Inputs& inputs);
// `by`: "module", "kernel", "collective" or "unit"; empty: the runs as wholes.
// Each file or folder is a run.
int run_compare(const Inputs& inputs, const std::string& by, const std::vector<std::string>& fail_if);
// `finalize`: first makes a finished file of one whose run did not end.
int run_check(const std::string& file, bool finalize, Format format);

}  // namespace shardscope::traces
