// A thread that may hang in a driver or in the kernel. Whoever owns it waits briefly for its end, and
// otherwise leaves it behind.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "profiler/base/quiet_thread.h"

namespace shardscope::profiler {

// What the thread works on: the thread keeps it alive, even one that was left behind.
class PatientWork {
  public:
    virtual ~PatientWork() = default;

  protected:
    // Until `stopped()`; each wait in between by `wait_until`.
    virtual void run() = 0;
    bool stopped() {
        const std::lock_guard lock(mutex_);
        return stop_;
    }
    // Returns at that time, or when the thread is to stop or wake() was called.
    void wait_until(std::chrono::steady_clock::time_point time) {
        std::unique_lock lock(mutex_);
        changed_.wait_until(lock, time, [this] { return stop_ || wake_; });
        wake_ = false;
    }
    void wake() {
        const std::lock_guard lock(mutex_);
        wake_ = true;
        changed_.notify_all();
    }

  private:
    friend class PatientThread;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stop_ = false, wake_ = false, ended_ = false;
};

class PatientThread {
  public:
    // Throws std::system_error.
    explicit PatientThread(std::shared_ptr<PatientWork> work)
        : work_(std::move(work)), thread_(start_quietly([work = work_] {
              try {
                  work->run();
              } catch (...) {  // no memory, say: this work ends, and nothing else
              }
              const std::lock_guard lock(work->mutex_);
              work->ended_ = true;
              work->changed_.notify_all();
          })) {}
    ~PatientThread() {
        constexpr std::chrono::milliseconds kPatience{300};
        std::unique_lock lock(work_->mutex_);
        work_->stop_ = true;
        work_->changed_.notify_all();
        const bool ended = work_->changed_.wait_for(lock, kPatience, [this] { return work_->ended_; });
        lock.unlock();
        if (ended) {
            thread_.join();
            return;
        }
        left_behind = true;
        thread_.detach();
    }
    PatientThread(const PatientThread&) = delete;
    PatientThread& operator=(const PatientThread&) = delete;

    // Whether a thread was left behind: if so, this process must end by _Exit.
    static bool any_left_behind() { return left_behind; }

  private:
    static inline std::atomic<bool> left_behind{false};

    std::shared_ptr<PatientWork> work_;
    std::thread thread_;
};

}  // namespace shardscope::profiler
