// The verbs that ask what communication costs; see verbs.h.
#include <memory>
#include <vector>

#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/compare/scaling.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/cli/analyse.h"
#include "traces/cli/verbs.h"

namespace shardscope::traces {

int run_units(const Inputs& inputs) {
    return analyse_devices(inputs, [](const Trace& t, const Selection& s) { return units_report(t, s); });
}

int run_distributed(const Inputs& inputs) {
    return analyse_devices(
        inputs, [](const Trace& t, const Selection& s) { return distributed_report(t, s); },
        [](const DistributedReport& report) { return !report.host_libraries.empty(); });
}

int run_stragglers(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return straggler_report(t, s); });
}

int run_scaling(const Inputs& inputs) {
    const Selection selection = parse_selection(inputs.selection);
    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<const Trace*> pointers;
    for (const std::string& file : inputs.files) {
        Inputs one = inputs;
        one.files = {file};
        traces.push_back(load(one));
        check_selection(selection, *traces.back());
        pointers.push_back(traces.back().get());
    }
    print(render(scaling_report(pointers, selection), inputs.format, table_width()));
    return kDone;
}

}  // namespace shardscope::traces
