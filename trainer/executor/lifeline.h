// A pointer for calls from other threads that may arrive after its object is gone: then they do nothing.
#pragma once

#include <memory>
#include <mutex>

namespace shardscope::trainer::executor {

template <class T>
class Lifeline {
  public:
    explicit Lifeline(T* object) : end_(std::make_shared<End>()) { end_->object = object; }
    ~Lifeline() { cut(); }
    Lifeline(const Lifeline&) = delete;
    Lifeline& operator=(const Lifeline&) = delete;

    // No call runs after this.
    void cut() {
        const std::lock_guard lock(end_->mutex);
        end_->object = nullptr;
    }

    // Returns a function for another thread: it calls `call(object, arguments...)` while the object exists.
    template <class Call>
    auto guard(Call call) const {
        return [end = end_, call](auto&&... arguments) {
            const std::lock_guard lock(end->mutex);
            if (end->object) call(*end->object, arguments...);
        };
    }

  private:
    struct End {
        std::recursive_mutex mutex;  // a call may lead to another on the same thread
        T* object = nullptr;
    };
    std::shared_ptr<End> end_;
};

}  // namespace shardscope::trainer::executor
