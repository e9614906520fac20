// Where a finding can be seen: the stretch of the trace that shows it best. Definition: docs/definitions.md,
// "Advice". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/analysis/base/selection.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct AdvicePlace {
    store::RankIndex rank;
    std::int64_t from = 0, to = 0;
    std::int32_t event = -1, range = -1;  // the device event or host range that is the place, -1 none
    std::string what;                     // "the longest stretch that ...", in a few words
};

// Returns none if the finding is about the whole run (its configuration), or if the selection contains
// nothing of its kind. `rule`: Finding::id.
std::optional<AdvicePlace> advice_place(const store::Trace& trace, const Selection& selection,
                                        std::string_view rule);

// The most exposed gather or reduction of a unit in a phase.
std::optional<AdvicePlace> exposed_place(const store::Trace& trace, const Selection& selection,
                                         std::string_view unit, schema::Phase phase);

}  // namespace shardscope::traces::analysis
