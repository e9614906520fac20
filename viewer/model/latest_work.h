// A result that is computed in the background for the latest question: the work for an earlier one is
// cancelled and its result dropped. Frame thread only (the worker is inside); no Dear ImGui.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "viewer/model/analysis_cache.h"

namespace shardscope::viewer::model {

template <class T>
class LatestWork {
  public:
    LatestWork() = default;
    ~LatestWork() { stop(); }
    LatestWork(const LatestWork&) = delete;
    LatestWork& operator=(const LatestWork&) = delete;

    // Called every frame: the result for this trace and key, made by make(const Trace&, const
    // std::atomic<bool>& cancel) on a thread; nullptr while it is being made.
    template <class Make>
    std::shared_ptr<const T> of(const TracePtr& trace, const std::string& key, Make make) {
        if (trace != trace_ || key != key_) {
            stop();
            trace_ = trace;
            key_ = key;
            result_.reset();
            next_ = std::async(std::launch::async,
                               [this, trace, make = std::move(make)] { return make(*trace, cancel_); });
        }
        if (next_.valid() && next_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
            result_ = std::make_shared<const T>(next_.get());
        return result_;
    }
    bool busy() const { return next_.valid(); }
    void drop() {
        stop();
        trace_.reset();
        key_.clear();
        result_.reset();
    }
    // Cancels the work on this trace and drops its result; false: the work was on another trace.
    bool forget(const traces::store::Trace& trace) {
        if (trace_.get() != &trace) return false;
        drop();
        return true;
    }

  private:
    void stop() {
        if (!next_.valid()) return;
        cancel_ = true;
        next_.wait();
        next_ = {};
        cancel_ = false;
    }

    TracePtr trace_;
    std::string key_;
    std::shared_ptr<const T> result_;
    std::atomic<bool> cancel_{false};
    std::future<T> next_;
};

}  // namespace shardscope::viewer::model
