// The status of a recording while it lasts (--status): what shardscope-record knows of the processes, as a
// line that it makes twice a second and its server sends to those who watch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "profiler/record/collector.h"
#include "profiler/record/live_rows.h"
#include "profiler/status/status_server.h"

namespace shardscope::profiler {

class LiveRecording {
  public:
    struct Facts {
        std::string command, trace, host;
        std::int64_t pid = 0;  // of the command
        std::string step_name;
    };
    // `address`: as --status gives it; empty: a socket beside the trace. Listens. Throws
    // traces::status::StatusError.
    LiveRecording(const std::string& address, Facts facts);

    LiveRows& rows() { return rows_; }
    std::string address() const { return to_text(server_->address()); }

    // Makes a line if one is due. Called by the thread that records.
    void tick(std::int64_t now_ns, const Collector& collector);
    // The command has ended with that exit status: the last line.
    void end(std::int64_t now_ns, int exit_status, const Collector* collector);

  private:
    struct Activity {
        std::uint64_t count = 0;
        std::int64_t since_ns = 0;  // of its last change
    };

    traces::status::RunStatus describe(std::int64_t now_ns, const Collector& collector);
    void say_what_is_quiet(traces::status::RunStatus& status, std::int64_t now_ns,
                           const Collector& collector);
    void add_places(traces::status::RunStatus& status, const std::vector<Collector::Place>& places) const;
    void add_speed(traces::status::RunStatus& status, std::int64_t now_ns);
    void publish(const traces::status::RunStatus& status);

    const Facts facts_;
    LiveRows rows_;
    std::int64_t next_ns_ = 0, lines_ = 0;
    Activity activity_;
    std::int64_t steps_seen_ = -1, step_seen_ns_ = 0;  // the latest step, and when it was first seen
    double step_s_ = 0;

    std::mutex mutex_;
    std::string line_;
    std::unique_ptr<StatusServer> server_;  // its thread takes the line
};

}  // namespace shardscope::profiler
