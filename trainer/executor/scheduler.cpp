#include "trainer/executor/scheduler.h"

#include <algorithm>
#include <utility>

#include "profiler/clock.h"

namespace shardscope::trainer {

Scheduler::Scheduler(int workers, const std::function<void(int worker)>& on_worker_start) {
    workers_.reserve(static_cast<std::size_t>(workers));
    for (int i = 0; i < workers; ++i) {
        workers_.emplace_back([this, i, on_worker_start] {
            if (on_worker_start) on_worker_start(i);
            run(i);
        });
    }
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

StreamIndex Scheduler::add_stream() {
    const std::lock_guard lock(mutex_);
    queues_.emplace_back();
    return static_cast<StreamIndex>(queues_.size() - 1);
}

StreamEvent Scheduler::enqueue(StreamIndex stream, Priority priority, std::vector<StreamEvent> waits,
                               Work work) {
    return append(stream, {priority, std::move(waits), std::move(work), nullptr, 0});
}

StreamEvent Scheduler::enqueue_arrival(StreamIndex stream, std::vector<StreamEvent> waits,
                                       std::shared_ptr<Meeting> meeting, std::size_t part) {
    return append(stream, {Priority::communication, std::move(waits), {}, std::move(meeting), part});
}

StreamEvent Scheduler::append(StreamIndex stream, Item item) {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    Queue& queue = queues_[static_cast<std::size_t>(stream)];
    queue.items.push_back(std::move(item));
    ++queue.enqueued;
    if (queue.items.size() == 1) try_head(stream);
    return {stream, queue.enqueued};
}

StreamEvent Scheduler::last(StreamIndex stream) const {
    const std::lock_guard lock(mutex_);
    return {stream, queues_[static_cast<std::size_t>(stream)].enqueued};
}

bool Scheduler::happened(StreamEvent event) const {
    if (event.stream < 0 || event.sequence == 0) return true;
    const Queue& queue = queues_[static_cast<std::size_t>(event.stream)];
    return queue.completed.load(std::memory_order_acquire) >= event.sequence;
}

// Makes the head of a stream ready, or arrives, if nothing holds it back. Called with the lock held.
void Scheduler::try_head(StreamIndex stream) {
    Queue& queue = queues_[static_cast<std::size_t>(stream)];
    if (queue.head_taken || queue.items.empty()) return;
    Item& head = queue.items.front();
    for (const StreamEvent& event : head.waits) {
        if (!happened(event)) {
            queues_[static_cast<std::size_t>(event.stream)].blocked.push_back(stream);
            return;
        }
    }
    queue.head_taken = true;
    if (!head.meeting) {
        ready_[static_cast<std::size_t>(head.priority)].push_back({stream, nullptr, 0});
        work_available_.notify_one();
        return;
    }
    Meeting& meeting = *head.meeting;
    meeting.parts_[head.part].arrived = profiler::ticks();
    meeting.streams_.push_back(stream);
    if (meeting.streams_.size() < meeting.parts_.size()) return;
    auto& ready = ready_[static_cast<std::size_t>(Priority::communication)];
    for (std::size_t part = 0; part < meeting.parts_.size(); ++part)
        ready.push_back({-1, head.meeting, part});
    work_available_.notify_all();
}

// The head of a stream is done. Called with the lock held.
void Scheduler::complete_head(StreamIndex stream) {
    Queue& queue = queues_[static_cast<std::size_t>(stream)];
    queue.items.pop_front();
    queue.head_taken = false;
    queue.completed.fetch_add(1, std::memory_order_release);
    std::vector<StreamIndex> blocked = std::exchange(queue.blocked, {});
    try_head(stream);
    for (const StreamIndex waiting : blocked) try_head(waiting);
}

void Scheduler::run(int worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto level =
            std::find_if(ready_.begin(), ready_.end(), [](const auto& q) { return !q.empty(); });
        if (level == ready_.end() || error_) {
            if (stop_) return;
            work_available_.wait(lock);
            continue;
        }
        Ready next = std::move(level->front());
        level->pop_front();
        try {
            if (!next.meeting) {
                Work work = std::move(queues_[static_cast<std::size_t>(next.stream)].items.front().work);
                lock.unlock();
                work(worker);
                work = nullptr;
                lock.lock();
                complete_head(next.stream);
            } else {
                Meeting& meeting = *next.meeting;
                Meeting::Part& part = meeting.parts_[next.part];
                lock.unlock();
                part.work(worker);
                part.done = profiler::ticks();
                lock.lock();
                if (++meeting.finished_ == meeting.parts_.size()) {
                    lock.unlock();
                    const std::uint64_t last_done = profiler::ticks();
                    for (Meeting::Part& each : meeting.parts_) {
                        if (each.completion) each.completion(each.arrived, each.done, last_done, worker);
                    }
                    lock.lock();
                    for (const StreamIndex stream : meeting.streams_) complete_head(stream);
                }
            }
        } catch (...) {
            if (!lock.owns_lock()) lock.lock();
            if (!error_) error_ = std::current_exception();
        }
        if (waiting_hosts_ > 0) progress_.notify_all();
    }
}

void Scheduler::wait(StreamEvent event) {
    std::unique_lock lock(mutex_);
    ++waiting_hosts_;
    progress_.wait(lock, [&] { return error_ || happened(event); });
    --waiting_hosts_;
    if (error_) std::rethrow_exception(error_);
}

void Scheduler::wait_all() {
    std::unique_lock lock(mutex_);
    ++waiting_hosts_;
    progress_.wait(lock, [&] {
        return error_ ||
               std::all_of(queues_.begin(), queues_.end(), [](const Queue& q) { return q.items.empty(); });
    });
    --waiting_hosts_;
    if (error_) std::rethrow_exception(error_);
}

void Scheduler::fail(std::exception_ptr error) {
    {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::move(error);
    }
    progress_.notify_all();
    work_available_.notify_all();
}

}  // namespace shardscope::trainer
