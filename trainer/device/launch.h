// A piece of a Plan's work with its addresses, which a rank's host thread passes to a device.
#pragma once

#include <cstddef>
#include <vector>

#include "profiler/log/thread_log.h"
#include "trainer/device/kernel_context.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::device {

struct Launch {
    const plan::Op* op = nullptr;  // a kernel, memcpy or memset
    std::vector<std::byte*> data;  // addresses, in the order of Op::args
    KernelContext context;
    profiler::DeviceWork work;  // set if it is recorded
};

}  // namespace shardscope::trainer::device
