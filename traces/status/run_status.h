// What a run says of itself while it lasts, and that as one line of JSON: the contract between the status
// servers of shardscope-train and shardscope-record and whoever watches (docs/status.md). Nothing that is
// unknown is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces::status {

// The version of the line; a reader refuses a newer one.
inline constexpr int kLineVersion = 1;
// A longer line is not read. A rank takes some 300 bytes.
inline constexpr std::size_t kLongestLine = std::size_t{16} << 20;

// running; waiting: for a rank or for an end (`reason` says for whom); stopping: a signal asked for the end;
// finished: all steps are done; stopped, failed: it ended early, as `reason` says.
enum class RunState : std::uint8_t { starting, running, waiting, stopping, finished, stopped, failed };
std::string_view name(RunState state);
constexpr bool is_over(RunState state) {
    return state >= RunState::finished;
}

// silent: its process has not said anything for RankStatus::silent_s.
enum class RankState : std::uint8_t { starting, running, waiting, silent, ended };
std::string_view name(RankState state);

// The collective that a rank is in, or was in last.
struct CollectiveStatus {
    std::string operation;        // "all_gather"
    std::int64_t number = 0;      // in its group, 0 the first
    std::int64_t group = 0;       // the communicator
    bool open = false;            // the rank is in it
    std::optional<double> for_s;  // since it entered or, if it is no longer in it, since it left
};

// Where a rank's thread is: its innermost open range.
struct RangeStatus {
    std::string name;
    std::optional<double> for_s;
};

struct RankStatus {
    int rank = -1;  // -1: processes without a rank
    std::string host;
    std::int64_t pid = 0;  // 0: unknown
    RankState state = RankState::starting;
    double silent_s = 0;
    std::optional<std::int64_t> steps_done;
    std::optional<std::int64_t> memory_bytes, peak_bytes;  // allocated device memory
    std::optional<std::int64_t> resident_bytes;            // of its process
    std::optional<double> cores;                           // processor seconds per second
    std::optional<double> waits_percent;  // of the last seconds, in collectives; the slowest waits least
    std::optional<CollectiveStatus> collective;
    std::optional<RangeStatus> range;
};

struct RunStatus {
    std::string tool;         // "shardscope-train 0.9.0"
    std::string run;          // the job file, or the command
    std::string trace;        // its path; empty: none is written
    std::string host;         // of the server
    std::int64_t pid = 0;     // likewise
    std::int64_t number = 0;  // of the line, counted by the server
    double time_s = 0;        // since the run began
    RunState state = RunState::starting;
    std::string reason;  // one sentence
    std::optional<std::int64_t> steps_done, steps;
    std::optional<double> epoch;
    std::optional<std::int64_t> epochs;
    std::optional<double> loss, step_s;
    std::optional<double> rate;  // `items` per second, over all ranks
    std::string items;           // "tokens"
    std::optional<double> left_s;
    std::optional<int> slowest_rank;
    std::optional<std::int64_t> processes, events, dropped_events;  // of a recording
    std::vector<RankStatus> ranks;                                  // in increasing order
};

class StatusError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// One line, with its newline. Numbers that are not finite are left out.
std::string to_line(const RunStatus& status);
// Throws StatusError: it is not a line of a status server, or of a newer version. What is missing or has
// another type than it should have stays unset.
RunStatus from_line(std::string_view line);
// The text of a server's refusal, {"error": "..."}; nullopt: the line is none.
std::optional<std::string> refusal_of(std::string_view line);
std::string refusal_line(std::string_view reason);

}  // namespace shardscope::traces::status
