// Collectives between ranks that are processes, on the CPU's memory.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "trainer/collective/collective_error.h"
#include "trainer/device/device.h"

namespace shardscope::trainer::comm {

class ProcessGroup {
  public:
    ProcessGroup() = default;
    virtual ~ProcessGroup() = default;
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    // "mpi", "gloo", "tcp": the engine in the kernels' names.
    virtual const char* name() const = 0;

    // Lets the group ask whether this process only waits: if so, it polls for messages without a pause,
    // instead of sleeping in between. Called on a thread of the group. Set before the first begin().
    virtual void look_while(std::function<bool()> nothing_to_do) = 0;

    // Called once, on a thread of the group, when this rank's data is in place (an all_reduce's and a
    // broadcast's too) and its input may be changed. `error`: null, or why it never will be.
    using Done = std::function<void(std::exception_ptr error)>;
    // Begins this rank's part and returns immediately. The ranks of a communicator begin the same collectives
    // in the order of their sequence; those of different communicators in any order.
    virtual void begin(const device::CollectiveLaunch& collective, Done done) = 0;

    // Ends all collectives that have not ended or begin later with `error`. Any thread; does not block.
    virtual void fail(std::exception_ptr error) = 0;
    // The oldest collective that this rank has begun and that has not ended, as a clause: "all_gather number
    // 12 of communicator 0 (step 3, unit 2 \"net.4\", backward)"; empty: none. Any thread.
    virtual std::string waiting() const = 0;
    // Returns when all that has begun has ended or failed; then nothing touches its memory. Idempotent.
    virtual void stop() = 0;
};

}  // namespace shardscope::trainer::comm
