// What the scheduler carries out for one rank: work of a Plan with its addresses, made by the host thread,
// run by a worker. Records are used again, in the order of their stream, so that enqueuing allocates nothing
// once a run is warm.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "profiler/thread_log.h"
#include "trainer/executor/cpu_kernels.h"
#include "trainer/executor/scheduler.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

struct Shared;

struct Launch {
    const Op* op = nullptr;
    std::vector<std::byte*> data;  // by Op::args
    KernelContext context;
    profiler::DeviceWork work;  // where it is recorded
    StreamEvent event;
};

// A kernel, memcpy or memset, by whichever thread calls.
void carry_out(const Launch& launch);

// The launches of one stream. Host thread only.
class Launches {
  public:
    // One that no worker uses any more; its fields are those of an earlier use.
    Launch& take(const Scheduler& scheduler) {
        if (in_flight_.empty() || !scheduler.happened(in_flight_.front()->event)) {
            return *in_flight_.emplace_back(std::make_unique<Launch>());
        }
        in_flight_.push_back(std::move(in_flight_.front()));
        in_flight_.pop_front();
        return *in_flight_.back();
    }

  private:
    std::deque<std::unique_ptr<Launch>> in_flight_;  // the oldest first
};

}  // namespace shardscope::trainer
