// The same work on many things, on several processors.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace shardscope::traces::store {

// The threads that work together, at most eight: more would wait for memory.
inline std::size_t cores() {
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
}
// The same for work on so many rows: a thread costs more than it saves for a few.
inline std::size_t cores_for(std::size_t rows) {
    constexpr std::size_t kFew = 1 << 17;
    return rows < kFew ? 1 : cores();
}

// Calls work(i) for each i below `count` on this many threads, of which this is one, and returns when all are
// done. Then throws what one of the calls threw; the calls that had not begun were left out.
template <typename Work>
void on_cores(std::size_t threads, std::size_t count, const Work& work) {
    std::atomic<std::size_t> next = 0;
    std::exception_ptr failure;
    std::mutex of_failure;
    const auto all = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) work(i);
        } catch (...) {
            const std::lock_guard lock(of_failure);
            failure = std::current_exception();
            next = count;
        }
    };
    {
        std::vector<std::jthread> others;
        others.reserve(threads);
        try {
            while (others.size() + 1 < std::min(count, threads)) others.emplace_back(all);
        } catch (const std::system_error&) {  // there are too many threads already: those that run do it
        }
        all();
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace shardscope::traces::store
