// How the ranks' host threads agree: after which step to stop, and where to meet.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace shardscope::trainer::executor {

// Every rank passes the gate before each step. Once a stop is requested, no rank begins a step that no rank
// has begun, so that all end after the same one. Ranks of other processes have gates of their own: then `ask`
// is called once, and its receiver freezes all gates, finds the latest step that any rank has begun, and
// thaws them.
class StopGate {
  public:
    // `stop` may be null: no stop can be requested. `ask` empty: all ranks pass this gate.
    StopGate(const std::atomic<bool>* stop, std::int64_t first_step, std::function<void()> ask = {})
        : stop_(stop), ask_(std::move(ask)), begun_(first_step - 1) {}

    // False: the rank ends before this step. Throws std::runtime_error after fail().
    bool enter(std::int64_t step) {
        std::unique_lock lock(mutex_);
        if (!last_ && !asked_ && stop_ && stop_->load()) {
            asked_ = true;
            if (!ask_) {
                last_ = begun_;
            } else {
                lock.unlock();
                ask_();
                lock.lock();
            }
        }
        thawed_.wait(lock, [&] { return !frozen_ || failed_; });
        if (failed_) throw std::runtime_error("another rank has failed");
        if (last_ && step > *last_) return false;
        begun_ = std::max(begun_, step);
        return true;
    }

    // No rank passes until thaw(). Returns the latest step begun here.
    std::int64_t freeze() {
        const std::lock_guard lock(mutex_);
        frozen_ = !last_;
        return begun_;
    }
    // `last`: the last step that all ranks will do.
    void thaw(std::int64_t last) {
        const std::lock_guard lock(mutex_);
        last_ = last;
        frozen_ = false;
        thawed_.notify_all();
    }

    void fail() {
        const std::lock_guard lock(mutex_);
        failed_ = true;
        thawed_.notify_all();
    }

  private:
    const std::atomic<bool>* stop_;
    std::function<void()> ask_;
    std::mutex mutex_;
    std::condition_variable thawed_;
    std::int64_t begun_;                // the latest step that any rank has begun
    std::optional<std::int64_t> last_;  // the last step that all ranks will do
    bool asked_ = false, frozen_ = false, failed_ = false;
};

// A barrier between host threads; a failure opens it.
class HostBarrier {
  public:
    explicit HostBarrier(int ranks) : ranks_(ranks) {}

    // Throws std::runtime_error after fail().
    void arrive_and_wait() {
        std::unique_lock lock(mutex_);
        const std::uint64_t round = round_;
        if (++arrived_ == ranks_) {
            arrived_ = 0;
            ++round_;
            all_here_.notify_all();
        }
        all_here_.wait(lock, [&] { return failed_ || round_ != round; });
        if (round_ == round) throw std::runtime_error("another rank has failed");
    }

    void fail() {
        const std::lock_guard lock(mutex_);
        failed_ = true;
        all_here_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable all_here_;
    int ranks_, arrived_ = 0;
    std::uint64_t round_ = 0;
    bool failed_ = false;
};

}  // namespace shardscope::trainer::executor
