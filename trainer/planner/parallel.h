// The work on the rows of a search, by several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace shardscope::trainer::planner {

// Calls work(i) for i in [0, count), by the calling thread and threads - 1 others, until all are done or
// `stop` is set. `progress` may be empty; it is called after each, one at a time. Throws the first exception
// of `work`, after which no other begins.
void for_each_in_parallel(std::size_t count, int threads, const std::atomic<bool>& stop,
                          const std::function<void(std::size_t done, std::size_t all)>& progress,
                          const std::function<void(std::size_t)>& work);

}  // namespace shardscope::trainer::planner
