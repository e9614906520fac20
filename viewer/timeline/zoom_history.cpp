// See zoom_history.h.
#include "viewer/timeline/zoom_history.h"

#include <algorithm>

namespace shardscope::viewer::timeline {
namespace {

// Close enough to be part of the same step.
bool near(model::TimeSpan a, model::TimeSpan b) {
    const double la = static_cast<double>(a.to - a.from), lb = static_cast<double>(b.to - b.from);
    if (la > lb * 2 || lb > la * 2) return false;
    const double shared = static_cast<double>(std::min(a.to, b.to) - std::max(a.from, b.from));
    return shared * 2 >= std::min(la, lb);
}

}  // namespace

void ZoomHistory::see(model::TimeSpan shown) {
    if (!now_) {
        now_ = shown;
        return;
    }
    if (*now_ == shown) return;
    future_.clear();
    // The start of the step is the newest past entry; it stays there while moves are small.
    if (fresh_ || past_.empty() || !near(past_.back(), shown)) past_.push_back(*now_);
    if (past_.size() > kMost) past_.erase(past_.begin());
    now_ = shown;
    fresh_ = false;
}

std::optional<model::TimeSpan> ZoomHistory::back() {
    // A move that ended where it began is nothing to undo.
    while (!past_.empty() && now_ && past_.back() == *now_) past_.pop_back();
    if (past_.empty() || !now_) return std::nullopt;
    future_.push_back(*now_);
    now_ = past_.back();
    past_.pop_back();
    fresh_ = true;
    return now_;
}

std::optional<model::TimeSpan> ZoomHistory::forward() {
    if (future_.empty() || !now_) return std::nullopt;
    past_.push_back(*now_);
    now_ = future_.back();
    future_.pop_back();
    fresh_ = true;
    return now_;
}

}  // namespace shardscope::viewer::timeline
