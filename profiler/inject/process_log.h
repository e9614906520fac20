// What the injected library knows in its process: the session it belongs to, the record file that it maps,
// the names it has assigned and a log per thread. Created by the first event. No C++ runtime, no exceptions;
// every function keeps errno, since it runs inside the program's own code.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/inject/session_format.h"
#include "profiler/inject/text.h"
#include "profiler/inject/window.h"
#include "profiler/log/log_writer.h"

namespace shardscope::profiler::inject {

// One thread's log, in a page of its own. Only that thread touches it.
struct ThreadState {
    static constexpr std::uint32_t kMaxDomains = 512;

    LogWriter writer;
    // The push/pop ranges of one domain that are open.
    struct Stack {
        std::uint32_t open = 0;      // how many
        std::uint32_t recorded = 0;  // open ranges of this depth or deeper were not recorded
    };
    // An open push/pop range that the window waits for.
    struct WatchedRange {
        std::uint32_t domain = 0, depth = 0;
        Watched watched = Watched::no;
    };
    static constexpr std::uint32_t kMaxWatched = 16;

    bool busy = false;  // inside a callback: a signal handler must keep out
    std::uint32_t watched_ranges = 0;
    std::uint64_t next_range = 0;    // start/end ranges of this thread so far
    Stack stacks[kMaxDomains] = {};  // by ordinal of the domain
    WatchedRange watched[kMaxWatched] = {};
};

struct Domain {
    std::uint32_t ordinal;  // 0: the default domain
    std::uint32_t name;     // its id in records
};

// Joins the session named by the environment; false if there is none, or it has another format or does not
// record this rank. Cheap when called again.
bool join_session();

// The session that was joined, or null. Its `sources` say what is to be recorded.
const SessionHeader* session();

// Points to the session's state while the window is open, a constant `waiting` otherwise.
extern std::atomic<const std::atomic<SessionState>*> gate;
extern std::atomic<bool> records_nvtx;  // the session asks for the source
// Like `gate`, for NVTX events alone; never points to `recording` while the window watches them.
extern std::atomic<const std::atomic<SessionState>*> nvtx_gate;
void set_gate(const std::atomic<SessionState>* state, bool watches);  // for window.cpp; null: closed

// Whether events are wanted now: the session records and its window is open. Also valid without a session.
inline bool recording() {
    return gate.load(std::memory_order_acquire)->load(std::memory_order_relaxed) == SessionState::recording;
}

// Whether the tool takes no more records, not even ends of open ranges. Also valid without a session.
extern std::atomic<const std::atomic<SessionState>*> session_state;
inline bool stopped() {
    return session_state.load(std::memory_order_acquire)->load(std::memory_order_relaxed) ==
           SessionState::stopped;
}

// This thread's state: null before its first event; no_thread_state() while it is being made, or if it
// cannot be.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local ThreadState* this_thread;
inline ThreadState* no_thread_state() {
    return reinterpret_cast<ThreadState*>(1);
}
[[gnu::cold]] ThreadState* attach_thread();

// This thread's log, made if necessary; nullptr if it cannot be made (no space, thread ending, re-entered).
inline ThreadState* thread_state() {
    ThreadState* state = this_thread;
    if (reinterpret_cast<std::uintptr_t>(state) > 1) [[likely]]
        return state;
    return state == nullptr ? attach_thread() : nullptr;
}

// The domain of that name, created once; the default domain if there are too many.
const Domain* domain(Text name);
inline constexpr Domain kDefaultDomain{0, 0};
inline const Domain* default_domain() {
    return &kDefaultDomain;
}

// The id of a string, registered once and sent to the reader; 0 if there is no memory.
std::uint32_t name_id(Text text);

// The text of such an id; its memory never moves.
Text name_text(std::uint32_t id);

// Writes a descriptive record (a layout, a device …) to the log of names: the reader has it before anything
// that any thread writes from now on. A copy is kept, which a forked child writes again. `bytes` is a
// multiple of 8 and equals the header's. False if there is no memory or the record is too long, which counts
// as a loss.
bool tell(const RecordHeader* record, std::size_t bytes);

// The longest record that always fits into a chunk.
inline constexpr std::size_t kMaxRecord = kMappedChunkBytes - sizeof(ChunkHeader) - sizeof(GapRecord);

// Writes a record of text (thread_name, category_name) to this thread's log.
void write_text(RecordKind kind, std::uint32_t name, std::uint64_t owner, Text text);

// Gives access to the thread's log, and keeps the thread's re-entrant calls out meanwhile.
class Entered {
  public:
    Entered() : state_(thread_state()) {
        if (state_ == nullptr) return;
        if (state_->busy) {
            state_ = nullptr;
            return;
        }
        state_->busy = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Entered() {
        if (state_ == nullptr) return;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        state_->busy = false;
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ThreadState* operator->() const { return state_; }
    ThreadState& operator*() const { return *state_; }
    explicit operator bool() const { return state_ != nullptr; }

  private:
    ThreadState* state_;
};

}  // namespace shardscope::profiler::inject
