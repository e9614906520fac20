// "1 kernel", not "1 kernels": every report of a run that has one of everything.
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/advice/advice.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

// A plural after a 1 that is a whole number; units of measurement and verbs do not count.
std::string plural_of_one(const std::string& text) {
    static const std::regex kOne(
        "(^|[^0-9.,:])(1 (?!us\\b|ms\\b|is\\b|was\\b|has\\b|does\\b|ns\\b|ranks? waits\\b)[a-z]+s)\\b");
    std::smatch found;
    return std::regex_search(text, found, kOne) ? found[2].str() : "";
}

std::string all_reports(const store::Trace& trace) {
    std::string text;
    const auto add = [&](const auto& result) {
        text += report::render(result, report::Format::table) + "\n";
    };
    add(summarize(trace));
    add(module_view(trace));
    add(memory_report(trace));
    add(allocations_report(trace));
    add(collectives_report(trace));
    add(critical_path(trace));
    add(advice(trace));
    add(trace_info(trace));
    add(distributed_report(trace));
    add(straggler_report(trace));
    add(units_report(trace));
    add(overlap_report(trace));
    add(temporal_breakdown(trace));
    add(idle_report(trace));
    add(steps_report(trace));
    add(kernels_report(trace));
    add(operators_report(trace));
    return text;
}

TEST(Singular, OfOneThereIsNoPlural) {
    EXPECT_EQ(plural_of_one("21 kernels, 1.1 kernels, 1 kernel, 1 µs"), "");
    EXPECT_EQ(plural_of_one("All 1 collectives"), "1 collectives");
    for (const int ranks : {1, 2}) {
        RunBuilder run(ranks);
        for (int rank = 0; rank < ranks; ++rank) {
            run.step(rank, 1, 0, 1000);
            run.range(rank, 5, 900, "aten::mm");
            run.allocate(rank, 10, 1, 4096);
            run.kernel(rank, 100, 300, 20);
            run.runtime(rank, 25, 26, "cudaStreamWaitEvent");
            run.collective(rank, 310 + 100 * rank, 500, {.bytes = 4096, .group_size = ranks, .launched = 30});
        }
        const auto trace = run.take();
        const std::string text = all_reports(*trace);
        EXPECT_EQ(plural_of_one(text), "") << text;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
