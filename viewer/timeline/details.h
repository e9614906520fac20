// The details of an event: its name and every field, with units. Pure text, no drawing.
#pragma once

#include <string>
#include <vector>

#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::timeline {

struct Detail {
    std::string label, value;
};

struct EventDetails {
    std::string title;
    std::vector<Detail> rows;
};

EventDetails describe(const traces::store::Trace& trace, model::SelectedEvent event);

// "12.34 GB/s"; empty if the bytes or the time are unknown.
std::string bandwidth(double bytes, std::int64_t ns, double factor = 1);

// The short text on a bar: "ReduceScatter net.0" for a collective, "Linear_0" for a module.
std::string bar_label(const traces::store::Trace& trace, model::SelectedEvent event);

// The ModuleRow::id to which an event belongs (launched inside, or its own range), -1 unknown.
int module_of(const traces::store::Trace& trace, model::SelectedEvent event);

}  // namespace shardscope::viewer::timeline
