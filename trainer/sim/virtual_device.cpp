#include "trainer/sim/virtual_device.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardscope::trainer::sim {

namespace {

constexpr double kRounding = 1e-3;  // nanoseconds: rounding error of sums of shares

std::int64_t members(const RankClasses& ranks, int rank_class) {
    return ranks.classes[static_cast<std::size_t>(rank_class)].ranks;
}

}  // namespace

VirtualDevice::VirtualDevice(const RankClasses& ranks, SharedCores cores, StreamListener& listener)
    : ranks_(ranks),
      cores_(std::move(cores)),
      listener_(listener),
      streams_(ranks.classes.size() * plan::kStreams),
      used_(ranks.links > 0 ? plan::kStreams : static_cast<int>(plan::Stream::serve)),
      arrived_(ranks.communicators.size()),
      links_(static_cast<std::size_t>(ranks.links)),
      host_works_(ranks.classes.size(), false),
      in_turn_(ranks.classes.size(), false),
      shares_(1 + (ranks.share_devices ? ranks.devices.size() * kEngines : 0)),
      on_engines_(ranks.classes.size()) {}

device::StreamEvent VirtualDevice::enqueue(device::StreamIndex stream, const StreamItem& item) {
    StreamState& state = streams_[static_cast<std::size_t>(stream)];
    state.queue.push_back(item);
    const device::StreamEvent event{stream, ++state.issued};
    start_heads(stream / plan::kStreams);
    return event;
}

void VirtualDevice::begin_host_work(int rank_class, Time duration) {
    host_works_[static_cast<std::size_t>(rank_class)] = true;
    Job job;
    job.host = rank_class;
    job.ranks = static_cast<int>(members(ranks_, rank_class));
    begin(job, duration);
}

// --- time ------------------------------------------------------------------------------------------------

double VirtualDevice::rate(const Share& share) const {
    if (share.ranks == 0) return 1;
    if (&share != &shares_.front()) return 1.0 / static_cast<double>(share.ranks);
    if (cores_.count == 0) return 1;
    const double wanted = static_cast<double>(share.ranks) / ranks_.nodes;  // per node
    const double busy = std::min(wanted, static_cast<double>(cores_.count));
    return busy / wanted * cores_.busy_share.at(busy);
}

Time VirtualDevice::next(const Share& share) const {
    if (share.running.empty()) return kNever;
    const double left = share.running.top().finish - share.service;
    return now_ + static_cast<Time>(std::ceil(std::max(left - kRounding, 0.0) / rate(share)));
}

Time VirtualDevice::next() const {
    Time first = kNever;
    for (const Share& share : shares_) first = std::min(first, next(share));
    return first;
}

void VirtualDevice::advance(Time to) {
    if (to != now_) freed_ = 0;
    for (Share& share : shares_) share.service += static_cast<double>(to - now_) * rate(share);
    now_ = to;
}

void VirtualDevice::complete() {
    advance(next());
    for (Share& share : shares_) {
        const double reached = share.service + kRounding;
        while (!share.running.empty() && share.running.top().finish <= reached) {
            const Job job = share.running.top();
            share.running.pop();
            count(job, -1);
            if (job.host < 0) freed_ += job.ranks;
            end(job);
        }
    }
}

void VirtualDevice::begin(Job job, Time duration) {
    Share& share = shares_[job.share];
    job.finish = share.service + static_cast<double>(duration);
    running_work_ += job.stream >= 0;
    if (job.communicator < 0) waiting_ = false;
    job.order = ++jobs_;
    count(job, 1);
    share.running.push(job);
}

// A rank counts once, however many of its streams use the engine: alone they would not slow each other
// either.
void VirtualDevice::count(const Job& job, int change) {
    Share& share = shares_[job.share];
    if (job.share == 0) {
        share.ranks += change * job.ranks;
        return;
    }
    const auto rank_class = static_cast<std::size_t>(job.stream / plan::kStreams);
    int& running = on_engines_[rank_class][(job.share - 1) % kEngines];
    const bool worked = running > 0;
    running += change;
    if (worked != (running > 0)) share.ranks += change * ranks_.classes[rank_class].beside;
}

void VirtualDevice::use_engine(Job job) {
    const auto device = static_cast<std::size_t>(class_of(job.stream).device);
    const Engine engine = streams_[static_cast<std::size_t>(job.stream)].queue.front().engine;
    job.share = 1 + device * kEngines + static_cast<std::size_t>(engine);
    const Time duration = std::exchange(job.on_engine, 0);
    begin(job, duration);
}

void VirtualDevice::hosts_wait() {
    if (waiting_ || running_work_ > 0) return;
    waiting_ = true;
    if (!std::exchange(slowed_, false)) return;
    Share& share = shares_.front();
    std::vector<Job> jobs;
    for (; !share.running.empty(); share.running.pop()) jobs.push_back(share.running.top());
    for (Job& job : jobs) {
        job.finish = share.service + (job.finish - share.service) / std::exchange(job.beside_work, 1);
        share.running.push(job);
    }
}

void VirtualDevice::end(const Job& job) {
    running_work_ -= job.stream >= 0;
    if (job.host >= 0) {
        host_works_[static_cast<std::size_t>(job.host)] = false;
        return;
    }
    if (job.on_engine > 0) return use_engine(job);  // its latency has ended
    if (job.stream >= 0) {
        end_head(job.stream);
        start_heads(job.stream / plan::kStreams);
        return;
    }
    const std::vector<device::StreamIndex> together =
        std::exchange(arrived_[static_cast<std::size_t>(job.communicator)], {});
    free_link(ranks_.communicators[static_cast<std::size_t>(job.communicator)].link);
    for (const device::StreamIndex stream : together) end_head(stream);
    for (const device::StreamIndex stream : together) start_heads(stream / plan::kStreams);
}

// --- streams ---------------------------------------------------------------------------------------------

void VirtualDevice::end_head(device::StreamIndex stream) {
    StreamState& state = streams_[static_cast<std::size_t>(stream)];
    const StreamItem item = state.queue.front();
    const auto rank_class = static_cast<std::size_t>(stream / plan::kStreams);
    if (item.op && item.op->exclusive) in_turn_[rank_class] = false;
    state.queue.pop_front();
    state.busy = false;
    ++state.completed;
    listener_.ended(stream / plan::kStreams, item, state.start, now_);
}

// Starts the heads of all streams of the class: work that ended on one may be what another waits for.
void VirtualDevice::start_heads(int rank_class) {
    for (bool again = true; again;) {
        again = false;
        const device::StreamIndex first = rank_class * plan::kStreams;
        for (device::StreamIndex s = first; s < first + used_; ++s) {
            while (start_head(s)) again = true;
        }
    }
}

// Returns true if the head was only a mark, and is completed.
bool VirtualDevice::start_head(device::StreamIndex stream) {
    StreamState& state = streams_[static_cast<std::size_t>(stream)];
    if (state.busy || state.queue.empty()) return false;
    const StreamItem& head = state.queue.front();
    for (const device::StreamEvent event : head.waits.events()) {
        if (!happened(event)) return false;
    }
    if (head.kind == StreamItem::Kind::mark) {
        state.queue.pop_front();
        ++state.completed;
        return true;
    }
    if (head.op && head.op->exclusive) {
        const auto turn = in_turn_.begin() + stream / plan::kStreams;
        if (*turn) return false;
        *turn = true;
    }
    state.busy = true;
    state.start = now_;
    if (head.kind == StreamItem::Kind::collective) {
        arrive(stream, head);
        return false;
    }
    Job job;
    job.stream = stream;
    job.ranks = static_cast<int>(members(ranks_, stream / plan::kStreams));
    const Time waking = this->waking(stream, job.ranks);
    state.start += waking;
    if (ranks_.share_devices && head.engine != Engine::none)
        job.on_engine = std::max<Time>(head.duration - head.latency, 0);
    const Time before = waking + head.duration - job.on_engine;
    if (before > 0) {
        begin(job, before);
    } else {
        use_engine(job);
    }
    return false;
}

// The time to wake: a core that has just finished work continues with the next item; an idle core, or a
// device without work, must wake first.
Time VirtualDevice::waking(device::StreamIndex stream, int ranks) {
    if (cores_.wake == 0) return 0;
    if (cores_.count > 0) {
        if (freed_ >= ranks) {
            freed_ -= ranks;
            return 0;
        }
        return shares_.front().ranks < static_cast<std::int64_t>(cores_.count) * ranks_.nodes ? cores_.wake
                                                                                              : 0;
    }
    if (freed_ > 0) return 0;
    const auto& on_device = ranks_.devices[static_cast<std::size_t>(class_of(stream).device)];
    const bool works = std::any_of(on_device.begin(), on_device.end(), [&](int rank_class) {
        const auto first = streams_.begin() + rank_class * plan::kStreams;
        return std::any_of(first, first + plan::kStreams, [&](const StreamState& other) {
            return other.busy && &other != &streams_[static_cast<std::size_t>(stream)];
        });
    });
    return works ? 0 : cores_.wake;
}

void VirtualDevice::arrive(device::StreamIndex stream, const StreamItem& item) {
    const auto c = static_cast<std::size_t>(item.communicator);
    const CommunicatorClass& communicator = ranks_.communicators[c];
    arrived_[c].push_back(stream);
    if (arrived_[c].size() < communicator.classes.size()) return;
    if (communicator.link >= 0) {
        Link& link = links_[static_cast<std::size_t>(communicator.link)];
        if (link.busy) return link.next.push_back(item.communicator);
        link.busy = true;
    }
    start_collective(item.communicator);
}

void VirtualDevice::free_link(int number) {
    if (number < 0) return;
    Link& link = links_[static_cast<std::size_t>(number)];
    link.busy = !link.next.empty();
    if (!link.busy) return;
    const int next = link.next.front();
    link.next.pop_front();
    start_collective(next);
}

// All members have arrived.
void VirtualDevice::start_collective(int communicator) {
    const auto c = static_cast<std::size_t>(communicator);
    const StreamItem& item = streams_[static_cast<std::size_t>(arrived_[c].back())].queue.front();
    Job job;
    job.communicator = communicator;
    job.ranks = ranks_.communicators[c].ranks;
    job.beside_work = waiting_ ? 1 : item.beside_work;
    slowed_ = slowed_ || job.beside_work != 1;
    begin(job, static_cast<Time>(std::llround(static_cast<double>(item.duration) * job.beside_work)));
}

}  // namespace shardscope::trainer::sim
