// What NVTX calls do to the calling thread's log: pushes, pops, marks, starts and ends. Inline: this is the
// injected library's hot path. Any thread. Events that are not to be recorded do not count as lost, so the
// events sent are exactly those stored plus those lost.
#pragma once

#include <cstdint>

#include "profiler/inject/nvtx_abi.h"
#include "profiler/inject/nvtx_payload_abi.h"
#include "profiler/inject/process_log.h"
#include "profiler/inject/text.h"
#include "profiler/inject/window.h"

namespace shardscope::profiler::inject {

// Payloads of a schema, in the program's memory.
struct Payloads {
    const nvtx::PayloadData* data = nullptr;
    std::size_t count = 0;
};

// The contents of one event, independent of the call that sent it.
struct Event {
    Text text{"", 0};
    std::uint32_t name = 0;  // of a registered string; then there is no text
    std::uint8_t flags = 0;
    std::uint32_t color = 0, category = 0;
    std::uint32_t value_type = 0;  // as RangeRecord's
    std::uint64_t value = 0;
    Payloads payloads;
};

inline Event describe(const char* text) {
    Event event;
    event.text = narrow_text(text);
    return event;
}

// Whether NVTX calls are to be redirected here at all: whether their events are recorded or open the window.
// Joins the session.
inline bool wants_nvtx() {
    return join_session() && (records_nvtx.load(std::memory_order_relaxed) || watches_ranges());
}

// Handles of domains are their addresses; null is the default domain.
inline const Domain& as_domain(nvtx::DomainHandle handle) {
    return handle != nullptr ? *static_cast<const Domain*>(handle) : *default_domain();
}

// Whether NVTX events are wanted now.
inline bool recording_nvtx() {
    return recording() && records_nvtx.load(std::memory_order_relaxed);
}

// The same with a single load, for the hot path. Also false if more than recording has to be done.
inline bool just_recording_nvtx() {
    return nvtx_gate.load(std::memory_order_acquire)->load(std::memory_order_relaxed) ==
           SessionState::recording;
}

// Copies payloads to the log, for the event that is written next (nvtx_payload.cpp).
void write_payloads(ThreadState& thread, const Domain& domain, Payloads payloads);

// The layout of an event's record.
struct RangeShape {
    RangeShape(RecordKind kind, const Event& event)
        : is_long(kind == RecordKind::range_start || event.category != 0 || event.value_type != 0),
          has_text(event.name == 0 && event.text.size != 0),
          fixed(is_long ? sizeof(RangeRecord) : sizeof(PlainRangeRecord)),
          bytes(fixed + (has_text ? padded_size(event.text) : 0)) {}
    bool is_long, has_text;
    std::size_t fixed, bytes;
};

// Fills in everything but the time.
[[gnu::always_inline]] inline void fill_range(PlainRangeRecord* r, const RangeShape& shape,
                                              const Domain& domain, const Event& event, std::uint32_t depth,
                                              std::uint64_t id) {
    r->header.flags = static_cast<std::uint8_t>(event.flags | kDomainStack | (shape.has_text ? kHasText : 0) |
                                                (shape.is_long ? kIsLong : 0));
    r->domain = domain.name;
    r->depth = depth;
    r->module = -1;
    r->color = event.color;
    if (shape.is_long) {
        auto* full = reinterpret_cast<RangeRecord*>(r);
        full->id = id;
        full->category = event.category;
        full->value_type = event.value_type;
        full->value = event.value;
    }
    if (shape.has_text) copy_text(reinterpret_cast<std::byte*>(r) + shape.fixed, event.text);
}

// Returns false if there was no room: the event is lost.
[[gnu::always_inline]] inline bool write_range(ThreadState& thread, RecordKind kind, const Domain& domain,
                                               const Event& event, std::uint32_t depth, std::uint64_t id) {
    if (event.payloads.count != 0) [[unlikely]]
        write_payloads(thread, domain, event.payloads);
    const RangeShape shape(kind, event);
    auto* r = thread.writer.begin<PlainRangeRecord>(kind, event.name, shape.bytes);
    if (r == nullptr) return false;
    fill_range(r, shape, domain, event, depth, id);
    r->ticks = thread.writer.now();
    thread.writer.publish();
    return true;
}

[[gnu::always_inline]] inline void mark(const Domain& domain, const Event& event) {
    if (!recording_nvtx()) return;
    if (Entered thread; thread) write_range(*thread, RecordKind::mark, domain, event, 0, 0);
}

// The thread's bookkeeping of the ranges that the window waits for; rare (nvtx_events.cpp). The event's text,
// or the id of its registered name, is passed by value, so that it stays in registers.
Watched range_begins(Text text, std::uint32_t name);
void watch_push(ThreadState& thread, const Domain& domain, Text text, std::uint32_t name,
                std::uint32_t depth);
void watch_pop(ThreadState& thread, const Domain& domain, std::uint32_t depth);

// The result of push_at_once() and pop_at_once() if nothing was done: call push() or pop().
inline constexpr int kNotAtOnce = -1000;

// This thread's state if a push needs only its record (the log exists, and only recording has to be done),
// else null.
[[gnu::always_inline]] inline ThreadState* ready_thread() {
    ThreadState* const thread = this_thread;
    const bool ready = reinterpret_cast<std::uintptr_t>(thread) > 1 && !thread->busy && just_recording_nvtx();
    return ready ? thread : nullptr;
}

// Keeps signal handlers out of a thread that ready_thread() or pop_at_once() checked, as Entered does.
[[gnu::always_inline]] inline void keep_out(ThreadState& thread, bool out) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread.busy = out;
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

// The common case of a push, in a thread from ready_thread(). It calls nothing, so that its caller saves no
// registers (a seventh of a push's cost). Handlers are kept out before space is checked: they might take it.
[[gnu::always_inline]] inline int push_at_once(ThreadState& thread, const Domain& domain,
                                               const Event& event) {
    const RangeShape shape(RecordKind::push, event);
    keep_out(thread, true);
    int answer = kNotAtOnce;
    if (thread.writer.is_ready(shape.bytes)) [[likely]] {
        ThreadState::Stack& stack = thread.stacks[domain.ordinal];
        const std::uint32_t depth = stack.open++;
        auto* r = thread.writer.place<PlainRangeRecord>(RecordKind::push, event.name, shape.bytes);
        fill_range(r, shape, domain, event, depth, 0);
        stack.recorded = depth + 1;
        r->ticks = LogWriter::counter();
        thread.writer.publish();
        answer = static_cast<int>(depth);
    }
    keep_out(thread, false);
    return answer;
}

// The same for the end of a range.
[[gnu::always_inline]] inline int pop_at_once(const Domain& domain) {
    ThreadState* const thread = this_thread;
    if (reinterpret_cast<std::uintptr_t>(thread) <= 1 || thread->busy || thread->watched_ranges != 0)
        [[unlikely]]
        return kNotAtOnce;
    keep_out(*thread, true);
    int answer = kNotAtOnce;
    ThreadState::Stack& stack = thread->stacks[domain.ordinal];
    const std::uint32_t depth = stack.open - 1;
    if (stack.open != 0 && stack.recorded <= depth) {  // the range was not recorded
        stack.open = depth;
        answer = static_cast<int>(depth);
    } else if (stack.open != 0 && thread->writer.is_ready(sizeof(PopRecord))) [[likely]] {
        const Ticks now = LogWriter::counter();
        stack.open = depth;
        stack.recorded = depth;
        auto* r = thread->writer.place<PopRecord>(RecordKind::pop, 0);
        r->header.flags = kDomainStack;
        r->ticks = now;
        r->domain = domain.name;
        r->depth = depth;
        thread->writer.publish();
        answer = static_cast<int>(depth);
    }
    keep_out(*thread, false);
    return answer;
}

// Returns the level of the range, from 0, as NVTX does.
[[gnu::always_inline]] inline int push(const Domain& domain, const Event& event) {
    Entered thread;
    if (!thread) return nvtx::kNoPushPopTracking;
    ThreadState::Stack& stack = thread->stacks[domain.ordinal];
    const std::uint32_t depth = stack.open++;
    if (!just_recording_nvtx()) [[unlikely]] {
        if (watches_ranges()) watch_push(*thread, domain, event.text, event.name, depth);
        if (!recording_nvtx()) return static_cast<int>(depth);
    }
    if (write_range(*thread, RecordKind::push, domain, event, depth, 0)) stack.recorded = depth + 1;
    return static_cast<int>(depth);
}

[[gnu::always_inline]] inline int pop(const Domain& domain, Payloads payloads = {}) {
    Entered thread;
    if (!thread) return nvtx::kNoPushPopTracking;
    ThreadState::Stack& stack = thread->stacks[domain.ordinal];
    if (stack.open == 0) return nvtx::kNoPushPopTracking;
    const std::uint32_t depth = --stack.open;
    if (stack.recorded > depth) {  // even if new ranges are no longer recorded
        const Ticks now = thread->writer.now();
        stack.recorded = depth;
        if (payloads.count != 0) [[unlikely]]
            write_payloads(*thread, domain, payloads);
        if (auto* r = thread->writer.begin<PopRecord>(RecordKind::pop, 0, sizeof(PopRecord), depth, false)) {
            r->header.flags = kDomainStack;
            r->ticks = now;
            r->domain = domain.name;
            r->depth = depth;
            thread->writer.publish();
        }
    }
    if (thread->watched_ranges != 0) [[unlikely]]
        watch_pop(*thread, domain, depth);
    return static_cast<int>(depth);
}

// Returns the id of the range, or 0 if it is not recorded and the window does not wait for it.
[[gnu::always_inline]] inline nvtx::RangeId start(const Domain& domain, const Event& event) {
    const bool watched = watches_ranges();
    if (!watched && !recording_nvtx()) return 0;
    Entered thread;
    if (!thread) return 0;
    // Unique in the process without asking other threads: the number of the log, then a count.
    const nvtx::RangeId id = (std::uint64_t{thread->writer.log()} << 40) | ++thread->next_range;
    bool wanted = false;
    if (watched) [[unlikely]] {
        const Watched range = range_begins(event.text, event.name);
        wanted = range != Watched::no;
        if (wanted) watch_id(id, range);
    }
    const bool recorded =
        recording_nvtx() && write_range(*thread, RecordKind::range_start, domain, event, 0, id);
    return recorded || wanted ? id : 0;
}

[[gnu::always_inline]] inline void end(const Domain& domain, nvtx::RangeId id, Payloads payloads = {}) {
    if (id == 0 || stopped()) return;
    Entered thread;
    if (!thread) return;
    const Ticks now = thread->writer.now();
    if (payloads.count != 0) [[unlikely]]
        write_payloads(*thread, domain, payloads);
    if (auto* r = thread->writer.begin<RangeEndRecord>(RecordKind::range_end, 0, sizeof(RangeEndRecord),
                                                       ~std::uint64_t{0}, false)) {
        r->ticks = now;
        r->id = id;
        thread->writer.publish();
    }
    if (watches_ids()) [[unlikely]]
        id_ended(id);
}

}  // namespace shardscope::profiler::inject
