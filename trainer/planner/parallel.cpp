#include "trainer/planner/parallel.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace shardscope::trainer::planner {

void for_each_in_parallel(std::size_t count, int threads, const std::atomic<bool>& stop,
                          const std::function<void(std::size_t, std::size_t)>& progress,
                          const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;  // guards `done` and `problem`
    std::size_t done = 0;
    std::exception_ptr problem;
    const auto take = [&] {
        for (std::size_t i = next++; i < count && !stop; i = next++) {
            try {
                work(i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!problem) problem = std::current_exception();
                next = count;
                return;
            }
            const std::lock_guard lock(mutex);
            ++done;
            if (progress) progress(done, count);
        }
    };
    {
        std::vector<std::jthread> helpers;
        for (int t = 1; t < threads; ++t) helpers.emplace_back(take);
        take();
    }
    if (problem) std::rethrow_exception(problem);
}

}  // namespace shardscope::trainer::planner
