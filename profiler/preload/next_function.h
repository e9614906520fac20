// The function that a function of this library stands before, under the same name: the C library's, or that
// of another library which does the same (a sanitizer).
#pragma once

#include <atomic>

#include "profiler/base/old_loader.h"

namespace shardscope::profiler::preload {

template <typename Function>
class NextFunction {
  public:
    constexpr explicit NextFunction(const char* name) : name_(name) {}

    // Null if there is none, as before glibc 2.34 in a program without threads.
    Function* get() {
        Function* found = found_.load(std::memory_order_relaxed);
        if (found != nullptr || dlsym == nullptr) return found;
        found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
        found_.store(found, std::memory_order_relaxed);
        return found;
    }

  private:
    const char* name_;
    std::atomic<Function*> found_{nullptr};
};

}  // namespace shardscope::profiler::preload
