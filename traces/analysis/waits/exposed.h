// Exposed communication and copies by cause, and idle time by what was waited for. Definition:
// docs/definitions.md, "Waits". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/waits/waits.h"

namespace shardscope::traces::analysis {

// Exposed time of one operation for one cause.
struct ExposedShare {
    std::string operation;  // "all_gather", "copy to device"
    ExposureCause cause = ExposureCause::nothing;
    std::int64_t events = 0, ns = 0;  // in the kept steps
    double us_per_step = 0;
    double percent = 0;             // of the rank's sum
    std::int32_t event = -1;        // the device event with the most of it
    std::int64_t longest = 0;       // its time
    std::string longest_of, about;  // its name, and what the cause refers to (WaitNames)
};

Fields<ExposedShare> exposed_fields();

struct RankExposed {
    int rank = 0;
    std::vector<ExposedShare> shares;  // longest first
};

struct ExposedReport {
    std::vector<RankExposed> ranks;
};

// Exposed times are those of each event: two collectives that run at once count twice.
ExposedReport exposed_report(const store::Trace& trace, const Selection& selection = {});

// Names the gaps of an idle report, which must have the same selection: fills RankIdle::waits.
void name_gaps(const store::Trace& trace, const Selection& selection, IdleReport& report);

}  // namespace shardscope::traces::analysis
