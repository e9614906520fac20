// See finder.h. A search checks `cancel` every few thousand names or events, so that cancelling takes less
// than a millisecond.
#include "viewer/timeline/finder.h"

#include <chrono>
#include <utility>

namespace shardscope::viewer {

void Finder::stop() {
    if (!next_.valid()) return;
    cancel_ = true;
    next_.wait();
    next_ = {};
    cancel_ = false;
}

std::shared_ptr<const FoundEvents> Finder::of(const TracePtr& trace, const std::string& text) {
    if (trace != trace_ || text != text_) {
        stop();
        trace_ = trace;
        text_ = text;
        found_.reset();
        if (text.empty()) {
            trace_.reset();  // no search runs in it
        } else {
            next_ = std::async(std::launch::async,
                               [this, trace, text] { return find_text(*trace, text, cancel_); });
        }
    }
    if (next_.valid() && next_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
        found_ = std::make_shared<const FoundEvents>(next_.get());
    return found_;
}

bool Finder::forget(const traces::Trace& trace) {
    if (trace_.get() != &trace) return false;
    stop();
    trace_.reset();
    text_.clear();
    found_.reset();
    return true;
}

}  // namespace shardscope::viewer
