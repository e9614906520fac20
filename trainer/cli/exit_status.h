// The exit statuses of shardscope-train.
#pragma once

namespace shardscope::trainer::cli {

inline constexpr int kFailed = 1;        // the work failed
inline constexpr int kWrongUse = 2;      // the command line, the job or a file that it names is wrong
inline constexpr int kNotStarted = 127;  // a command that could not be started, as in shells
inline constexpr int kSignalled = 128;   // plus the signal's number

}  // namespace shardscope::trainer::cli
