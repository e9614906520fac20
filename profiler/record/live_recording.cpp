#include "profiler/record/live_recording.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "profiler/record/wording.h"
#include "shardscope/version.h"

namespace shardscope::profiler {

namespace {

using traces::status::RankState;
using traces::status::RankStatus;
using traces::status::RunState;
using traces::status::RunStatus;

constexpr std::int64_t kLinePeriodNs = 500'000'000;
constexpr std::int64_t kCountedNs = 1'000'000'000;  // within which counters of what lives are sampled again
constexpr double kQuietS = 3;  // without any event for that long, the status says where all are
constexpr std::size_t kPlacesNamed = 4;

double to_s(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-9;
}

std::string who(const Collector::Place& place) {
    return place.rank >= 0 ? fmt::format("rank {}", place.rank) : fmt::format("process {}", place.pid);
}

}  // namespace

LiveRecording::LiveRecording(const std::string& address, Facts facts)
    : facts_(std::move(facts)), rows_(facts_.step_name) {
    RunStatus first;
    first.tool = fmt::format("shardscope-record {}", kVersion);
    first.run = facts_.command;
    first.trace = facts_.trace;
    first.host = facts_.host;
    first.pid = facts_.pid;
    publish(first);
    StatusServerOptions options;
    options.address = address.empty()
                          ? traces::status::Address{traces::status::socket_of(facts_.trace), {}, 0}
                          : traces::status::parse_address(address);
    options.token = traces::status::token_of([](const char* name) { return std::getenv(name); });
    options.line = [this] {
        const std::lock_guard lock(mutex_);
        return line_;
    };
    server_ = std::make_unique<StatusServer>(std::move(options));
}

void LiveRecording::publish(const RunStatus& status) {
    std::string line = to_line(status);
    const std::lock_guard lock(mutex_);
    line_ = std::move(line);
}

void LiveRecording::tick(std::int64_t now_ns, const Collector& collector) {
    if (now_ns < next_ns_) return;
    next_ns_ = now_ns + kLinePeriodNs;
    publish(describe(now_ns, collector));
}

void LiveRecording::end(std::int64_t now_ns, int exit_status, const Collector* collector) {
    RunStatus status;
    if (collector != nullptr) status = describe(now_ns, *collector);
    status.state = exit_status == 0 ? RunState::finished : RunState::failed;
    status.reason = exit_status == 0 ? std::string() : ending(exit_status);
    for (RankStatus& rank : status.ranks) {
        rank.state = RankState::ended;
        rank.range.reset();
    }
    publish(status);
}

RunStatus LiveRecording::describe(std::int64_t now_ns, const Collector& collector) {
    RunStatus status;
    status.tool = fmt::format("shardscope-record {}", kVersion);
    status.run = facts_.command;
    status.trace = facts_.trace;
    status.host = facts_.host;
    status.pid = facts_.pid;
    status.number = ++lines_;
    status.time_s = to_s(now_ns);
    status.state = RunState::running;
    status.processes = collector.processes();
    status.events = collector.rows();
    status.dropped_events = collector.dropped();
    for (const auto& [number, live] : rows_.ranks()) {
        // Processes without a rank are gone, or have one by now.
        if (number < 0 && live.counted_ns < now_ns - kCountedNs) continue;
        RankStatus& rank = status.ranks.emplace_back();
        rank.rank = number;
        rank.host = live.host;
        rank.pid = live.pid;
        rank.state = RankState::running;
        rank.steps_done = live.steps_done;
        rank.resident_bytes = live.resident_bytes;
        rank.cores = live.cores;
        rank.collective = live.collective;
        if (rank.collective) rank.collective->for_s = std::max(0.0, to_s(now_ns - live.collective_ns));
    }
    add_places(status, collector.places_now(now_ns));
    add_speed(status, now_ns);
    say_what_is_quiet(status, now_ns, collector);
    return status;
}

// Each rank's innermost open range; of several threads, the one that has been in its longest.
void LiveRecording::add_places(RunStatus& status, const std::vector<Collector::Place>& places) const {
    for (const Collector::Place& place : places) {
        auto rank = std::find_if(status.ranks.begin(), status.ranks.end(),
                                 [&](const RankStatus& each) { return each.rank == place.rank; });
        if (rank == status.ranks.end()) continue;
        const double for_s = std::max(0.0, to_s(place.until_ns - place.since_ns));
        if (!rank->range || for_s > rank->range->for_s.value_or(0))
            rank->range = traces::status::RangeStatus{place.text, for_s};
    }
}

// The time of a step, from when steps were seen to end.
void LiveRecording::add_speed(RunStatus& status, std::int64_t now_ns) {
    status.steps_done = rows_.steps_done();
    if (!status.steps_done) return;
    if (*status.steps_done != steps_seen_) {
        if (steps_seen_ >= 0 && *status.steps_done > steps_seen_)
            step_s_ = to_s(now_ns - step_seen_ns_) / static_cast<double>(*status.steps_done - steps_seen_);
        steps_seen_ = *status.steps_done;
        step_seen_ns_ = now_ns;
    }
    if (step_s_ <= 0) return;
    status.step_s = step_s_;
    status.rate = 1 / step_s_;
    status.items = "steps";
}

void LiveRecording::say_what_is_quiet(RunStatus& status, std::int64_t now_ns, const Collector& collector) {
    if (collector.activity() != activity_.count) activity_ = {collector.activity(), now_ns};
    const double quiet_s = to_s(now_ns - activity_.since_ns);
    if (activity_.count == 0 || quiet_s < kQuietS) return;
    std::vector<Collector::Place> places = collector.places_now(now_ns);
    if (places.empty()) return;  // a program that makes no calls is not at fault
    status.state = RunState::waiting;
    status.reason = fmt::format("nothing has been recorded for {:.1f} s: ", quiet_s);
    // The one that went into its range first is not the one that the others wait for: the last is first.
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.since_ns > b.since_ns; });
    for (std::size_t i = 0; i < std::min(places.size(), kPlacesNamed); ++i) {
        status.reason += fmt::format("{}{} is in {} for {:.1f} s", i == 0 ? "" : ", ", who(places[i]),
                                     places[i].text.empty() ? "a range without a name" : places[i].text,
                                     to_s(now_ns - places[i].since_ns));
    }
    if (places.size() > kPlacesNamed)
        status.reason += fmt::format(" and {} more", places.size() - kPlacesNamed);
}

}  // namespace shardscope::profiler
