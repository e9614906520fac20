// Spreads the work on a search's rows over several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace shardscope::trainer::planner {

// Calls work(i) for each i in [0, count), on the calling thread and threads - 1 others, until all are done or
// `stop` is set. `progress` may be empty; it is called after each item, by one thread at a time. Rethrows the
// first exception of `work`, after which no other item begins.
void for_each_in_parallel(std::size_t count, int threads, const std::atomic<bool>& stop,
                          const std::function<void(std::size_t done, std::size_t all)>& progress,
                          const std::function<void(std::size_t)>& work);

}  // namespace shardscope::trainer::planner
