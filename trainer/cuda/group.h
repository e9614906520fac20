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

    // Enqueues a member's part on its stream. Called on its host thread, whose device is current. All members
    // call it for the same collectives in the same order. Throws CudaError, and std::logic_error if
    // members disagree on a collective.
    virtual void enqueue(const device::CollectiveLaunch& collective, const CountedStream& stream) = 0;
    // Ends every wait for members: the waiting calls throw `error`.
    virtual void fail(std::exception_ptr error) = 0;
    // Whether the library that carries out the collectives reports them to NVTX itself.
    virtual bool announces() const { return false; }
    // watch() starts to monitor enqueued collectives: a failure that no call would meet is reported to
    // `on_failure`, once, on a thread of the group. After end_watch() nothing is reported any more.
    virtual void watch(const std::function<void(std::exception_ptr)>& /*on_failure*/) {}
    virtual void end_watch() {}
    // The oldest collective between processes that a rank of this process waits in, as a clause; empty if
    // there is none. Any thread may call it.
    virtual std::string waiting() { return {}; }
};

}  // namespace shardscope::trainer::cuda
