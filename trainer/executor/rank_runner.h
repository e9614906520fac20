// Carries out Plans for one rank: the back end of the walk (plan_walk.h) that does the host's part
// immediately, on the rank's host thread, and enqueues the rest on the rank's streams of a device. Knows
// nothing of FSDP.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/collective/delays.h"
#include "trainer/executor/loss_scaler.h"
#include "trainer/executor/plan_walk.h"
#include "trainer/executor/rank_trace.h"
#include "trainer/plan/host_view.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::job {
struct Job;
}

namespace shardscope::trainer::executor {

class LiveBoard;

// State that all ranks of the process share.
struct Shared {
    device::Device& device;
    collective::Delays& delays;
    plan::Mesh mesh;
    const job::Job& job;
    bool poison = false;                  // see TestSettings
    std::vector<std::string> unit_names;  // by unit, for messages
    Instruments* instruments = nullptr;   // null: nothing is recorded
    const Nvtx* nvtx = nullptr;           // null: no tool listens
    // Hears of collectives as they are launched; null: the device tells when they begin and end.
    LiveBoard* live = nullptr;
};

// The targets of a Plan's host calls, called on the rank's host thread.
struct HostCalls {
    std::function<void(void* input, void* target)> next_batch;
    // `losses`: by micro-batch. `module`: the first whose output was not finite; -1: none. `norm`: of the
    // gradients; none: it is not reported.
    std::function<void(std::int64_t step, std::span<const double> losses, std::int32_t module,
                       std::optional<double> norm)>
        read_loss;
    // `values`: the loss and, if the model classifies, the accuracy.
    std::function<void(std::span<const double> values)> read_validation_loss;
    std::function<void(const LossScaleStep&)> scaled_loss;  // in fp16, in each step before its update
    std::function<void(std::span<const float> logits)> read_logits;
};

class RankRunner : public PlanWalk<RankRunner> {
  public:
    // Adds the rank's streams to the device; call before any thread enqueues.
    // `product_workspaces`: the buffer in the rank's Plans; -1: none.
    RankRunner(int rank, Shared& shared, plan::BufferId product_workspaces, HostCalls calls);

    // Called on the rank's host thread. `step` 0 is the first of all; set-up and finish use the step that
    // they are at. Throws OutOfMemory and what the host calls throw.
    void run(const plan::Plan& plan, std::int64_t step);
    void drain();  // waits for the rank's streams

    const RankTrace& trace() const { return trace_; }
    double file_wait_s() const { return file_wait_s_; }  // of the host, in steps
    // The loss scale of the next step; null if the job does not scale the loss.
    LossScaler* loss_scaler() { return scaler_ ? &*scaler_ : nullptr; }

    // The contents of a view in any space, between Plans and after drain(); empty while it is not allocated.
    plan::HostView contents(const plan::Arg& arg);

  private:
    friend class PlanWalk<RankRunner>;
    using Streams = std::array<device::StreamIndex, plan::kStreams>;

    RankRunner(int rank, Shared& shared, plan::BufferId product_workspaces, HostCalls calls,
               const Streams& streams);

    void open_range(const plan::Op& op) { trace_.push_range(op); }
    void close_range() { trace_.pop_range(); }
    void host_call(const plan::Op& op);
    void host_wait(const plan::Op& op, device::StreamEvent event);
    void host_work(const plan::Op& op);
    void launch(const plan::Op& op) {
        if (!is_skipped(op)) enqueue(op);
    }
    device::StreamEvent start(const plan::Op& op, const device::Waits& waits);
    device::StreamEvent start(const plan::Op& op, const device::Waits& waits,
                              plan::CommunicatorId communicator, std::int64_t sequence);
    plan::CommunicatorId communicator(const plan::Op& op) const;
    device::StreamEvent mark(plan::Stream stream, const device::Waits& waits) {
        return shared_.device.mark(index(stream), waits);
    }
    void hold(device::StreamEvent event) { shared_.device.hold(event); }
    RuntimeCall runtime_call(const plan::Op& op) const { return trace_.runtime_call(op); }
    profiler::Ticks now() const { return trace_.now(); }
    void allocated(const plan::Op& op, const MemoryBlock& block, profiler::Ticks since);
    void freeing(const plan::Op& op, const MemoryBlock& block);
    void memory_changed(std::int64_t active, std::int64_t reserved) {
        trace_.memory_changed(active, reserved);
    }
    void explain(const plan::Op& op, bool by_limit, MemoryShortage& shortage) const;

    // Of a step whose gradients overflowed: what would change the parameters or the optimizer's state.
    bool is_skipped(const plan::Op& op) const;
    void prepare(const plan::Op& op);
    std::byte* address(const plan::Arg& arg) const;
    std::vector<std::int64_t> elements_by_member(const plan::Arg& counts, std::size_t members,
                                                 std::int64_t row) const;
    device::StreamIndex index(plan::Stream stream) const {
        return streams_[static_cast<std::size_t>(stream)];
    }

    int rank_;
    Shared& shared_;
    const plan::BufferId product_workspaces_;
    HostCalls calls_;
    const Streams streams_;
    const device::KernelContext context_, expert_context_;  // for experts' parameters: the latter
    RankTrace trace_;
    device::Launch launch_;  // the latest launch
    std::int64_t step_ = 0;
    double lr_ = 0, file_wait_s_ = 0;
    std::optional<LossScaler> scaler_;
    bool overflowed_ = false;  // in this step
};

}  // namespace shardscope::trainer::executor
