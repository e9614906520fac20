// A thread's bookkeeping of the ranges that the window waits for.
#include "profiler/inject/nvtx_events.h"

namespace shardscope::profiler::inject {

Watched range_begins(Text text, std::uint32_t name) {
    if (name == 0) return range_begins(text);
    if (!window_names.load(std::memory_order_relaxed)) return Watched::no;
    return range_begins(name_text(name));
}

void watch_push(ThreadState& thread, const Domain& domain, Text text, std::uint32_t name,
                std::uint32_t depth) {
    if (thread.watched_ranges == ThreadState::kMaxWatched) return;
    const Watched watched = range_begins(text, name);
    if (watched != Watched::no) thread.watched[thread.watched_ranges++] = {domain.ordinal, depth, watched};
}

void watch_pop(ThreadState& thread, const Domain& domain, std::uint32_t depth) {
    for (std::uint32_t i = thread.watched_ranges; i-- > 0;) {
        const ThreadState::WatchedRange ended = thread.watched[i];
        if (ended.domain != domain.ordinal || ended.depth != depth) continue;
        for (std::uint32_t later = i + 1; later < thread.watched_ranges; ++later) {
            thread.watched[later - 1] = thread.watched[later];
        }
        --thread.watched_ranges;
        range_ended(ended.watched);
        return;
    }
}

}  // namespace shardscope::profiler::inject
