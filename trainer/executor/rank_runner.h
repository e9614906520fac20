// Carries out Plans for one rank: the rank's host thread walks the operations in program order, does the
// host's part immediately and enqueues the rest on the rank's streams of a device. Knows nothing of FSDP.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trainer/collective/delays.h"
#include "trainer/device/device.h"
#include "trainer/executor/allocator.h"
#include "trainer/executor/instruments.h"
#include "trainer/executor/nvtx.h"
#include "trainer/plan/account.h"
#include "trainer/plan/host_view.h"
#include "trainer/plan/mesh.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

struct Job;

// State that all ranks of the process share.
struct Shared {
    Device& device;
    Delays& delays;
    Mesh mesh;
    const Job& job;
    bool poison = false;                  // see TestSettings
    BufferId product_workspaces = -1;     // of each rank; -1: none
    std::vector<std::string> unit_names;  // by unit, for messages
    Instruments* instruments = nullptr;   // null: nothing is recorded
    const Nvtx* nvtx = nullptr;           // null: no tool listens
};

// The targets of a Plan's host calls, called on the rank's host thread.
struct HostCalls {
    std::function<void(void* input, void* target)> next_batch;
    // `losses`: by micro-batch. `module`: the first whose output was not finite; -1: none.
    std::function<void(std::int64_t step, std::span<const double> losses, std::int32_t module)> read_loss;
    std::function<void(double loss)> read_validation_loss;
    std::function<void(std::span<const float> logits)> read_logits;
};

class RankRunner {
  public:
    // Adds the rank's streams to the device; call before any thread enqueues.
    RankRunner(int rank, Shared& shared, HostCalls calls);

    // Called on the rank's host thread. `step` 0 is the first of all; set-up and finish use the step that
    // they are at. Throws OutOfMemory and what the host calls throw.
    void run(const Plan& plan, std::int64_t step);
    void drain();  // waits for the rank's streams

    // The contents of a view in any space, between Plans and after drain(); empty while it is not allocated.
    HostView contents(const Arg& arg);

    const MemoryPeak& peak() const { return counter_.peak(); }
    const Allocator& allocator() const { return allocator_; }

  private:
    using NameId = profiler::NameId;
    // One in-order queue per communicator, as NCCL has.
    struct Communicator {
        int id = 0, place = 0, members = 1;
        StreamEvent last;           // collective
        std::int64_t sequence = 0;  // of the next one
    };

    void push_range(const Op& op);
    void pop_range();
    void push_host_work(const Op& op);
    void push_collective(const Op& op);
    void pop_collective();
    void allocate(const Plan& plan, const Op& op);
    void free(const Plan& plan, const Op& op);
    [[noreturn]] void out_of_memory(const Plan& plan, const Op& op, const PoolExhausted& reason) const;
    void host_call(const Plan& plan, const Op& op);
    void host_wait(const Op& op);
    void do_at_once(const Plan& plan, const Op& op);
    void enqueue(const Plan& plan, const Op& op);
    void enqueue_collective(const Op& op);
    void describe_collective(const Op& op, CollectiveLaunch& launch);
    void describe_work(const Plan& plan, const Op& op, profiler::DeviceWork& work);
    void prepare(const Plan& plan, const Op& op, Launch& launch);
    StreamEvent record(Stream stream);
    void record_memory(const Plan& plan, const Op& op, const MemoryBlock& block, bool allocation);
    void record_counters();
    std::byte* address(const Arg& arg) const;
    void use(const Op& op, StreamEvent event);
    Waits take_waits(Stream stream);
    Communicator& communicator(Group group);
    StreamIndex index(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
    std::int64_t next_correlation() { return (static_cast<std::int64_t>(rank_) << 32) | ++correlation_; }

    int rank_;
    Shared& shared_;
    HostCalls calls_;
    std::array<StreamIndex, kStreams> streams_;
    Allocator allocator_;
    AllocationCounter counter_;
    const Instruments::PlanNames* names_ = nullptr;
    profiler::ThreadLog* log_ = nullptr;
    const std::vector<Nvtx::Name>* nvtx_names_ = nullptr;         // of the Plan
    std::vector<MemoryBlock*> blocks_;                            // by buffer; null while not allocated
    std::vector<StreamEvent> events_;                             // by event slot
    std::array<StreamEvent, kStreams> last_;                      // latest item of each stream
    std::array<Waits, kStreams> waits_;                           // for the next item of each stream
    Launch launch_;                                               // the latest
    std::array<Communicator, kGroupNames.size()> communicators_;  // by Group; if it is the world: the world's
    std::int64_t correlation_ = 0;
    std::int64_t step_ = 0;
    double lr_ = 0;
    std::int64_t last_active_ = -1, last_reserved_ = -1;  // as recorded
};

}  // namespace shardscope::trainer
