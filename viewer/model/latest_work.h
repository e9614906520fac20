// A result that is computed in the background for the latest question: the work for an earlier one is
// cancelled and its result dropped. Frame thread only (the worker is inside); no Dear ImGui.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "viewer/model/analysis_cache.h"

namespace shardscope::viewer::model {

template <class T>
class LatestWork {
  public:
    LatestWork() = default;
    ~LatestWork() { drop(); }  // then waits for the cancelled work
    LatestWork(const LatestWork&) = delete;
    LatestWork& operator=(const LatestWork&) = delete;

    // Called every frame: the result for this trace and key, made by make(const Trace&, const
    // std::atomic<bool>& cancel) on a thread; nullptr while it is being made.
    template <class Make>
    std::shared_ptr<const T> of(const TracePtr& trace, const std::string& key, Make make) {
        std::erase_if(ending_, [](const auto& work) { return is_ready(*work); });
        if (trace != trace_ || key != key_) {
            drop();
            trace_ = trace;
            key_ = key;
            now_ = std::make_unique<Work>();
            // The thread's end releases the trace, whoever still waits for the result.
            now_->result = std::async(std::launch::async, [&cancel = now_->cancel, own = TracePtr(trace),
                                                           make = std::move(make)]() mutable {
                const TracePtr of = std::move(own);
                return make(*of, cancel);
            });
        }
        if (now_ != nullptr && is_ready(*now_)) {
            result_ = std::make_shared<const T>(now_->result.get());
            now_.reset();
        }
        return result_;
    }
    // Called while the trace's successor waits to be shown: the result for it and this key, which of() then
    // has at once; nullptr while it is being made.
    template <class Make>
    std::shared_ptr<const T> ahead(const TracePtr& successor, const std::string& key, Make make) {
        if (next_ == nullptr) next_ = std::make_unique<LatestWork>();
        return next_->of(successor, key, std::move(make));
    }
    bool busy() const { return now_ != nullptr; }
    // Cancels the work, without waiting for its end, and drops the result.
    void drop() {
        if (now_ != nullptr) {
            now_->cancel = true;
            ending_.push_back(std::move(now_));
        }
        trace_.reset();
        key_.clear();
        result_.reset();
    }
    // The same if the work was on this trace, else false. What was made ahead takes its place.
    bool forget(const traces::store::Trace& trace) {
        if (next_ != nullptr) next_->forget(trace);
        if (trace_.get() != &trace) return false;
        drop();
        if (next_ == nullptr) return true;
        trace_ = std::move(next_->trace_);
        key_ = std::move(next_->key_);
        result_ = std::move(next_->result_);
        now_ = std::move(next_->now_);
        next_.reset();
        return true;
    }

  private:
    struct Work {
        std::atomic<bool> cancel{false};
        std::future<T> result;  // its destructor waits
    };
    static bool is_ready(const Work& work) {
        return work.result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }

    TracePtr trace_;
    std::string key_;
    std::shared_ptr<const T> result_;
    std::unique_ptr<Work> now_;
    std::vector<std::unique_ptr<Work>> ending_;
    std::unique_ptr<LatestWork> next_;  // for the trace's successor
};

}  // namespace shardscope::viewer::model
