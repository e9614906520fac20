// The calls of CUDA's two interfaces that CUPTI knows by number, and which of them are to be recorded. No
// heap.
#pragma once

#include <cstdint>

#include "profiler/cupti/library.h"

namespace shardscope::profiler::cupti {

class CudaCalls {
  public:
    static constexpr std::uint32_t kMost = 2048;  // of each interface

    // `domain` is kDomainDriver or kDomainRuntime; names are CUPTI's ("cudaLaunchKernel_v7000").
    using IsWanted = bool (*)(int domain, const char* name);
    // Calls `is_wanted` for all names.
    void init(const Cupti& cupti, IsWanted is_wanted);

    struct Call {
        const char* name = nullptr;  // owned by CUPTI, never freed
        std::uint32_t id = 0;        // the caller's id for the name; 0: none yet
        bool wanted = false;
    };
    // nullptr: CUPTI has no such call.
    Call* find(int domain, std::uint32_t number) {
        return number < kMost && calls_[domain - 1][number].name != nullptr ? &calls_[domain - 1][number]
                                                                            : nullptr;
    }
    // 0: CUPTI has no call of that name.
    std::uint32_t number_of(int domain, const char* name);

    // Enables recording of the wanted calls: only those if the library can choose (since 12.x), else all.
    void enable(const Cupti& cupti);
    void disable(const Cupti& cupti);

  private:
    Call calls_[2][kMost] = {};
};

bool begins_with(const char* name, const char* start);

}  // namespace shardscope::profiler::cupti
