// The injected library's memory of its process: the session it belongs to, the record file that it maps, the
// names it gave out and a log per thread. Made lazily by the first event. No C++ runtime, no exceptions;
// every function keeps errno, since it runs inside the program's own code.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/inject/session_format.h"
#include "profiler/inject/text.h"
#include "profiler/inject/window.h"
#include "profiler/log_writer.h"

namespace shardscope::profiler::inject {

// One thread's log, in a page of its own. Only that thread touches it.
struct ThreadState {
    static constexpr std::uint32_t kMaxDomains = 512;

    LogWriter writer;
    // The push/pop ranges of one domain that are open.
    struct Stack {
        std::uint32_t open = 0;      // how many
        std::uint32_t recorded = 0;  // up to which of them there may be recorded ones
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

// Joins the session named by the environment; false when there is none, it speaks another format or does not
// want this rank. Cheap when called again.
bool join_session();

// The session that was joined, or null. Its `sources` say what is to be recorded.
const SessionHeader* session();

// What the gate leads to: the session's state while the window is open, a constant `waiting` otherwise.
extern std::atomic<const std::atomic<SessionState>*> gate;
void set_gate(const std::atomic<SessionState>* state);  // for window.cpp; null: closed

// Whether events are wanted now: the session records and its window is open. Also right without a session.
inline bool recording() {
    return gate.load(std::memory_order_acquire)->load(std::memory_order_relaxed) == SessionState::recording;
}

// Whether the tool takes nothing more, also not the ends of what was begun.
inline bool stopped() {
    const SessionHeader* joined = session();
    return joined == nullptr || joined->state.load(std::memory_order_relaxed) == SessionState::stopped;
}

// This thread's log, made if need be; nullptr when there can be none (no space, thread ending, re-entered).
ThreadState* thread_state();

// The domain of that name, made once; the default domain when there are too many.
const Domain* domain(Text name);
const Domain* default_domain();

// The id of a string, registered once and told to the reader; 0 when there is no memory.
std::uint32_t name_id(Text text);

// The text of such an id; it stays where it is.
Text name_text(std::uint32_t id);

// Writes a record of text (thread_name, category_name) to this thread's log.
void write_text(RecordKind kind, std::uint32_t name, std::uint64_t owner, Text text);

// Uses a thread's log and keeps everything else of the thread out meanwhile.
class Entered {
  public:
    Entered();
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ThreadState* operator->() const { return state_; }
    explicit operator bool() const { return state_ != nullptr; }

  private:
    ThreadState* state_;
};

}  // namespace shardscope::profiler::inject
