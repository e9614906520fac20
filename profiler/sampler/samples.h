// What sampling finds, as plain values: any thread may find them, and the one that owns the sink adds them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "profiler/base/clock.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

// A counter's value. Without a rank or with a device it is the host's, and its row says which host.
struct Sample {
    MonotonicTime time{0};
    std::string name;  // with its unit: "host_cpu_cores"
    double value = 0;
    int rank = -1;
    int device = -1;  // DeviceRow::number of what the name says: a GPU, an adapter
};

// Something that the user should know, once: a diagnostic of the trace.
struct SamplerNote {
    MonotonicTime time{0};
    std::string text;
    bool warning = true;  // false: nothing needs to be done
};

struct Samples {
    std::vector<Sample> counters;
    std::vector<SamplerNote> notes;
    std::vector<traces::schema::DeviceRow> devices;
    std::vector<traces::schema::TopologyRow> topology;
    std::vector<traces::schema::RunInfoRow> facts;

    bool empty() const {
        return counters.empty() && notes.empty() && devices.empty() && topology.empty() && facts.empty();
    }
    void add(Sample sample) { counters.push_back(std::move(sample)); }
    void note(MonotonicTime time, std::string text, bool warning = true) {
        notes.push_back({time, std::move(text), warning});
    }
};

// Adds them as rows of a trace that begins at `origin`. What is older than `since` is left out, but not the
// facts, the devices and the notes.
void add_rows(const Samples& samples, const std::string& host, MonotonicTime origin, MonotonicTime since,
              traces::store::EventSink& sink);

}  // namespace shardscope::profiler
