// What the handlers of the recorded processes find out about the recording as a whole. Owned by the
// Collector. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiler/record/device_map.h"
#include "traces/schema/rows.h"

namespace shardscope::profiler {

struct Findings {
    DeviceMap devices;
    std::map<int, traces::schema::RankRow> ranks;  // as last written

    // Sentences for the tool's last lines, each once.
    std::vector<std::string> notices;
    // Adds a notice; returns whether it is new.
    bool note(std::string text) {
        if (std::find(notices.begin(), notices.end(), text) != notices.end()) return false;
        notices.push_back(std::move(text));
        return true;
    }

    // Events that were lost before they became records.
    std::int64_t lost = 0;
};

}  // namespace shardscope::profiler
