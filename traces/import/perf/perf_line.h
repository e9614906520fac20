// The lines of `perf script`: the head of a sample, and the frames of its stack. Source: the manual page
// perf-script(1); frames come innermost first, and an empty line ends a sample.
//
//   python3  4242/4250 [003] 16922.928625:    1003009 cpu-clock:u:
//           55d31a2b3c4d at::native::add+0x22 (/usr/lib/libtorch_cpu.so)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardscope::traces::importer {

struct PerfSample {
    std::string_view program;  // the thread's name
    std::int64_t pid = -1;     // -1: the line has only the thread's id
    std::int64_t tid = 0;
    int cpu = -1;
    std::int64_t time = 0;    // ns of perf's clock
    std::int64_t period = 1;  // since the last sample, of the event
    std::string_view event;   // without its modifiers: "cpu-clock"
    std::string_view rest;    // what follows it on the line: a frame, if perf recorded no stacks
};

// nullopt: the line is something else. The texts are views of the line.
std::optional<PerfSample> read_perf_sample(std::string_view line);

// "at::native::add (libtorch_cpu.so)"; nullopt: the line is not a frame.
std::optional<std::string> read_perf_frame(std::string_view line);

}  // namespace shardscope::traces::importer
