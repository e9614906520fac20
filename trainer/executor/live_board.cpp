#include "trainer/executor/live_board.h"

#include <algorithm>

#include "trainer/executor/run.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::executor {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed, kAcquire = std::memory_order_acquire;

}  // namespace

std::string LiveRank::text() const {
    world::MessageWriter message;
    message.add(steps_done)
        .add(memory_bytes)
        .add(peak_bytes)
        .add(waited_ns)
        .add(std::uint64_t{groups.size()});
    for (const traces::status::GroupProgress& group : groups) {
        message.add(group.group)
            .add(group.entered)
            .add(group.left)
            .add(group.for_s)
            .add(std::string_view(group.operation));
    }
    return message.take();
}

LiveRank LiveRank::from_text(std::string_view text) {
    world::MessageReader message(text);
    LiveRank rank;
    rank.steps_done = message.number<std::int64_t>();
    rank.memory_bytes = message.number<std::int64_t>();
    rank.peak_bytes = message.number<std::int64_t>();
    rank.waited_ns = message.number<std::int64_t>();
    for (auto left = message.number<std::uint64_t>(); left > 0; --left) {
        traces::status::GroupProgress& group = rank.groups.emplace_back();
        group.group = message.number<std::int64_t>();
        group.entered = message.number<std::int64_t>();
        group.left = message.number<std::int64_t>();
        group.for_s = message.number<double>();
        group.operation = message.text();
    }
    return rank;
}

LiveBoard::LiveBoard(const std::vector<int>& ranks)
    : ranks_(ranks), own_(std::make_unique<Rank[]>(ranks.size())) {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        for (Cell<std::int64_t>& id : own_[r].ids) id.store(kNone, kRelaxed);
}

// Over the time since the board was made.
double LiveBoard::ns_per_tick() const {
    const std::uint64_t ticks = profiler::ticks() - start_;
    const std::int64_t ns = profiler::monotonic_ns() - start_ns_;
    return ticks > 0 && ns > 0 ? static_cast<double>(ns) / static_cast<double>(ticks) : 0;
}

// The rank's entry for a group, made at the group's first collective; null: there are too many.
LiveGroup* LiveBoard::find(Rank& rank, plan::CommunicatorId group) {
    const std::int64_t id = format_as(group);
    for (std::size_t g = 0; g < kGroups; ++g) {
        std::int64_t own = rank.ids[g].load(kRelaxed);
        if (own == kNone && rank.ids[g].compare_exchange_strong(own, id, kRelaxed)) own = id;
        if (own == id) return &rank.groups[g];
    }
    return nullptr;
}

void LiveBoard::stepped(int number, std::int64_t steps_done, std::int64_t memory_bytes,
                        std::int64_t peak_bytes) {
    if (!listens_.load(kRelaxed)) return;
    Rank& own = rank(number);
    own.steps_done.store(steps_done, kRelaxed);
    own.memory.store(memory_bytes, kRelaxed);
    own.peak.store(peak_bytes, kRelaxed);
}

LiveCollective LiveBoard::collective(int number, plan::CommunicatorId group, std::int64_t sequence,
                                     traces::schema::Operation operation) {
    return {listens_.load(kRelaxed) ? find(rank(number), group) : nullptr, sequence, operation};
}

void LiveBoard::known(const StepReport& step) {
    loss_.store(step.loss, kRelaxed);
    seconds_.store(step.seconds_since_start, kRelaxed);
    if (first_done_.load(kRelaxed) < 0) {
        first_done_.store(step.step + 1, kRelaxed);
        first_seconds_.store(step.seconds_since_start, kRelaxed);
    }
    if (step.seconds > 0) step_s_.store(step.seconds, kRelaxed);
    epoch_.store(step.epoch.value_or(-1), kRelaxed);
    done_.store(step.step + 1, kRelaxed);
}

LiveRank LiveBoard::of(int number) const {
    const Rank& own = rank(number);
    LiveRank now;
    now.steps_done = own.steps_done.load(kRelaxed);
    now.memory_bytes = own.memory.load(kRelaxed);
    now.peak_bytes = own.peak.load(kRelaxed);
    const double tick_ns = ns_per_tick();
    const std::uint64_t time = profiler::ticks().count;
    for (std::size_t g = 0; g < kGroups; ++g) {
        const LiveGroup& each = own.groups[g];
        const std::int64_t id = own.ids[g].load(kRelaxed), entered = each.entered_.load(kAcquire);
        if (id == kNone || entered == 0) continue;
        traces::status::GroupProgress& group = now.groups.emplace_back();
        group.group = id;
        group.left = std::min(each.left_.load(kAcquire), entered);
        group.entered = entered;
        // Another core's counter may be a few ticks ahead.
        const std::uint64_t changed =
            std::min(std::max(each.entered_at_.load(kRelaxed), each.left_at_.load(kRelaxed)), time);
        group.for_s = static_cast<double>(time - changed) * tick_ns * 1e-9;
        now.waited_ns +=
            static_cast<std::int64_t>(static_cast<double>(each.waited_.load(kRelaxed)) * tick_ns);
        group.operation = name(each.operation_.load(kRelaxed));
    }
    return now;
}

LiveSteps LiveBoard::steps() const {
    LiveSteps now;
    now.done = done_.load(kRelaxed);
    now.loss = loss_.load(kRelaxed);
    now.step_s = step_s_.load(kRelaxed);
    const std::int64_t timed = now.done - first_done_.load(kRelaxed);
    const double seconds = seconds_.load(kRelaxed);
    now.mean_step_s =
        timed > 0 ? (seconds - first_seconds_.load(kRelaxed)) / static_cast<double>(timed) : seconds;
    if (const double epoch = epoch_.load(kRelaxed); epoch >= 0) now.epoch = epoch;
    return now;
}

}  // namespace shardscope::trainer::executor
