#include "profiler/sampler/counter_thread.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include <pthread.h>

namespace shardscope::profiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds kRoundPeriod{kSamplePeriodNs};
constexpr std::chrono::milliseconds kLastPatience{1000};

}  // namespace

class CounterThread::Work final : public PatientWork {
  public:
    Work(SamplerOptions options, std::vector<WatchedProcess> processes, Deliver deliver)
        : options_(std::move(options)), processes_(std::move(processes)), deliver_(std::move(deliver)) {}

    void watch(std::vector<WatchedProcess> processes) {
        const std::lock_guard lock(mutex_);
        processes_ = std::move(processes);
    }

    void sample_now() {
        std::unique_lock lock(mutex_);
        // A sample that is being taken may have begun too early.
        const std::int64_t wanted = begun_ + 1;
        lock.unlock();
        wake();
        lock.lock();
        done_changed_.wait_for(lock, kLastPatience, [&] { return done_ >= wanted || ended_sampling_; });
    }

    // Nothing is delivered any more.
    void close() {
        const std::lock_guard lock(deliver_mutex_);
        deliver_ = nullptr;
    }

  private:
    void run() override {
        ::pthread_setname_np(::pthread_self(), "counters");
        try {
            // Here, since finding the devices may take long.
            CounterSampler sampler(std::move(options_));
            Clock::time_point next = Clock::now();
            while (!stopped()) {
                sample(sampler);
                next = std::max(next + kRoundPeriod, Clock::now() + kRoundPeriod / 2);
                wait_until(next);
            }
            sample(sampler);
        } catch (...) {
            end();
            throw;
        }
        end();
    }

    void end() {
        const std::lock_guard lock(mutex_);
        ended_sampling_ = true;
        done_changed_.notify_all();
    }

    void sample(CounterSampler& sampler) {
        std::vector<WatchedProcess> processes;
        {
            const std::lock_guard lock(mutex_);
            processes = processes_;
            ++begun_;
        }
        Samples samples = sampler.sample(processes);
        {
            const std::lock_guard lock(deliver_mutex_);
            if (deliver_ && !samples.empty()) deliver_(std::move(samples));
        }
        const std::lock_guard lock(mutex_);
        done_ = begun_;
        done_changed_.notify_all();
    }

    SamplerOptions options_;
    std::mutex mutex_;
    std::condition_variable done_changed_;
    std::vector<WatchedProcess> processes_;
    std::int64_t begun_ = 0, done_ = 0;
    bool ended_sampling_ = false;
    std::mutex deliver_mutex_;
    Deliver deliver_;
};

CounterThread::CounterThread(SamplerOptions options, std::vector<WatchedProcess> processes, Deliver deliver)
    : work_(std::make_shared<Work>(std::move(options), std::move(processes), std::move(deliver))) {
    thread_.emplace(work_);
}

CounterThread::~CounterThread() {
    thread_.reset();
    work_->close();
}

void CounterThread::watch(std::vector<WatchedProcess> processes) {
    work_->watch(std::move(processes));
}

void CounterThread::sample_now() {
    work_->sample_now();
}

}  // namespace shardscope::profiler
