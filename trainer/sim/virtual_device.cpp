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
      in_turn_(ranks.classes.size(), false) {}

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

double VirtualDevice::rate() const {
    if (cores_.count == 0 || running_ranks_ == 0) return 1;
    const double wanted = static_cast<double>(running_ranks_) / ranks_.nodes;  // per node
    const double busy = std::min(wanted, static_cast<double>(cores_.count));
    return busy / wanted * cores_.busy_share.at(busy);
}

Time VirtualDevice::next() const {
    const Time beside = beside_.empty() ? kNever : static_cast<Time>(beside_.top().finish);
    if (running_.empty()) return beside;
    const double left = running_.top().finish - service_;
    return std::min(beside, now_ + static_cast<Time>(std::ceil(std::max(left - kRounding, 0.0) / rate())));
}

void VirtualDevice::advance(Time to) {
    if (to != now_) freed_ = 0;
    service_ += static_cast<double>(to - now_) * rate();
    now_ = to;
}

void VirtualDevice::complete() {
    advance(next());
    const double reached = service_ + kRounding;
    while (!running_.empty() && running_.top().finish <= reached) {
        const Job job = running_.top();
        running_.pop();
        running_ranks_ -= job.ranks;
        if (job.host < 0) freed_ += job.ranks;
        end(job);
    }
    while (!beside_.empty() && static_cast<Time>(beside_.top().finish) <= now_) {
        const device::StreamIndex stream = beside_.top().stream;
        beside_.pop();
        end_head(stream);
        start_heads(stream / plan::kStreams);
    }
}

void VirtualDevice::begin_beside(device::StreamIndex stream, Time duration) {
    Job job;
    job.finish = static_cast<double>(now_ + duration);
    job.order = ++jobs_;
    job.stream = stream;
    beside_.push(job);
}

void VirtualDevice::begin(Job job, Time duration) {
    job.finish = service_ + static_cast<double>(duration);
    running_work_ += job.stream >= 0;
    if (job.communicator < 0) waiting_ = false;
    job.order = ++jobs_;
    running_ranks_ += job.ranks;
    running_.push(job);
}

void VirtualDevice::hosts_wait() {
    if (waiting_ || running_work_ > 0) return;
    waiting_ = true;
    if (!std::exchange(slowed_, false)) return;
    std::vector<Job> jobs;
    for (; !running_.empty(); running_.pop()) jobs.push_back(running_.top());
    for (Job& job : jobs) {
        job.finish = service_ + (job.finish - service_) / std::exchange(job.beside_work, 1);
        running_.push(job);
    }
}

void VirtualDevice::end(const Job& job) {
    running_work_ -= job.stream >= 0;
    if (job.host >= 0) {
        host_works_[static_cast<std::size_t>(job.host)] = false;
        return;
    }
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
    if (!head.takes_core) {
        begin_beside(stream, head.duration);
        return false;
    }
    Job job;
    job.stream = stream;
    job.ranks = static_cast<int>(members(ranks_, stream / plan::kStreams));
    const Time waking = this->waking(stream, job.ranks);
    state.start += waking;
    begin(job, waking + head.duration);
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
        return running_ranks_ < static_cast<std::int64_t>(cores_.count) * ranks_.nodes ? cores_.wake : 0;
    }
    if (freed_ > 0) return 0;
    const auto first = streams_.begin() + stream / plan::kStreams * plan::kStreams;
    const bool works = std::any_of(first, first + plan::kStreams, [&](const StreamState& other) {
        return other.busy && other.queue.front().takes_core &&
               &other != &streams_[static_cast<std::size_t>(stream)];
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
