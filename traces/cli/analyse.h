// The frame of every analysis verb: open the files, select, analyse, print.
#pragma once

#include <memory>

#include "traces/cli/arguments.h"
#include "traces/cli/terminal.h"
#include "traces/cli/verbs.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

// Opens the files together. Throws UsageError or StoreError; notes about how they are read go to standard
// error.
std::unique_ptr<Trace> load(const Inputs& inputs);

// `analysis(trace, selection)` gives what render() prints. Parses before it loads, so that a wrong option is
// told at once.
template <typename Analysis>
int analyse(const Inputs& inputs, Analysis analysis) {
    const Selection selection = parse_selection(inputs.selection);
    const auto trace = load(inputs);
    check_selection(selection, *trace);
    print(render(analysis(*trace, selection), inputs.format, table_width()));
    return kDone;
}

}  // namespace shardscope::traces
