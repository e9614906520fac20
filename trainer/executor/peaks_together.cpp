#include "trainer/executor/peaks_together.h"

#include <algorithm>

#include "trainer/world/message.h"

namespace shardscope::trainer::executor {

namespace {

std::string text_of(const RunResult& own) {
    const plan::MemoryPeak& peak = own.peaks.front();
    return world::MessageWriter()
        .add(peak.bytes)
        .add_all(peak.at_peak)
        .add_all(peak.units)
        .add_all(peak.modules)
        .add(peak.where)
        .add_all(peak.spaces)
        .add(own.active.front())
        .add(own.reserved.front())
        .add(own.file_wait_s.front())
        .text();
}

void append(RunResult& all, const std::string& text) {
    world::MessageReader message(text);
    plan::MemoryPeak peak;
    peak.bytes = message.number<std::int64_t>();
    const auto categories = message.numbers<std::int64_t>();
    std::copy_n(categories.begin(), std::min(categories.size(), peak.at_peak.size()), peak.at_peak.begin());
    peak.units = message.numbers<std::int64_t>();
    peak.modules = message.numbers<std::int64_t>();
    peak.where = message.text();
    const auto spaces = message.numbers<std::int64_t>();
    std::copy_n(spaces.begin(), std::min(spaces.size(), peak.spaces.size()), peak.spaces.begin());
    all.peaks.push_back(std::move(peak));
    all.active.push_back(message.number<std::int64_t>());
    all.reserved.push_back(message.number<std::int64_t>());
    all.file_wait_s.push_back(message.number<double>());
}

}  // namespace

void bring_together(world::World& world, RunResult& result) {
    const std::vector<std::string> texts = world.gather(text_of(result));
    if (world.rank() > 0) return;
    result.peaks.clear();
    result.active.clear();
    result.reserved.clear();
    result.file_wait_s.clear();
    for (const std::string& text : texts) append(result, text);
}

}  // namespace shardscope::trainer::executor
