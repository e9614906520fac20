// The host thread of a class of ranks, in virtual time: a back end of the walk (executor/plan_walk.h) that
// gives each operation its time. When the host has to wait, go_on() returns, and the walk continues later.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/executor/plan_walk.h"
#include "trainer/sim/costs.h"
#include "trainer/sim/node_memory.h"
#include "trainer/sim/observer.h"
#include "trainer/sim/script.h"
#include "trainer/sim/virtual_device.h"

namespace shardscope::trainer::sim {

// State that all hosts of a run share.
struct Walk {
    const Script& script;
    const Cluster& cluster;
    const RankClasses& ranks;
    const Costs& costs;
    VirtualDevice& device;
    RunObserver& observer;
    NodeMemory nodes;
    std::int64_t memory_limit = 0;  // device memory that a rank may reserve; 0: no limit
    std::string memory_place;       // for the message: "into the … of …"
    std::string memory_remedy;
    std::int64_t steps = 0;  // steps to carry out; may be lowered, but not below what a host has begun
};

// Provides only addresses, up to what the nodes have room for, and the state of streams; an allocation that
// would have to wait is retried later.
class VirtualMemory : public device::MemoryDevice {
  public:
    VirtualMemory(const VirtualDevice& device, NodeMemory& nodes, int rank_class)
        : device_(device), nodes_(nodes), rank_class_(rank_class) {}
    bool happened(device::StreamEvent event) override { return device_.happened(event); }
    void wait(device::StreamEvent event) override;
    device::StreamEvent poison(device::StreamIndex, const device::Waits&, std::byte*, std::int64_t) override {
        return {};
    }
    std::byte* take(int rank, plan::MemorySpace space, std::int64_t bytes, bool poisoned) override;
    void give_back(int rank, plan::MemorySpace space, std::byte* data) noexcept override;

  private:
    const VirtualDevice& device_;
    NodeMemory& nodes_;
    const int rank_class_;
    std::unordered_map<const std::byte*, std::int64_t> taken_;  // bytes of the nodes
    std::uint64_t next_address_ = std::uint64_t{1} << 40;
};

class HostWalk : private VirtualMemory, public executor::PlanWalk<HostWalk> {
  public:
    HostWalk(Walk& walk, int rank_class);

    bool ended() const { return stage_ == Stage::ended; }
    // When the host continues; kNever while it waits for the device, or after it has ended.
    Time ready() const { return waiting_ ? kNever : clock_; }
    // Carries out the next operation at ready(), a time that the device has reached. Throws OutOfMemory.
    void go_on();
    // Called when the device has completed something: ends the host's wait if it was for this.
    void look();

    std::int64_t steps_begun() const { return steps_begun_; }
    const RoleScript& role() const { return role_; }
    struct Step {
        Time start = 0, end = 0;  // host times
        std::int64_t peak_bytes = 0;
    };
    const std::vector<Step>& steps() const { return steps_; }

  private:
    friend class executor::PlanWalk<HostWalk>;
    enum class Stage : std::uint8_t { setup, step, finish, ended };

    void begin(Stage stage);
    void plan_ended();
    void drain();
    void end_stage();

    // Called by PlanWalk.
    void open_range(const plan::Op& op);
    void close_range();
    void host_call(const plan::Op& op);
    void host_wait(const plan::Op&, device::StreamEvent event) { wait_for({event}); }
    void host_work(const plan::Op& op);
    void launch(const plan::Op& op);
    device::StreamEvent start(const plan::Op& op, const device::Waits& waits);
    device::StreamEvent start(const plan::Op& op, const device::Waits& waits, int communicator,
                              std::int64_t sequence);
    int communicator(const plan::Op& op) const;
    device::StreamEvent mark(plan::Stream stream, const device::Waits& waits);
    void hold(device::StreamEvent) {}
    Time runtime_call(const plan::Op& op);
    Time now() const { return clock_; }
    void allocated(const plan::Op& op, const executor::MemoryBlock& block, Time since);
    void freeing(const plan::Op& op, const executor::MemoryBlock& block);
    void memory_changed(std::int64_t active, std::int64_t reserved);
    void explain(const plan::Op& op, bool by_limit, executor::MemoryShortage& shortage) const;

    void open_range(std::string_view name, int module);
    void end_launch();
    bool is_followed(const plan::Op& op) const;
    void end_host_work();
    device::StreamEvent put(const plan::Op& op, StreamItem item);
    void wait_for(const device::Waits& waits);
    void end_wait();
    Time cost(double seconds) const;
    const RankClass& self() const { return walk_.ranks.classes[static_cast<std::size_t>(class_)]; }

    Walk& walk_;
    int class_;
    const RoleScript& role_;
    Stage stage_ = Stage::setup;
    std::size_t next_op_ = 0;       // index into the Plan
    const plan::Op* op_ = nullptr;  // the current one
    Time clock_ = 0;
    Time since_ = 0;          // start of the current launch or wait
    bool launching_ = false;  // the launch of op_ has begun
    bool follows_ = false;    // the host waits for the work that op_ launched
    bool works_ = false;      // the host's own work of op_ is running
    bool waiting_ = false;
    bool drains_ = false;   // waits for all streams at the end of a stage
    device::Waits wanted_;  // while waiting
    Time step_start_ = 0;
    std::int64_t step_ = 0, steps_begun_ = 0;
    std::vector<Step> steps_;
    std::int64_t correlation_ = 0;
};

}  // namespace shardscope::trainer::sim
