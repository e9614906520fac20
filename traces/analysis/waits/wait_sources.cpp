// What WaitFinder knows about each event, in one pass over each table; see waits.h.
#include <algorithm>
#include <map>
#include <utility>

#include "traces/analysis/base/call_roles.h"
#include "traces/analysis/time/device_time.h"
#include "traces/analysis/waits/waits.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// With two parts of one rank it is unknown which rank came last.
bool comparable(const CollectiveMatch& match, std::span<const Communication> parts) {
    if (match.unmatched || match.transfer_ns < 0 || parts.size() < 2) return false;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        if (parts[i].rank == parts[i - 1].rank) return false;
    }
    return true;
}

}  // namespace

WaitFinder::WaitFinder(const store::Trace& trace)
    : trace_(trace),
      streams_(events_by_stream(trace)),
      steps_(find_steps(trace).ranks),
      communications_(match_communications(trace)),
      ended_(ended_work(trace)) {
    for (const KindUnions& unions : device_unions(trace))
        compute_.push_back(of(unions, store::DeviceKind::kernel));
    follow_streams();
    match_ranks();
    read_calls();
}

void WaitFinder::follow_streams() {
    const store::DeviceEvents& device = trace_.device;
    const auto end_of = [&](std::int32_t e) { return device.end[static_cast<std::size_t>(e)]; };
    of_rank_.resize(trace_.ranks.size());
    before_.resize(trace_.streams.size());
    for (std::size_t s = 0; s < trace_.streams.size(); ++s) {
        const std::span<const std::uint32_t> events = stream(s);
        if (events.empty() || !trace_.streams[s].rank.known()) continue;
        of_rank_[trace_.streams[s].rank.at()].push_back(static_cast<std::uint16_t>(s));
        std::int32_t latest = -1;
        std::vector<std::int32_t> before;
        bool in_order = true;
        for (const std::uint32_t event : events) {
            const auto e = static_cast<std::int32_t>(event);
            before.push_back(latest);
            if (latest < 0 || end_of(e) >= end_of(latest)) {
                latest = e;
            } else {
                in_order = false;
            }
        }
        if (!in_order) before_[s] = std::move(before);
    }
    std::map<std::pair<std::uint16_t, std::int64_t>, std::int32_t> of_group;  // by rank and communicator
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] != store::DeviceKind::communication) continue;
        const auto e = static_cast<std::int32_t>(i);
        Communicating& one = communicating_.emplace_back(Communicating{.event = e});
        const std::int32_t row = device.collective[i];
        if (row < 0 || trace_.collectives.group_size[static_cast<std::size_t>(row)] <= 0) continue;
        const std::int64_t group = trace_.collectives.group[static_cast<std::size_t>(row)];
        std::int32_t& latest = of_group.try_emplace({device.rank[i], group}, -1).first->second;
        one.ahead = latest;
        if (latest < 0 || end_of(e) >= end_of(latest)) latest = e;
    }
}

void WaitFinder::match_ranks() {
    for (std::size_t m = 0; m < communications_.matches.size(); ++m) {
        const CollectiveMatch& match = communications_.matches[m];
        const std::span<const Communication> parts = communications_.of(match);
        if (!comparable(match, parts)) continue;
        for (const Communication& part : parts) {
            if (part.event < 0) continue;
            if (const Communicating* one = communicating(static_cast<std::size_t>(part.event)))
                communicating_[static_cast<std::size_t>(one - communicating_.data())].match =
                    static_cast<std::int32_t>(m);
        }
    }
}

// A call that makes a stream wait does not always say which: it is the one of the thread's next launch. What
// it waits for was recorded by the call before it, if nothing was launched in between, and that stream is
// taken to be the one of the last launch.
void WaitFinder::read_calls() {
    const store::RuntimeCalls& runtime = trace_.runtime;
    const store::DeviceEvents& device = trace_.device;
    const CallRoles roles(trace_);
    std::vector<std::int32_t> launches(runtime.size(), -1);
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.launch[i] >= 0)
            launches[static_cast<std::size_t>(device.launch[i])] = static_cast<std::int32_t>(i);
    }
    struct Thread {
        std::int32_t launched = -1, recorded = -1;  // device events
        std::vector<StreamWait> pending;
    };
    std::vector<Thread> threads(trace_.threads.size());
    stream_waits_.resize(trace_.streams.size());
    host_waits_.resize(trace_.threads.size());
    loading_.resize(trace_.threads.size());
    for (std::size_t c = 0; c < runtime.size(); ++c) {
        const auto call = static_cast<std::int32_t>(c);
        Thread& thread = threads[runtime.thread[c]];
        switch (roles.role[c]) {
            case CallRole::records:
                thread.recorded = thread.launched;
                break;
            case CallRole::stream_waits:
                if (roles.stream[c] >= 0) {
                    stream_waits_[static_cast<std::size_t>(roles.stream[c])].push_back(
                        {call, thread.recorded});
                } else {
                    thread.pending.push_back({call, thread.recorded});
                }
                break;
            case CallRole::waits:
                host_waits_[runtime.thread[c]].push_back({call, roles.stream[c]});
                break;
            case CallRole::plain:
            case CallRole::polls:
                break;
        }
        if (launches[c] < 0) continue;
        thread.launched = launches[c];
        thread.recorded = -1;
        auto& waits = stream_waits_[device.stream[static_cast<std::size_t>(launches[c])]];
        waits.insert(waits.end(), thread.pending.begin(), thread.pending.end());
        thread.pending.clear();
    }
    for (std::vector<StreamWait>& waits : stream_waits_) {
        std::stable_sort(waits.begin(), waits.end(),
                         [](const StreamWait& a, const StreamWait& b) { return a.call < b.call; });
    }
    for (std::size_t r = 0; r < trace_.ranges.size(); ++r) {
        if (trace_.ranges.kind[r] == store::RangeKind::data_loader)
            loading_[trace_.ranges.thread[r]].push_back(static_cast<std::int32_t>(r));
    }
}

}  // namespace shardscope::traces::analysis
