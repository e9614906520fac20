// The host thread of a class of ranks, in virtual time: walks the Plans as trainer/executor/rank_runner.cpp
// does, with the same allocator and the same queues, and reports when each thing was done.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/executor/allocator.h"
#include "trainer/plan/account.h"
#include "trainer/sim/costs.h"
#include "trainer/sim/observer.h"
#include "trainer/sim/script.h"
#include "trainer/sim/virtual_device.h"

namespace shardscope::trainer::sim {

// What all hosts of a run share.
struct Walk {
    const Script& script;
    const Cluster& cluster;
    const RankClasses& ranks;
    const Costs& costs;
    VirtualDevice& device;
    RunObserver* observer = nullptr;  // null: no observer
    std::int64_t memory_limit = 0;    // device memory that a rank may reserve; 0: no limit
    std::string memory_place;         // for the message: "into the … of …"
    std::string memory_remedy;
    std::int64_t steps = 0;  // to carry out; may be lowered, not below what a host has begun
};

class HostWalk {
  public:
    HostWalk(Walk& walk, int rank_class);

    bool ended() const { return stage_ == Stage::ended; }
    // When it continues; kNever while it waits for the device, or has ended.
    Time ready() const { return waiting_ ? kNever : clock_; }
    // Does the next thing at ready(), which the device's time has reached. Throws OutOfMemory.
    void go_on();
    // The device has completed something: ends the wait if it was for this.
    void look();

    std::int64_t steps_begun() const { return steps_begun_; }
    struct Step {
        Time start = 0, end = 0;  // host times
        std::int64_t peak_bytes = 0;
    };
    const std::vector<Step>& steps() const { return steps_; }
    const MemoryPeak& peak() const { return counter_.peak(); }
    const Allocator& allocator() const { return allocator_; }

  private:
    // Only addresses and the streams' state; an allocation that would have to wait is tried again later.
    class Memory final : public MemoryDevice {
      public:
        explicit Memory(const VirtualDevice& device) : device_(device) {}
        bool happened(StreamEvent event) override { return device_.happened(event); }
        void wait(StreamEvent event) override;
        StreamEvent poison(StreamIndex, const Waits&, std::byte*, std::int64_t) override { return {}; }
        std::byte* take(int rank, MemorySpace space, std::int64_t bytes, bool poisoned) override;
        void give_back(int, MemorySpace, std::byte*) noexcept override {}

      private:
        const VirtualDevice& device_;
        std::uint64_t next_address_ = std::uint64_t{1} << 40;
    };
    enum class Stage : std::uint8_t { setup, step, finish, ended };

    void begin(Stage stage);
    void end_plan();
    void drain();
    void end_stage();
    void carry_out(const Op& op);
    void launch(const Op& op);
    void allocate(const Op& op);
    void free(const Op& op);
    void open_range(std::string_view name, int module);
    void close_range();
    void record_event(const Op& op);
    void wait_event(const Op& op);
    void host_work(const Op& op);
    void end_host_work();
    void wait_for(Waits waits);
    void end_wait();
    StreamEvent record(Stream stream);
    void use(const Op& op, StreamEvent event);
    void tell_memory();
    [[noreturn]] void out_of_memory(const Op& op, bool by_limit) const;
    Time cost(double seconds) const;
    const Op& op() const { return plan_->ops[next_op_]; }
    std::string_view name(const Op& op) const { return plan_->names[static_cast<std::size_t>(op.name)]; }
    const RankClass& self() const { return walk_.ranks.classes[static_cast<std::size_t>(class_)]; }

    Walk& walk_;
    int class_;
    Memory memory_;
    Allocator allocator_;
    AllocationCounter counter_;
    Stage stage_ = Stage::setup;
    const Plan* plan_ = nullptr;
    std::size_t next_op_ = 0;
    Time clock_ = 0;
    Time since_ = 0;          // start of the current launch or wait
    bool launching_ = false;  // the launch of op() has begun
    bool works_ = false;      // the host's own work of op() is running
    bool waiting_ = false;
    bool drains_ = false;  // waits for all streams at the end of a stage
    Waits wanted_;         // while waiting
    Time step_start_ = 0;
    std::int64_t step_ = 0, steps_begun_ = 0;
    std::vector<Step> steps_;
    std::vector<MemoryBlock*> blocks_;
    std::vector<StreamEvent> events_;
    std::array<StreamEvent, kStreams> last_;
    std::array<Waits, kStreams> waits_;
    struct Queue {
        StreamEvent last;
        std::int64_t sequence = 0;
    };
    std::vector<Queue> queues_;  // by communicator class
    std::int64_t correlation_ = 0;
    std::int64_t last_active_ = -1, last_reserved_ = -1;  // as last reported
};

}  // namespace shardscope::trainer::sim
