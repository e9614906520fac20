// Decides when to sample, and which rank a GPU belongs to.
#include "profiler/record/counter_sampler.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

namespace shardscope::profiler {

void CounterSampler::tick(std::int64_t now_ns, std::span<const WatchedProcess> processes,
                          traces::store::EventSink& sink) {
    if (now_ns < next_ns_) return;
    next_ns_ = std::max(next_ns_ + kPeriodNs, now_ns + kPeriodNs / 2);
    host_.sample(now_ns, processes, sink);
    for (const GpuSample& sample : gpus_.take()) add(sample, processes, sink);
}

void CounterSampler::discard() {
    gpus_.take();
}

void CounterSampler::add(const GpuSample& sample, std::span<const WatchedProcess> processes,
                         traces::store::EventSink& sink) {
    std::set<int> ranks;
    for (const WatchedProcess& process : processes) {
        if (process.rank < 0) continue;
        if (std::find(sample.pids.begin(), sample.pids.end(), process.pid) != sample.pids.end()) {
            ranks.insert(process.rank);
        }
    }
    if (ranks.empty()) ranks.insert(-1);
    for (const int rank : ranks) {
        const bool its_first =
            rank >= 0 && gpu_of_rank_.try_emplace(rank, sample.gpu).first->second == sample.gpu;
        const std::string prefix = its_first ? "gpu_" : fmt::format("gpu{}_", sample.gpu);
        for (const GpuSample::Value& value : sample.values) {
            sink.add(traces::schema::CounterRow{sample.time - origin_, rank, sink.intern(prefix + value.name),
                                                value.value});
        }
    }
}

}  // namespace shardscope::profiler
