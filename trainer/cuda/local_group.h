// The `local` process group on CUDA: ranks that are threads of this process, several of which may share one
// device (which NCCL refuses). The host threads of the members meet at each collective, so that each member's
// part waits, on its own stream, only for events that the others have already recorded: whatever the devices
// run in parallel, no stream can wait for work that is not enqueued yet. Each part reads its data directly
// from the others' buffers; sums are in rank order, element by element, scaled once at the end, as on the CPU
// (executor/local_group.h), and so are the results' bits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "trainer/cuda/group.h"

namespace shardscope::trainer::cuda {

class LocalGroup final : public Group {
  public:
    // `ranks`: the members' ranks, by place. `timeout_s`: the longest time that a host thread waits for
    // the others; 0: no limit.
    LocalGroup(std::vector<int> ranks, double timeout_s);

    void enqueue(const device::CollectiveLaunch& collective, const CountedStream& stream) override;
    void fail(std::exception_ptr error) override;

  private:
    // A collective that at least one member has not left.
    struct Open {
        std::vector<collective::CollectiveCall> calls;  // by place
        collective::CollectiveCall first;  // the first member's call, with which the others must agree
        std::vector<bool> here, issued;    // by place: has named its buffers; has enqueued its part
        int left = 0;
    };
    // A member's events: its inputs are ready; its part is over. One of each is enough, because neither is
    // recorded again before all members have enqueued their waits for it. Created by the member's own thread,
    // on its device.
    struct Member {
        std::optional<Event> ready, over;
    };

    void meet(std::unique_lock<std::mutex>& lock, const device::CollectiveLaunch& collective,
              const std::vector<bool>& passed);

    std::vector<int> ranks_;
    double timeout_s_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::int64_t, Open> open_;  // by sequence
    std::vector<Member> members_;        // by place
    std::exception_ptr error_;
};

}  // namespace shardscope::trainer::cuda
