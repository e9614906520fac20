// A device with files: adds MemorySpace::disk and the two streams of files to another device, which has
// everything else. Knows nothing of Plans of steps, modules or sharding, as its neighbours.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/device/device.h"
#include "trainer/disk/disk_files.h"
#include "trainer/disk/disk_streams.h"

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer::executor {

struct FileDeviceOptions {
    std::string folder;                      // memory.nvme
    profiler::Recorder* recorder = nullptr;  // null: nothing is recorded
    collective::Delays* delays = nullptr;    // null: none
    // Where the system has them; tests do without.
    bool uring = true, direct = true;
};

class FileDevice final : public device::Device {
  public:
    // Throws DeviceError if no file can be made in the folder.
    FileDevice(std::unique_ptr<device::Device> device, const FileDeviceOptions& options);
    ~FileDevice() override { stop(); }

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
    bool host_reads(plan::MemorySpace space) const override {
        return space != plan::MemorySpace::disk && device_->host_reads(space);
    }
    void copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) override;
    void use_product_workspaces(int rank, std::byte* both, std::int64_t bytes) override {
        device_->use_product_workspaces(rank, both, bytes);
    }

    void describe(traces::schema::RankRow& row) const override { device_->describe(row); }
    const char* engine() const override { return device_->engine(); }
    bool records_collectives() const override { return device_->records_collectives(); }
    bool announces_collectives() const override { return device_->announces_collectives(); }
    std::int64_t bytes_in_use(int rank) override { return device_->bytes_in_use(rank); }
    std::int64_t memory_for(int rank, std::int64_t reserved) override {
        return device_->memory_for(rank, reserved);
    }
    std::string out_of_memory_place(int rank, plan::MemorySpace space) override;
    std::string waiting() override { return device_->waiting(); }
    void fail(std::exception_ptr error) override;
    void stop() override;

  private:
    disk::DiskHooks hooks();
    void failed(const disk::DiskTransfer& transfer, const std::string& reason);
    device::Waits own_waits(device::StreamIndex stream, const device::Waits& waits);
    void fill(std::byte* data, std::int64_t bytes);

    std::unique_ptr<device::Device> device_;
    profiler::Recorder* recorder_;
    profiler::ThreadLog* log_ = nullptr;  // of the streams' thread
    std::optional<disk::DiskFiles> files_;
    std::vector<int> ranks_;             // by stream of files
    std::atomic<int> shortage_{ENOSPC};  // why a file found no room, an errno
    std::optional<disk::DiskStreams> streams_;
};

}  // namespace shardscope::trainer::executor
