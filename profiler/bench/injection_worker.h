// The program that bench_injection runs: it makes NVTX calls and times them. It uses NVIDIA's own headers if
// the CUDA Toolkit is installed, else tables of our own that are filled as NVTX's are.
#pragma once

namespace shardscope::bench {

// Times each case in turn and writes "NAME NANOSECONDS" lines to the file: the median over batches of the
// time of one push and pop, on each of the case's threads.
int time_calls(const char* result_file);

// Pushes and pops ranges on `threads` threads, `rate` a second in total, for `seconds`. Writes how many it
// made and how long it took: "sent N", "seconds S".
int make_ranges(const char* result_file, int threads, double rate, double seconds);

// Whether this was built with NVTX's own headers.
bool has_nvtx_headers();

}  // namespace shardscope::bench
