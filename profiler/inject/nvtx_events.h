// What NVTX calls do to the calling thread's log: pushes, pops, marks, starts and ends. Inline: this is the
// injected library's hot path. Any thread; a session must have been joined (else nothing happens).
#pragma once

#include <cstdint>

#include "profiler/inject/nvtx_abi.h"
#include "profiler/inject/process_log.h"
#include "profiler/inject/text.h"
#include "profiler/inject/window.h"

namespace shardscope::profiler::inject {

// What one event says, whichever of the calls said it.
struct Event {
    Text text{"", 0};
    std::uint32_t name = 0;  // of a registered string; then there is no text
    std::uint8_t flags = 0;
    std::uint32_t color = 0, category = 0;
};

// The text of an event, registered or not.
inline Text text_of(const Event& event) {
    return event.name == 0 ? event.text : name_text(event.name);
}

inline void write_range(ThreadState& thread, RecordKind kind, const Domain& domain, const Event& event,
                        std::uint32_t depth, std::uint64_t id) {
    const bool has_text = event.name == 0 && event.text.size != 0;
    const std::size_t bytes = sizeof(RangeRecord) + (has_text ? padded_size(event.text) : 0);
    auto* r = thread.writer.begin<RangeRecord>(kind, event.name, bytes);
    if (r == nullptr) return;
    r->header.flags = static_cast<std::uint8_t>(event.flags | kDomainStack | (has_text ? kHasText : 0));
    r->domain = domain.name;
    r->depth = depth;
    r->module = -1;
    r->color = event.color;
    r->id = id;
    r->category = event.category;
    r->reserved = 0;
    if (has_text) copy_text(r + 1, event.text);
    r->ticks = thread.writer.now();
    thread.writer.publish();
}

inline void mark(const Domain& domain, const Event& event) {
    if (!recording()) return;
    if (Entered thread; thread) write_range(*thread.operator->(), RecordKind::mark, domain, event, 0, 0);
}

// The thread's part of the window's ranges; rare.
void watch_push(ThreadState& thread, const Domain& domain, const Event& event, std::uint32_t depth);
void watch_pop(ThreadState& thread, const Domain& domain, std::uint32_t depth);

// The answers are NVTX's: the level of the range, from 0.
inline int push(const Domain& domain, const Event& event) {
    Entered thread;
    if (!thread) return nvtx::kNoPushPopTracking;
    ThreadState::Stack& stack = thread->stacks[domain.ordinal];
    const std::uint32_t depth = stack.open++;
    if (watches_ranges()) [[unlikely]]
        watch_push(*thread.operator->(), domain, event, depth);
    if (recording()) {
        stack.recorded = depth + 1;
        write_range(*thread.operator->(), RecordKind::push, domain, event, depth, 0);
    }
    return static_cast<int>(depth);
}

inline int pop(const Domain& domain) {
    Entered thread;
    if (!thread) return nvtx::kNoPushPopTracking;
    ThreadState::Stack& stack = thread->stacks[domain.ordinal];
    if (stack.open == 0) return nvtx::kNoPushPopTracking;
    const std::uint64_t now = thread->writer.now();
    const std::uint32_t depth = --stack.open;
    if (stack.recorded > depth) {
        stack.recorded = depth;
        if (!stopped()) {
            if (auto* r = thread->writer.begin<PopRecord>(RecordKind::pop, 0, sizeof(PopRecord), depth)) {
                r->header.flags = kDomainStack;
                r->ticks = now;
                r->domain = domain.name;
                r->depth = depth;
                thread->writer.publish();
            }
        }
    }
    if (thread->watched_ranges != 0) [[unlikely]]
        watch_pop(*thread.operator->(), domain, depth);
    return static_cast<int>(depth);
}

// The id of the range; 0 when it is not recorded and the window does not wait for it.
inline nvtx::RangeId start(const Domain& domain, const Event& event) {
    const bool watched = watches_ranges();
    if (!watched && !recording()) return 0;
    Entered thread;
    if (!thread) return 0;
    // Unique in the process without asking other threads: the number of the log, then a count.
    const nvtx::RangeId id = (std::uint64_t{thread->writer.log()} << 40) | ++thread->next_range;
    if (watched) [[unlikely]] {
        const Watched wanted = range_begins(text_of(event));
        if (wanted != Watched::no) watch_id(id, wanted);
        if (!recording()) return wanted != Watched::no ? id : 0;
    }
    write_range(*thread.operator->(), RecordKind::range_start, domain, event, 0, id);
    return id;
}

inline void end(nvtx::RangeId id) {
    if (id == 0 || stopped()) return;
    Entered thread;
    if (!thread) return;
    const std::uint64_t now = thread->writer.now();
    if (auto* r = thread->writer.begin<RangeEndRecord>(RecordKind::range_end, 0)) {
        r->ticks = now;
        r->id = id;
        thread->writer.publish();
    }
    if (watches_ids()) [[unlikely]]
        id_ended(id);
}

}  // namespace shardscope::profiler::inject
