// The processes of a job, simulated by threads of one process: their messages go through a queue that one
// thread serves, like a World's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "trainer/device/bootstrap.h"

namespace shardscope::trainer::testing {

class PlayedProcesses {
  public:
    // Called with the job's failure, a sentence, on the queue's thread.
    using OnFailure = std::function<void(const std::string& sentence)>;

    explicit PlayedProcesses(int number) : parts_(static_cast<std::size_t>(number)) {
        for (int process = 0; process < number; ++process) {
            parts_[static_cast<std::size_t>(process)].bootstrap = std::make_shared<End>(*this, process);
        }
        thread_ = std::thread([this] { deliver(); });
    }
    ~PlayedProcesses() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
            changed_.notify_all();
        }
        thread_.join();
    }
    PlayedProcesses(const PlayedProcesses&) = delete;
    PlayedProcesses& operator=(const PlayedProcesses&) = delete;

    std::shared_ptr<device::Bootstrap> bootstrap(int process) const {
        return parts_[static_cast<std::size_t>(process)].bootstrap;
    }
    // Sets the handler. Empty: no further call; returns when no call is running.
    void on_failure(int process, OnFailure handler) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !delivering_; });
        parts_[static_cast<std::size_t>(process)].on_failure = std::move(handler);
        if (failure_) queue_failure(process);
    }
    // The process no longer receives anything, and nothing is reported about it, as if it were stopped.
    void deafen(int process) {
        const std::lock_guard lock(mutex_);
        parts_[static_cast<std::size_t>(process)].deaf = true;
    }
    void fail(const std::string& sentence) {
        const std::lock_guard lock(mutex_);
        if (failure_) return;
        failure_ = sentence;
        for (int process = 0; process < static_cast<int>(parts_.size()); ++process) queue_failure(process);
        changed_.notify_all();
    }
    std::string failure() const {
        const std::lock_guard lock(mutex_);
        return failure_.value_or("");
    }

  private:
    class End final : public device::Bootstrap {
      public:
        End(PlayedProcesses& all, int process) : all_(all), process_(process) {}
        int process() const override { return process_; }
        std::vector<std::string> gather(std::string_view mine) override {
            return all_.gather(process_, mine);
        }
        void on(const std::string& topic, Handler handler) override {
            const std::lock_guard lock(all_.mutex_);
            all_.parts_[static_cast<std::size_t>(process_)].handlers[topic] = std::move(handler);
        }
        void tell(const std::string& topic, std::string_view text) override {
            all_.send(process_, 0, topic, text);
        }
        void tell_all(const std::string& topic, std::string_view text) override {
            for (int to = 1; to < static_cast<int>(all_.parts_.size()); ++to) all_.send(0, to, topic, text);
        }
        void fail(int rank, const std::string& reason) override {
            all_.fail(fmt::format("rank {} {}", rank, reason));
        }
        void check() override {
            if (const std::string sentence = all_.failure(); !sentence.empty()) {
                throw std::runtime_error(sentence);
            }
        }

      private:
        PlayedProcesses& all_;
        int process_;
    };
    struct Part {
        std::shared_ptr<End> bootstrap;
        std::map<std::string, device::Bootstrap::Handler> handlers;
        OnFailure on_failure;
        bool deaf = false;
    };

    std::vector<std::string> gather(int process, std::string_view mine) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return failure_ || leaving_ == 0; });  // the previous one is complete
        texts_.resize(parts_.size());
        texts_[static_cast<std::size_t>(process)] = mine;
        if (++come_ == parts_.size()) {
            come_ = 0;
            leaving_ = parts_.size();
            changed_.notify_all();
        }
        changed_.wait(lock, [&] { return failure_ || leaving_ > 0; });
        if (failure_) throw std::runtime_error(*failure_);
        std::vector<std::string> all = texts_;
        if (--leaving_ == 0) changed_.notify_all();
        return all;
    }
    void send(int from, int to, const std::string& topic, std::string_view text) {
        const std::lock_guard lock(mutex_);
        queue_.push_back([this, from, to, topic, text = std::string(text)] {
            device::Bootstrap::Handler handler;
            {
                const std::lock_guard inner(mutex_);
                const Part& part = parts_[static_cast<std::size_t>(to)];
                const auto found = part.handlers.find(topic);
                if (!part.deaf && found != part.handlers.end()) handler = found->second;
            }
            if (handler) handler(from, text);
        });
        changed_.notify_all();
    }
    void queue_failure(int process) {  // called under the lock
        queue_.push_back([this, process] {
            OnFailure handler;
            {
                const std::lock_guard inner(mutex_);
                handler = parts_[static_cast<std::size_t>(process)].on_failure;
            }
            if (handler) handler(*failure_);
        });
        changed_.notify_all();
    }
    void deliver() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
            if (queue_.empty()) return;
            const std::function<void()> item = std::move(queue_.front());
            queue_.pop_front();
            delivering_ = true;
            lock.unlock();
            item();
            lock.lock();
            delivering_ = false;
            changed_.notify_all();
        }
    }

    mutable std::mutex mutex_;  // guards all members below
    std::condition_variable changed_;
    std::vector<Part> parts_;
    std::vector<std::string> texts_;
    std::size_t come_ = 0, leaving_ = 0;
    std::optional<std::string> failure_;
    std::deque<std::function<void()>> queue_;
    bool ends_ = false, delivering_ = false;
    std::thread thread_;
};

}  // namespace shardscope::trainer::testing
