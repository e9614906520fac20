#include "trainer/lift/mean_step.h"

#include <iterator>
#include <utility>

namespace shardscope::trainer::lift {

namespace {

// Whether two steps did the same things in the same order.
bool alike(LiftedStep& a, LiftedStep& b) {
    std::vector<const Item*> items;
    a.for_each_item([&](Item& item) { items.push_back(&item); });
    std::size_t i = 0;
    bool same = a.nodes.size() == b.nodes.size() && a.parameters.size() == b.parameters.size() &&
                a.buffers.size() == b.buffers.size();
    b.for_each_item([&](Item& item) {
        same = same && i < items.size() && items[i]->kind == item.kind && items[i]->name == item.name;
        ++i;
    });
    return same && i == items.size();
}

}  // namespace

void take_means(LiftedStep& base, std::vector<LiftedRecording>& all, const std::vector<std::size_t>& of) {
    std::vector<std::pair<std::int64_t, std::int64_t>> sums;  // host, device
    base.for_each_item([&](Item& item) { sums.emplace_back(item.host_ns, item.device_ns); });
    std::int64_t count = 1;
    for (const std::size_t s : of) {
        LiftedStep& step = all[s].step;
        if (!alike(base, step)) continue;
        std::size_t i = 0;
        step.for_each_item([&](Item& item) {
            sums[i].first += item.host_ns;
            sums[i++].second += item.device_ns;
        });
        ++count;
    }
    std::size_t i = 0;
    base.for_each_item([&](Item& item) {
        item.host_ns = sums[i].first / count;
        item.device_ns = sums[i++].second / count;
    });
}

RecordedFigures figures_of(const std::vector<LiftedRecording>& all, const std::vector<std::size_t>& middle,
                           double launch_s) {
    RecordedFigures figures;
    const auto of = [&](auto member) {
        std::int64_t sum = 0;
        for (const std::size_t s : middle) sum += all[s].engine.*member;
        return sum / std::ssize(middle);
    };
    figures.engine.host_ns = of(&EngineFigures::host_ns);
    figures.engine.optimizer_host_ns = of(&EngineFigures::optimizer_host_ns);
    figures.engine.optimizer_launches = of(&EngineFigures::optimizer_launches);
    figures.engine.optimizer_calls_ns = of(&EngineFigures::optimizer_calls_ns);
    figures.engine.optimizer_ns = of(&EngineFigures::optimizer_ns);
    figures.engine.kernels_ns = of(&EngineFigures::kernels_ns);
    std::vector<std::int64_t> events;
    for (const LiftedRecording& recording : all)
        events.insert(events.end(), recording.event_ns.begin(), recording.event_ns.end());
    figures.event_s = static_cast<double>(median(std::move(events))) * kNs;
    figures.launch_s = launch_s;
    return figures;
}

}  // namespace shardscope::trainer::lift
