// Progress and cancellation of a long piece of work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "traces/store/error.h"

namespace shardscope::traces::merge {

struct WorkOptions {
    const std::atomic<bool>* cancel = nullptr;   // set by another thread or a signal handler to stop the work
    std::function<void(double share)> progress;  // called now and then with the share done, 0 to 1
};

// The work was stopped on demand; nothing was written.
class Cancelled : public store::StoreError {
  public:
    using store::StoreError::StoreError;
};

// Counts the rows of a piece of work that has `rows` of them.
class WorkWatch {
  public:
    WorkWatch(const WorkOptions& options, std::int64_t rows, double share)
        : options_(options), rows_(rows), share_(share) {}

    void row() {
        if ((++done_ & kMask) == 0) look();
    }
    void look() const {
        if (options_.cancel != nullptr && *options_.cancel)
            throw Cancelled("it was stopped; nothing was written");
        if (options_.progress && rows_ > 0) {
            const double part = static_cast<double>(done_) / static_cast<double>(rows_);
            options_.progress(share_ * (part < 1 ? part : 1));
        }
    }
    double share() const { return share_; }

  private:
    static constexpr std::int64_t kMask = 0xFFFF;
    const WorkOptions& options_;
    std::int64_t rows_, done_ = 0;
    double share_;  // the share of these rows in the whole work
};

}  // namespace shardscope::traces::merge
