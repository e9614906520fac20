// Carries out Plans for one rank on the CPU: the rank's host thread walks the operations in program order,
// does the host's part at once and enqueues the rest on the rank's streams. Knows nothing of FSDP.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/executor/allocator.h"
#include "trainer/executor/instruments.h"
#include "trainer/executor/local_group.h"
#include "trainer/executor/scheduler.h"
#include "trainer/plan/account.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

// What all ranks of the process share.
struct Shared {
    Scheduler& scheduler;
    LocalGroup& group;
    const Dataset& dataset;
    std::int64_t seed = 0;
    int batch = 0;
    std::function<void(int rank, std::int64_t step, double loss)> on_loss;
    Instruments* instruments = nullptr;             // null: nothing is recorded
    std::vector<profiler::ThreadLog*> worker_logs;  // by worker, once they have started
};

class RankRunner {
  public:
    // `streams`: made beforehand for this rank, in the order of Stream.
    RankRunner(int rank, Shared& shared, std::array<StreamIndex, kStreams> streams);

    // Called on the rank's host thread. `step` 0 is the first; set-up and finish use the step they stand at.
    void run(const Plan& plan, std::int64_t step);
    void drain();  // waits for the rank's streams

    // What a buffer holds, between Plans and after drain(); empty while it is not allocated.
    std::span<float> contents(const Plan& plan, BufferId buffer);

    const MemoryPeak& peak() const { return counter_.peak(); }
    std::int64_t reserved_bytes() const { return allocator_.reserved_bytes(MemorySpace::device); }

  private:
    using NameId = profiler::NameId;
    void allocate(const Plan& plan, const Op& op);
    void free(const Plan& plan, const Op& op);
    void host_call(const Plan& plan, const Op& op);
    void host_wait(const Op& op);
    void enqueue(const Plan& plan, const Op& op);
    void enqueue_collective(const Op& op);
    StreamEvent record(Stream stream);
    void record_memory(const Plan& plan, const Op& op, const Block& block, bool allocation);
    std::byte* address(const Arg& arg) const;
    void use(const Op& op, StreamEvent event);
    std::vector<StreamEvent> take_waits(Stream stream);
    StreamIndex index(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
    std::int64_t next_correlation() { return (static_cast<std::int64_t>(rank_) << 32) | ++correlation_; }

    int rank_;
    Shared& shared_;
    std::array<StreamIndex, kStreams> streams_;
    Allocator allocator_;
    AllocationCounter counter_;
    const Instruments::PlanNames* names_ = nullptr;
    profiler::ThreadLog* log_ = nullptr;
    std::vector<Block*> blocks_;                            // by buffer; null while not allocated
    std::vector<StreamEvent> events_;                       // by event slot
    std::array<StreamEvent, kStreams> last_{};              // latest item of each stream
    std::array<std::vector<StreamEvent>, kStreams> waits_;  // that the next item of a stream takes along
    StreamEvent last_collective_;  // one in-order queue per communicator, as NCCL has
    std::int64_t sequence_ = 0;    // of collectives
    std::int64_t correlation_ = 0;
    std::int64_t step_ = 0;
};

}  // namespace shardscope::trainer
