// The collectives of one communicator on CUDA devices.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "trainer/cuda/stream.h"
#include "trainer/device/device.h"

namespace shardscope::trainer::cuda {

class Group {
  public:
    Group() = default;
    virtual ~Group() = default;
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    // Enqueues a member's part on its stream, on its host thread, whose device is current. All members call
    // for the same collectives in the same order. Throws CudaError, and std::logic_error where members
    // disagree on a collective.
    virtual void enqueue(const CollectiveLaunch& collective, const CountedStream& stream) = 0;
    // Nobody waits for a member any more: those that do get `error`.
    virtual void fail(std::exception_ptr error) = 0;
    // Whether a library carries them out that tells NVTX of them itself.
    virtual bool announces() const { return false; }
    // Begins to look after what is enqueued: a failure that nobody's call meets is told to `on_failure`,
    // once, on a thread of the group. And ends to: nothing is told any more.
    virtual void watch(const std::function<void(std::exception_ptr)>& /*on_failure*/) {}
    virtual void end_watch() {}
    // The oldest collective between processes that a rank of this one waits in, as a clause; empty: none. Any
    // thread.
    virtual std::string waiting() { return {}; }
};

}  // namespace shardscope::trainer::cuda
