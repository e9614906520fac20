// How the ranks' host threads agree: after which step to stop, and where to meet.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace shardscope::trainer {

// Every rank passes before each step. Once a stop is asked for, no rank begins a step that none has begun, so
// that all end after the same one.
class StopGate {
  public:
    // `stop` may be null: nobody asks.
    StopGate(const std::atomic<bool>* stop, std::int64_t first_step) : stop_(stop), begun_(first_step - 1) {}

    // False: the rank ends before this step.
    bool enter(std::int64_t step) {
        const std::lock_guard lock(mutex_);
        if (!last_ && stop_ && stop_->load()) last_ = begun_;
        if (last_ && step > *last_) return false;
        begun_ = std::max(begun_, step);
        return true;
    }

  private:
    const std::atomic<bool>* stop_;
    std::mutex mutex_;
    std::int64_t begun_;                // the latest step that any rank has begun
    std::optional<std::int64_t> last_;  // that all ranks will do
};

// A barrier between host threads that a failure opens.
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

}  // namespace shardscope::trainer
