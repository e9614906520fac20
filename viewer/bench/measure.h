// Processor time, resident memory, and work in a child process. Not a test.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace shardscope::viewer::bench {

double process_seconds();  // all threads of this process
double thread_seconds();   // this thread

std::int64_t resident_bytes();  // at present
std::int64_t largest_resident_bytes();

// Runs `work` in a child process, whose memory measurements do not include earlier work, and returns its
// numbers. Throws std::runtime_error if it failed.
std::vector<double> in_child(const std::function<std::vector<double>()>& work);

// The value below which the fraction `share` of the values lies.
double percentile(std::vector<double> values, double share);

}  // namespace shardscope::viewer::bench
