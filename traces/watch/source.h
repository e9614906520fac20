// Where the status of a run comes from: its server, or the trace that it writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "traces/status/run_status.h"
#include "traces/watch/display.h"

namespace shardscope::traces::watch {

class Source {
  public:
    Source() = default;
    virtual ~Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    // The next status; nullopt: none came within the time, or a signal arrived. Throws StatusError or
    // StoreError.
    virtual std::optional<status::RunStatus> next(int timeout_ms) = 0;
    // What is known of the run's course before the first status.
    virtual void add_to(Course& /*course*/) {}
    // No more will come: the server has closed.
    virtual bool closed() const { return false; }
    // "/tmp/run.sqlite.status", "node1:29600", "run.sqlite (the trace; its run serves no status)".
    virtual std::string name() const = 0;
};

using Variable = std::function<const char*(const char*)>;  // of the environment

// `what`: a trace, a server's socket or its HOST:PORT; empty: the only socket in this folder. A trace is
// watched through its run's server if that answers. Throws StatusError or StoreError.
std::unique_ptr<Source> open_source(const std::string& what, const Variable& variable);

}  // namespace shardscope::traces::watch
