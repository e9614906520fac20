// Facts from the first part of a Chrome trace, before it is read: how its times are written, and where they
// begin.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/import/kineto/scalar_values.h"

namespace shardscope::traces::importer {

struct TraceHead {
    std::int64_t first_ns = 0;  // the earliest time in it, as the trace writes times
    Fraction fraction = Fraction::decimal;
};

// A pure function. Times that are far from all others (such as a mark of the tracer) do not count.
TraceHead read_trace_head(std::string_view head);

}  // namespace shardscope::traces::importer
