#include "profiler/sampler/samples.h"

#include <algorithm>
#include <cstdint>

namespace shardscope::profiler {

void add_rows(const Samples& samples, const std::string& host, MonotonicTime origin, MonotonicTime since,
              traces::store::EventSink& sink) {
    const auto trace_time = [&](MonotonicTime time) { return std::max<std::int64_t>(time - origin, 0); };
    for (const traces::schema::RunInfoRow& fact : samples.facts) sink.add(fact);
    for (const traces::schema::DeviceRow& device : samples.devices) sink.add(device);
    for (const traces::schema::TopologyRow& link : samples.topology) sink.add(link);
    for (const SamplerNote& note : samples.notes) {
        const auto severity =
            note.warning ? traces::schema::Severity::warning : traces::schema::Severity::information;
        sink.add(traces::schema::DiagnosticRow{trace_time(note.time), severity, note.text});
    }
    if (samples.counters.empty()) return;
    const traces::schema::StringId host_id = sink.intern(host);
    for (const Sample& sample : samples.counters) {
        if (sample.time < since || sample.time < origin) continue;
        const bool of_host = sample.rank < 0 || sample.device >= 0;
        sink.add(traces::schema::CounterRow{trace_time(sample.time), sample.rank, sink.intern(sample.name),
                                            sample.value, of_host ? host_id : traces::schema::StringId::empty,
                                            sample.device});
    }
}

}  // namespace shardscope::profiler
