// What the exit status of shardscope-train says.
#pragma once

namespace shardscope::trainer {

inline constexpr int kFailed = 1;        // the work
inline constexpr int kWrongUse = 2;      // the command line, the job or what it names
inline constexpr int kNotStarted = 127;  // a command that could not be started, as shells have it
inline constexpr int kSignalled = 128;   // and the signal's number

}  // namespace shardscope::trainer
