// The injected library's memory of its process: the session it belongs to, the record file that it maps, the
// names it gave out and a log per thread. Made lazily by the first event. No C++ runtime, no exceptions;
// every function keeps errno, since it runs inside the program's own code.
#pragma once

#include <cstdint>

#include "profiler/inject/text.h"
#include "profiler/log_writer.h"

namespace shardscope::profiler::inject {

// One thread's log, in a page of its own. Only that thread touches it.
struct ThreadState {
    static constexpr std::uint32_t kMaxDomains = 512;

    LogWriter writer;
    std::uint64_t next_range = 0;           // start/end ranges of this thread so far
    bool busy = false;                      // inside a callback: a signal handler must keep out
    std::uint32_t depth[kMaxDomains] = {};  // open push/pop ranges, by domain
};

struct Domain {
    std::uint32_t ordinal;  // 0: the default domain
    std::uint32_t name;     // its id in records
};

// Joins the session named by the environment; false when there is none or it speaks another format. Cheap
// when called again.
bool join_session();

// Whether events are wanted now.
bool recording();

// This thread's log, made if need be; nullptr when there can be none (no space, thread ending, re-entered).
ThreadState* thread_state();

// The domain of that name, made once; the default domain when there are too many.
const Domain* domain(Text name);
const Domain* default_domain();

// The id of a string, registered once and told to the reader; 0 when there is no memory.
std::uint32_t name_id(Text text);

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
