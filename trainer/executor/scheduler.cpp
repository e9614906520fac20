#include "trainer/executor/scheduler.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace shardscope::trainer::executor {

Scheduler::Scheduler(int workers, const std::function<void(int worker)>& on_worker_start)
    : started_(workers) {
    home_of_worker_.assign(static_cast<std::size_t>(workers), -1);
    at_work_.assign(static_cast<std::size_t>(workers), false);
    workers_.reserve(static_cast<std::size_t>(workers));
    try {
        for (int i = 0; i < workers; ++i) {
            workers_.emplace_back([this, i, &on_worker_start] {
                try {
                    if (on_worker_start) on_worker_start(i);
                } catch (...) {
                    fail(std::current_exception());
                }
                started_.count_down();
                run(i);
            });
        }
    } catch (...) {  // no more threads are available
        stop();
        throw;
    }
    started_.wait();
    if (!error_) return;
    stop();
    std::rethrow_exception(error_);
}

void Scheduler::stop() {
    try {
        wait_all();
    } catch (...) {  // the failure was or will be seen where it matters; here only the threads must end
        (void)std::current_exception();
    }
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    work_available_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
}

device::StreamIndex Scheduler::add_stream(int home) {
    const std::lock_guard lock(mutex_);
    queues_.emplace_back().home = home;
    return static_cast<device::StreamIndex>(queues_.size() - 1);
}

device::StreamEvent Scheduler::enqueue(device::StreamIndex stream, Priority priority,
                                       const device::Waits& waits, Work work, bool exclusive) {
    return append(stream, {priority, waits, std::move(work), nullptr, 0, false, exclusive});
}

device::StreamEvent Scheduler::enqueue_elsewhere(device::StreamIndex stream, const device::Waits& waits,
                                                 Work begin) {
    return append(stream, {Priority::communication, waits, std::move(begin), nullptr, 0, true});
}

// What is only begun now is begun on this thread: to wake a worker for it takes several times as long.
void Scheduler::end_elsewhere(device::StreamIndex stream) {
    std::unique_lock lock(mutex_);
    complete_head(stream);
    while (std::optional<Work> begin = take_beginning()) {
        lock.unlock();
        try {
            (*begin)(-1);
        } catch (...) {
            fail(std::current_exception());
        }
        begin.reset();
        active_.fetch_sub(1, std::memory_order_relaxed);
        lock.lock();
    }
    const std::size_t wakes = claim_wakes();
    lock.unlock();
    wake(wakes);
}

device::StreamEvent Scheduler::enqueue_arrival(device::StreamIndex stream, const device::Waits& waits,
                                               std::shared_ptr<Meeting> meeting, std::size_t part) {
    return append(stream, {Priority::communication, waits, {}, std::move(meeting), part, false});
}

device::StreamEvent Scheduler::append(device::StreamIndex stream, Item item) {
    std::size_t wakes = 0;
    device::StreamEvent event{stream, 0};
    {
        const std::lock_guard lock(mutex_);
        if (error_) std::rethrow_exception(error_);
        Queue& queue = queues_[static_cast<std::size_t>(stream)];
        queue.items.push_back(std::move(item));
        event.sequence = ++queue.enqueued;
        if (queue.items.size() == 1) try_head(stream);
        wakes = claim_wakes();
    }
    wake(wakes);
    return event;
}

device::StreamEvent Scheduler::last(device::StreamIndex stream) const {
    const std::lock_guard lock(mutex_);
    return {stream, queues_[static_cast<std::size_t>(stream)].enqueued};
}

// --- with the lock held ----------------------------------------------------------------------------------

void Scheduler::make_ready(Priority priority, Ready ready) {
    ready_[static_cast<std::size_t>(priority)].push_back(std::move(ready));
    ++ready_count_;
    active_.fetch_add(1, std::memory_order_relaxed);
}

// Makes the head of a stream ready, or arrives, if nothing holds it back.
void Scheduler::try_head(device::StreamIndex stream) {
    Queue& queue = queues_[static_cast<std::size_t>(stream)];
    if (queue.head_taken || queue.items.empty()) return;
    Item& head = queue.items.front();
    for (const device::StreamEvent& event : head.waits.events()) {
        if (!happened(event)) {
            queues_[static_cast<std::size_t>(event.stream)].blocked.push_back(stream);
            return;
        }
    }
    queue.head_taken = true;
    if (head.exclusive) {
        Turn& turn = turns_[queue.home];
        if (turn.taken) return turn.next.push_back(stream);
        turn.taken = true;
    }
    if (!head.meeting) return make_ready(head.priority, {stream, nullptr, 0, queue.home});
    Meeting& meeting = *head.meeting;
    meeting.parts_[head.part].arrived = profiler::ticks();
    meeting.parts_[head.part].home = queue.home;
    meeting.parts_[head.part].live.enter(meeting.parts_[head.part].arrived);
    meeting.streams_.push_back(stream);
    if (meeting.streams_.size() < meeting.parts_.size()) return;
    for (std::size_t part = 0; part < meeting.parts_.size(); ++part) {
        make_ready(Priority::communication, {-1, head.meeting, part, meeting.parts_[part].home});
    }
}

void Scheduler::end_turn(int home) {
    Turn& turn = turns_[home];
    turn.taken = !turn.next.empty();
    if (!turn.taken) return;
    const device::StreamIndex next = turn.next.front();
    turn.next.pop_front();
    make_ready(queues_[static_cast<std::size_t>(next)].items.front().priority, {next, nullptr, 0, home});
}

// The head of a stream is done.
void Scheduler::complete_head(device::StreamIndex stream) {
    Queue& queue = queues_[static_cast<std::size_t>(stream)];
    if (queue.items.front().exclusive) end_turn(queue.home);
    queue.items.pop_front();
    queue.head_taken = false;
    const std::uint64_t completed = queue.completed.fetch_add(1, std::memory_order_release) + 1;
    std::erase_if(queue.hosts, [&](HostWait* host) {
        if (host->sequence > completed) return false;
        host->wake.notify_one();
        return true;
    });
    try_head(stream);
    if (queue.blocked.empty()) return;
    const std::vector<device::StreamIndex> blocked = std::exchange(queue.blocked, {});
    for (const device::StreamIndex waiting : blocked) try_head(waiting);
}

// Whether the part belongs to another home for which a worker is at work, while the worker's own home has
// other work ready.
bool Scheduler::leaves_to_another(const Ready& part, int home) const {
    if (!part.meeting || part.home < 0 || part.home == home) return false;
    bool attended = false;
    for (std::size_t w = 0; w < at_work_.size(); ++w)
        attended = attended || (at_work_[w] && home_of_worker_[w] == part.home);
    if (!attended) return false;
    return std::any_of(ready_.begin() + 1, ready_.end(), [&](const auto& level) {
        return std::any_of(level.begin(), level.end(), [&](const Ready& r) { return r.home == home; });
    });
}

bool Scheduler::take(Ready& next, int worker) {
    int& home = home_of_worker_[static_cast<std::size_t>(worker)];
    for (auto& level : ready_) {
        if (level.empty()) continue;
        auto chosen =
            std::find_if(level.begin(), level.end(), [&](const Ready& r) { return r.home == home; });
        if (chosen == level.end()) chosen = level.begin();
        if (leaves_to_another(*chosen, home)) continue;
        next = std::move(*chosen);
        level.erase(chosen);
        --ready_count_;
        home = next.home;
        return true;
    }
    return false;
}

bool Scheduler::take_due(std::shared_ptr<Meeting>& meeting) {
    if (transfers_.empty()) return false;
    const Clock::time_point now = Clock::now();
    const auto due = std::find_if(transfers_.begin(), transfers_.end(),
                                  [&](const Transfer& transfer) { return transfer.due <= now; });
    if (due == transfers_.end()) return false;
    meeting = std::move(due->meeting);
    transfers_.erase(due);
    return true;
}

// The work of a ready item that is only begun here; none: there is none, or something has failed.
std::optional<Work> Scheduler::take_beginning() {
    if (error_) return std::nullopt;
    std::deque<Ready>& level = ready_[static_cast<std::size_t>(Priority::communication)];
    const auto chosen = std::find_if(level.begin(), level.end(), [&](const Ready& ready) {
        return !ready.meeting && queues_[static_cast<std::size_t>(ready.stream)].items.front().ends_elsewhere;
    });
    if (chosen == level.end()) return std::nullopt;
    Work work = std::move(queues_[static_cast<std::size_t>(chosen->stream)].items.front().work);
    level.erase(chosen);
    --ready_count_;
    return work;
}

// How many sleepers to wake, each once, for the ready items.
std::size_t Scheduler::claim_wakes() {
    if (ready_count_ <= woken_ || asleep_ <= woken_) return 0;
    const std::size_t wakes = std::min(ready_count_, asleep_) - woken_;
    woken_ += wakes;
    return wakes;
}

void Scheduler::sleep(std::unique_lock<std::mutex>& lock) {
    ++asleep_;
    if (transfers_.empty() || error_) {
        work_available_.wait(lock);
    } else {
        const auto due = std::min_element(transfers_.begin(), transfers_.end(),
                                          [](const auto& a, const auto& b) { return a.due < b.due; });
        const Clock::time_point time = due->due;
        work_available_.wait_until(lock, time);
    }
    --asleep_;
    if (woken_ > 0) --woken_;
}

// --- workers ---------------------------------------------------------------------------------------------

void Scheduler::wake(std::size_t workers) {
    for (; workers > 0; --workers) work_available_.notify_one();
}

void Scheduler::run(int worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
        Ready next;
        std::shared_ptr<Meeting> arrived;
        const bool due = !error_ && take_due(arrived);
        if (!due && (error_ || !take(next, worker))) {
            if (stop_) return;
            sleep(lock);
            continue;
        }
        at_work_[static_cast<std::size_t>(worker)] = true;
        try {
            if (due) {
                complete_meeting(lock, *arrived, worker);
            } else if (next.meeting) {
                run_part(lock, next, worker);
            } else {
                run_item(lock, next, worker);
            }
        } catch (...) {
            if (lock.owns_lock()) lock.unlock();
            fail(std::current_exception());
            lock.lock();
        }
        at_work_[static_cast<std::size_t>(worker)] = false;
        if (!due) active_.fetch_sub(1, std::memory_order_relaxed);
    }
}

// Each is entered and left with the lock held, and works without it.

void Scheduler::run_item(std::unique_lock<std::mutex>& lock, const Ready& next, int worker) {
    Item& item = queues_[static_cast<std::size_t>(next.stream)].items.front();
    Work work = std::move(item.work);
    const bool ends_elsewhere = item.ends_elsewhere;
    const std::size_t wakes = claim_wakes();
    lock.unlock();
    wake(wakes);
    work(worker);
    work = nullptr;
    lock.lock();
    if (!ends_elsewhere) complete_head(next.stream);
}

void Scheduler::run_part(std::unique_lock<std::mutex>& lock, const Ready& next, int worker) {
    Meeting& meeting = *next.meeting;
    Meeting::Part& part = meeting.parts_[next.part];
    const std::size_t wakes = claim_wakes();
    lock.unlock();
    wake(wakes);
    part.work(worker);
    part.done = profiler::ticks();
    lock.lock();
    if (++meeting.finished_ < meeting.parts_.size()) return;
    if (meeting.transfer_delay_.count() == 0) return complete_meeting(lock, meeting, worker);
    transfers_.push_back({Clock::now() + meeting.transfer_delay_, next.meeting});
    if (asleep_ > woken_) {  // a sleeper does not know of this time yet
        ++woken_;
        work_available_.notify_one();
    }
}

void Scheduler::complete_meeting(std::unique_lock<std::mutex>& lock, Meeting& meeting, int worker) {
    lock.unlock();
    const profiler::Ticks last_done = profiler::ticks();
    const bool delayed = meeting.transfer_delay_.count() > 0;
    for (Meeting::Part& each : meeting.parts_) {
        each.live.leave(last_done);
        if (each.completion) {
            each.completion(each.arrived, delayed ? last_done : each.done, last_done, worker);
        }
    }
    lock.lock();
    for (const device::StreamIndex stream : meeting.streams_) complete_head(stream);
}

// --- hosts -----------------------------------------------------------------------------------------------

void Scheduler::wait(device::StreamEvent event) {
    if (happened(event)) return;
    std::unique_lock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    if (happened(event)) return;
    auto& hosts = queues_[static_cast<std::size_t>(event.stream)].hosts;
    HostWait host;
    host.sequence = event.sequence;
    hosts.push_back(&host);
    host.wake.wait(lock, [&] { return error_ || happened(event); });
    std::erase(hosts, &host);
    if (!happened(event)) std::rethrow_exception(error_);
}

void Scheduler::wait_all() {
    std::vector<device::StreamEvent> all;
    {
        const std::lock_guard lock(mutex_);
        if (error_) std::rethrow_exception(error_);
        for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
            all.push_back({static_cast<device::StreamIndex>(stream), queues_[stream].enqueued});
        }
    }
    for (const device::StreamEvent event : all) wait(event);
}

void Scheduler::fail(std::exception_ptr error) {
    {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::move(error);
        for (Queue& queue : queues_) {
            for (HostWait* host : queue.hosts) host->wake.notify_one();
        }
    }
    work_available_.notify_all();
}

}  // namespace shardscope::trainer::executor
