// CUDA devices as a Device: each rank's streams are CUDA streams of one GPU, its memory is that GPU's and
// pinned memory of the host, its collectives are run by a Group. The rank's own host thread enqueues work as
// it walks the Plan; nothing here runs on a thread of its own.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/cuda/device.h"
#include "trainer/cuda/gemm.h"
#include "trainer/cuda/gpus.h"
#include "trainer/cuda/group.h"
#include "trainer/cuda/nccl_library.h"
#include "trainer/cuda/stream.h"
#include "trainer/device/cuda_interface.h"

namespace shardscope::trainer::cuda {

class CudaDevice final : public device::Device {
  public:
    // Rank r is on GPU r modulo the number of GPUs; in a job of several processes, the ranks of this one are
    // on the GPUs from its local rank on. `nccl`: null for the installed library, opened if it is needed.
    // Throws CudaError if there is no GPU or it cannot be used as requested, and whatever the bootstrap
    // throws.
    explicit CudaDevice(const device::DeviceSettings& settings, const NcclLibrary* nccl = nullptr);
    ~CudaDevice() override;

    device::StreamIndex add_stream(int rank, plan::Stream use) override;
    device::StreamEvent enqueue(device::StreamIndex stream, const device::Waits& waits,
                                const device::Launch& launch) override;
    device::StreamEvent enqueue(device::StreamIndex stream, const device::Waits& waits,
                                const device::CollectiveLaunch& collective) override;
    device::StreamEvent mark(device::StreamIndex stream, const device::Waits& waits) override;
    device::StreamEvent poison(device::StreamIndex stream, const device::Waits& waits, std::byte* data,
                               std::int64_t bytes) override;
    void hold(device::StreamEvent event) override;
    bool happened(device::StreamEvent event) override;
    void wait(device::StreamEvent event) override;

    std::byte* take(int rank, plan::MemorySpace space, std::int64_t bytes, bool poisoned) override;
    void give_back(int rank, plan::MemorySpace space, std::byte* data) noexcept override;
    bool host_reads(plan::MemorySpace space) const override { return space != plan::MemorySpace::device; }
    void copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) override;
    void use_product_workspaces(int rank, std::byte* both, std::int64_t bytes) override;

    void describe(traces::schema::RankRow& row) const override;
    bool records_collectives() const override { return false; }
    bool announces_collectives() const override { return groups_.front()->announces(); }
    const char* engine() const override { return groups_.front()->announces() ? "nccl" : "local"; }
    std::string waiting() override;
    std::int64_t bytes_in_use(int rank) override;
    std::int64_t memory_for(int rank, std::int64_t reserved) override;
    std::string out_of_memory_place(int rank, plan::MemorySpace space) override;
    void fail(std::exception_ptr error) override;
    void stop() override;

  private:
    // The state of one rank; only its host thread uses the members that are not const.
    struct Rank {
        const Gpu* gpu = nullptr;
        std::unique_ptr<Gemm> gemm;
        cudaStream_t aside = nullptr;  // for work that the host waits for: copies, initial contents
    };
    struct StreamOf {
        Rank* rank = nullptr;
        std::unique_ptr<CountedStream> stream;
        std::unique_ptr<Workspace> workspace;
    };

    void add_rank(int rank, const Gpu& gpu);
    Rank& here(int rank) const;           // a rank of this process
    static void enter(const Rank& rank);  // makes the rank's GPU the current one of the thread
    Rank& enter(int rank) const;
    StreamOf& enter_stream(device::StreamIndex stream, const device::Waits& waits);
    device::StreamEvent appended(device::StreamIndex stream);
    void launch_work(const StreamOf& stream, const device::Launch& launch);
    void throw_if_failed();

    device::DeviceSettings settings_;
    std::vector<Gpu> gpus_;
    std::vector<std::unique_ptr<Rank>> ranks_;    // by rank; null for a rank of another process
    std::deque<StreamOf> streams_;                // by StreamIndex
    std::vector<std::unique_ptr<Group>> groups_;  // by Mesh::id
    std::atomic<bool> failed_ = false;
    std::mutex error_mutex_;
    std::exception_ptr error_;
    bool stopped_ = false;
};

}  // namespace shardscope::trainer::cuda
