// A piece of a Plan's work with its addresses: what a rank's host thread hands to a device.
#pragma once

#include <cstddef>
#include <vector>

#include "profiler/thread_log.h"
#include "trainer/executor/cpu_kernels.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

struct Launch {
    const Op* op = nullptr;        // a kernel, memcpy or memset
    std::vector<std::byte*> data;  // by Op::args
    KernelContext context;
    profiler::DeviceWork work;  // where it is recorded
};

// On host memory, by the thread that calls.
void carry_out(const Launch& launch);

}  // namespace shardscope::trainer
