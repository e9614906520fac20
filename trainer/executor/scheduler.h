// Streams on a CPU: queues of work, carried out in order per stream by one pool of workers for all ranks.
//
// An event is a (stream, sequence) pair: it has happened when the stream has completed that many items. No
// worker ever waits: an item is taken only when it heads its stream and its events have happened. A
// collective is a meeting of one item per rank: an item that could run *arrives*; when all have arrived,
// every rank's part becomes work, and the streams go on when all parts are done. Workers prefer communication
// to copies to compute. An item that another thread ends (a collective between processes) is only begun by a
// worker. Of the exclusive items of a home only one is ready or runs at a time.
//
// One lock guards all queues; work itself runs without it. Hosts enqueue and wait, workers run. A sleeping
// worker is woken only for work that no other is about to take, a host only when its event has happened.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "profiler/base/clock.h"
#include "trainer/device/stream_event.h"
#include "trainer/executor/live_board.h"

namespace shardscope::trainer::executor {

enum class Priority : std::uint8_t { communication = 0, copy = 1, compute = 2 };
inline constexpr std::size_t kPriorities = 3;

// Runs on a worker; the argument is the worker's index. A function that captures no more than two pointers
// costs no allocation.
using Work = std::function<void(int worker)>;

// One collective of one group: a part per rank, released together.
class Meeting {
  public:
    // `transfer_delay`: how long after the end of the last part the streams go on (a test setting).
    explicit Meeting(std::size_t ranks, std::chrono::microseconds transfer_delay = {})
        : parts_(ranks), transfer_delay_(transfer_delay) {
        streams_.reserve(ranks);
    }
    // The times of this rank's arrival, of the end of its part and of the end of the last part.
    using Completion = std::function<void(profiler::Ticks arrived, profiler::Ticks done,
                                          profiler::Ticks last_done, int worker)>;

    // Called before the rank's arrival is enqueued. `work` moves its data; `completion` is called once all
    // parts are done, by the worker that ended the last one, before any stream continues.
    void set_part(std::size_t part, Work work) { parts_[part].work = std::move(work); }
    void on_part_complete(std::size_t part, Completion completion) {
        parts_[part].completion = std::move(completion);
    }
    // Told when the rank arrives, and when all parts are done. Costs no allocation, as a function would.
    void show(std::size_t part, const LiveCollective& live) { parts_[part].live = live; }

  private:
    friend class Scheduler;
    struct Part {
        Work work;
        Completion completion;
        LiveCollective live;
        int home = -1;  // of the stream that arrived
        profiler::Ticks arrived{0}, done{0};
    };
    std::vector<Part> parts_;
    std::vector<device::StreamIndex> streams_;
    std::size_t finished_ = 0;
    std::chrono::microseconds transfer_delay_;
};

class Scheduler {
  public:
    // `on_worker_start(worker)` runs first on each worker's thread, and has run on all when this returns.
    // What it throws is thrown here.
    Scheduler(int workers, const std::function<void(int worker)>& on_worker_start);
    ~Scheduler() { stop(); }
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // Called before any thread enqueues. Streams of one home (a rank) are a device: among ready items of one
    // priority a worker prefers the home that it worked for last; and where another worker is at work for the
    // home of a collective's part, it leaves the part to that worker if its own home has other work. So each
    // rank pays for its own parts, and none falls behind for having arrived last.
    device::StreamIndex add_stream(int home = -1);

    // Appends an item that waits for `waits` at the head of its stream; returns its event.
    device::StreamEvent enqueue(device::StreamIndex stream, Priority priority, const device::Waits& waits,
                                Work work, bool exclusive = false);
    // Appends this rank's arrival at a meeting.
    device::StreamEvent enqueue_arrival(device::StreamIndex stream, const device::Waits& waits,
                                        std::shared_ptr<Meeting> meeting, std::size_t part);
    // Appends an item that `begin` only begins: the stream continues after end_elsewhere(), which any thread
    // may call, once, also before `begin` has returned. `begin` is called on a worker, or on the thread that
    // ends another such item (then with -1), must be quick, and may be called while one is ended.
    device::StreamEvent enqueue_elsewhere(device::StreamIndex stream, const device::Waits& waits, Work begin);
    void end_elsewhere(device::StreamIndex stream);
    // The event that happens when everything now in the stream is done.
    device::StreamEvent last(device::StreamIndex stream) const;

    bool happened(device::StreamEvent event) const {  // takes no lock
        if (event.stream < 0 || event.sequence == 0) return true;
        const Queue& queue = queues_[static_cast<std::size_t>(event.stream)];
        return queue.completed.load(std::memory_order_acquire) >= event.sequence;
    }
    // No item is ready or being run by a worker; takes no lock.
    bool resting() const { return active_.load(std::memory_order_relaxed) == 0; }
    // Blocks a host thread until the event has happened. Rethrows the first failure of any work.
    void wait(device::StreamEvent event);
    // Waits for everything that was enqueued before the call.
    void wait_all();

    // Finishes everything enqueued, unless something failed, and ends the workers. After that, objects that
    // work refers to may be destroyed. Idempotent.
    void stop();

    // Stops everything because of `error`; every waiting host gets it.
    void fail(std::exception_ptr error);

  private:
    struct Item {
        Priority priority = Priority::compute;
        device::Waits waits;
        Work work;
        std::shared_ptr<Meeting> meeting;
        std::size_t part = 0;
        bool ends_elsewhere = false, exclusive = false;
    };
    struct HostWait {
        std::uint64_t sequence = 0;
        std::condition_variable wake;
    };
    struct Queue {
        std::deque<Item> items;   // the head may be running
        bool head_taken = false;  // running, or arrived at its meeting
        int home = -1;
        std::uint64_t enqueued = 0;
        std::atomic<std::uint64_t> completed{0};
        std::vector<device::StreamIndex> blocked;  // streams whose head waits for this one
        std::vector<HostWait*> hosts;              // hosts that wait for an item of this one
    };
    struct Ready {
        device::StreamIndex stream = -1;   // an ordinary item: the head of this stream
        std::shared_ptr<Meeting> meeting;  // or a part of a meeting
        std::size_t part = 0;
        int home = -1;
    };
    using Clock = std::chrono::steady_clock;
    struct Transfer {  // a meeting whose data is still on its way
        Clock::time_point due;
        std::shared_ptr<Meeting> meeting;
    };

    device::StreamEvent append(device::StreamIndex stream, Item item);
    void make_ready(Priority priority, Ready ready);
    void try_head(device::StreamIndex stream);
    void complete_head(device::StreamIndex stream);
    void end_turn(int home);
    bool take(Ready& next, int worker);
    bool leaves_to_another(const Ready& part, int home) const;
    bool take_due(std::shared_ptr<Meeting>& meeting);
    std::size_t claim_wakes();
    std::optional<Work> take_beginning();
    void wake(std::size_t workers);
    void sleep(std::unique_lock<std::mutex>& lock);
    void run(int worker);
    void run_item(std::unique_lock<std::mutex>& lock, const Ready& next, int worker);
    void run_part(std::unique_lock<std::mutex>& lock, const Ready& next, int worker);
    void complete_meeting(std::unique_lock<std::mutex>& lock, Meeting& meeting, int worker);

    mutable std::mutex mutex_;
    std::condition_variable work_available_;
    std::deque<Queue> queues_;  // a deque: add_stream moves no queue
    std::array<std::deque<Ready>, kPriorities> ready_;
    struct Turn {
        bool taken = false;
        std::deque<device::StreamIndex> next;  // streams whose head is exclusive and waits for its turn
    };
    std::map<int, Turn> turns_;  // by home
    std::size_t ready_count_ = 0;
    std::vector<Transfer> transfers_;
    std::size_t asleep_ = 0, woken_ = 0;  // workers that sleep; those of them that were notified
    std::atomic<std::size_t> active_{0};  // items ready or run by a worker
    std::vector<int> home_of_worker_;     // the current or most recent home; -1 none
    std::vector<bool> at_work_;           // by worker
    std::latch started_;
    std::vector<std::thread> workers_;
    std::exception_ptr error_;
    bool stop_ = false;
};

}  // namespace shardscope::trainer::executor
