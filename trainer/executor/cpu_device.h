// The CPU as a device: one pool of workers carries out the streams of this process's ranks, and every space
// is the process's own memory. The `local` process group carries out collectives, or, between processes, a
// ProcessGroup.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "trainer/collective/delays.h"
#include "trainer/comm/process_group.h"
#include "trainer/device/device.h"
#include "trainer/executor/local_group.h"
#include "trainer/executor/scheduler.h"

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer::executor {

class LiveBoard;

struct CpuDeviceOptions {
    int workers = 1;
    profiler::Recorder* recorder = nullptr;      // null: nothing is recorded
    LiveBoard* live = nullptr;                   // null: nobody can watch the run
    std::chrono::microseconds transfer_delay{};  // see TestSettings
    collective::Delays* delays = nullptr;        // null: none
    // Bytes of address space that must stay free when a buffer is allocated: a BLAS that cannot allocate its
    // own buffers spins for ever.
    std::int64_t headroom = 0;
    // The process has a core to itself: the process group may poll for messages without a pause while no
    // worker has anything to do.
    bool own_core = false;
};

class CpuDevice final : public device::Device {
  public:
    // Returns when the workers run. `group` carries out the collectives; null: all ranks are in this process.
    CpuDevice(const plan::Mesh& mesh, const CpuDeviceOptions& options,
              std::unique_ptr<comm::ProcessGroup> group = nullptr);
    ~CpuDevice() override { stop(); }

    device::StreamIndex add_stream(int rank, plan::Stream use) override;
    device::StreamEvent enqueue(device::StreamIndex stream, const device::Waits& waits,
                                const device::Launch& launch) override;
    device::StreamEvent enqueue(device::StreamIndex stream, const device::Waits& waits,
                                const device::CollectiveLaunch& collective) override;
    device::StreamEvent mark(device::StreamIndex stream, const device::Waits& waits) override;
    device::StreamEvent poison(device::StreamIndex stream, const device::Waits& waits, std::byte* data,
                               std::int64_t bytes) override;
    void hold(device::StreamEvent) override {}
    bool happened(device::StreamEvent event) override { return scheduler_.happened(event); }
    void wait(device::StreamEvent event) override { scheduler_.wait(event); }

    std::byte* take(int rank, plan::MemorySpace space, std::int64_t bytes, bool poisoned) override;
    void give_back(int rank, plan::MemorySpace space, std::byte* data) noexcept override;
    bool host_reads(plan::MemorySpace) const override { return true; }
    void copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) override;
    void use_product_workspaces(int, std::byte*, std::int64_t) override {}  // OpenBLAS has its own

    void describe(traces::schema::RankRow& row) const override;
    const char* engine() const override { return group_ ? group_->name() : "local"; }
    bool records_collectives() const override { return true; }
    std::int64_t bytes_in_use(int) override { return -1; }
    std::string out_of_memory_place(int rank, plan::MemorySpace space) override;
    std::string waiting() override { return group_ ? group_->waiting() : ""; }
    void fail(std::exception_ptr error) override;
    void stop() override;

    Scheduler& scheduler() { return scheduler_; }  // for tests

  private:
    // A launch that a worker has or will have.
    struct InFlight {
        device::Launch launch;
        device::StreamEvent event;
    };
    // The records of one stream, used by its rank's host thread. They are reused in the order of the stream,
    // so that enqueuing allocates nothing once a run is warm.
    using Launches = std::deque<std::unique_ptr<InFlight>>;  // the oldest first

    InFlight& in_flight(device::StreamIndex stream);
    device::StreamEvent meet(device::StreamIndex stream, const device::Waits& waits,
                             const device::CollectiveLaunch& collective);
    device::StreamEvent begin(device::StreamIndex stream, const device::Waits& waits,
                              const device::CollectiveLaunch& collective);
    void end(device::StreamIndex stream, const device::CollectiveLaunch& collective, profiler::Ticks arrived,
             const std::exception_ptr& error);
    void run(const device::Launch& launch, int worker);
    LiveCollective live_of(device::StreamIndex stream, const device::CollectiveLaunch& collective) const;
    int rank_of(device::StreamIndex stream) const { return ranks_[static_cast<std::size_t>(stream)]; }
    profiler::ThreadLog& log_of(int worker) { return *worker_logs_[static_cast<std::size_t>(worker)]; }

    CpuDeviceOptions options_;
    LocalGroups groups_;
    std::unique_ptr<comm::ProcessGroup> group_;
    profiler::ThreadLog* group_log_ = nullptr;       // of the group's thread
    std::vector<profiler::ThreadLog*> worker_logs_;  // by worker, once they have started
    std::deque<Launches> launches_;                  // by stream; a deque: add_stream moves none
    std::vector<int> ranks_;                         // by stream
    Scheduler scheduler_;
};

}  // namespace shardscope::trainer::executor
