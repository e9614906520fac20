// The failure of an allocation that does not fit, with its message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/plan/account.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

struct MemoryShortage {
    std::int64_t step = 0;
    int rank = 0;
    std::string_view unit;                   // the operation's, if it has one
    std::string place;                       // "into the 4096 bytes of run.memory_limit"
    std::string remedy;                      // what else helps, "raise run.memory_limit, or "; may be empty
    const plan::AllocationCounter& counter;  // counts the buffers that are alive now
    std::int64_t reserved = 0;               // bytes, by the allocator, on the device
    std::int64_t room = 0;                   // OutOfMemory::room
    bool of_host = false;                    // a simulated host has no more
};

// Throws OutOfMemory. `op` is an allocation.
[[noreturn]] void throw_out_of_memory(const plan::Plan& plan, const plan::Op& op,
                                      const MemoryShortage& shortage);

}  // namespace shardscope::trainer::executor
