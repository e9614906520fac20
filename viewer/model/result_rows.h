// The result of a query as rows of the timeline: spans of time with their rank and name. Plain data; any
// thread. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace shardscope::viewer::model {

struct ResultSpan {
    std::int64_t from = 0, to = 0;
    std::optional<int> rank;  // its number
    SelectedEvent event;      // the trace's event with exactly this place, if there is one
    std::string name;         // empty: that of the event
};

struct ResultRows {
    int number = 0;  // of this result among those that were shown, from 1
    std::weak_ptr<const traces::store::Trace> trace;
    std::vector<ResultSpan> spans;
};

}  // namespace shardscope::viewer::model
