#include "trainer/executor/file_device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "profiler/recorder/recorder.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/run.h"

namespace shardscope::trainer::executor {

namespace {

using disk::DiskStreams;

constexpr int kPoisonByte = 0xFF;  // all bits set: a NaN in fp32, bf16 and fp64
constexpr std::int64_t kCopyBytes = 4 << 20;

std::unique_ptr<disk::DiskIo> make_io(bool uring) {
    std::unique_ptr<disk::DiskIo> io = uring ? disk::make_uring_io() : nullptr;
    return io ? std::move(io) : disk::make_threaded_io();
}

}  // namespace

FileDevice::FileDevice(std::unique_ptr<device::Device> device, const FileDeviceOptions& options)
    : device_(std::move(device)), recorder_(options.recorder) {
    try {
        files_.emplace(options.folder, options.direct);
    } catch (const std::system_error& error) {
        throw DeviceError(
            fmt::format("memory.nvme: no file can be made in the folder {} ({}); create it, or name one that "
                        "this user may write to",
                        options.folder, error.code().message()));
    }
    streams_.emplace(make_io(options.uring), hooks(), options.delays);
}

disk::DiskHooks FileDevice::hooks() {
    return {
        [this](const disk::DiskTransfer& transfer, profiler::Ticks start, profiler::Ticks end) {
            if (!recorder_) return;
            if (!log_) log_ = recorder_->attach_thread("files", -1);
            log_->memcpy(start, end, transfer.work);
        },
        [this](const disk::DiskTransfer& transfer, const std::string& reason) { failed(transfer, reason); }};
}

// --- streams ---------------------------------------------------------------------------------------------

device::StreamIndex FileDevice::add_stream(int rank, plan::Stream use) {
    if (!is_disk_stream(use)) return device_->add_stream(rank, use);
    ranks_.push_back(rank);
    return streams_->add_stream();
}

// Streams of files cannot wait for the device's, nor these for them: the host does.
device::Waits FileDevice::own_waits(device::StreamIndex stream, const device::Waits& waits) {
    device::Waits own;
    for (const device::StreamEvent event : waits.events()) {
        if (DiskStreams::has(event.stream) == DiskStreams::has(stream)) {
            own.add(event);
        } else {
            wait(event);
        }
    }
    return own;
}

device::StreamEvent FileDevice::enqueue(device::StreamIndex stream, const device::Waits& waits,
                                        const device::Launch& launch) {
    const device::Waits own = own_waits(stream, waits);
    if (!DiskStreams::has(stream)) return device_->enqueue(stream, own, launch);
    disk::DiskTransfer transfer;
    const disk::DiskFile* target = files_->find(launch.data[0]);
    transfer.file = target ? target : files_->find(launch.data[1]);
    if (!transfer.file) throw std::logic_error("a stream of files was given a copy without one");
    transfer.writes = target != nullptr;
    transfer.memory = launch.data[target ? 1 : 0];
    transfer.offset = transfer.file->offset_of(launch.data[target ? 0 : 1]);
    transfer.bytes = launch.op->args[0].bytes;
    transfer.rank = ranks_[static_cast<std::size_t>(stream - DiskStreams::kFirst)];
    transfer.step = launch.context.step;
    transfer.work = launch.work;
    return streams_->enqueue(stream, own, transfer);
}

device::StreamEvent FileDevice::enqueue(device::StreamIndex stream, const device::Waits& waits,
                                        const device::CollectiveLaunch& collective) {
    return device_->enqueue(stream, own_waits(stream, waits), collective);
}

device::StreamEvent FileDevice::mark(device::StreamIndex stream, const device::Waits& waits) {
    const device::Waits own = own_waits(stream, waits);
    return DiskStreams::has(stream) ? streams_->enqueue(stream, own, {}) : device_->mark(stream, own);
}

device::StreamEvent FileDevice::poison(device::StreamIndex stream, const device::Waits& waits,
                                       std::byte* data, std::int64_t bytes) {
    const device::Waits own = own_waits(stream, waits);
    if (!files_->find(data)) return device_->poison(stream, own, data, bytes);
    for (const device::StreamEvent event : own.events()) wait(event);
    fill(data, bytes);
    return {};
}

void FileDevice::hold(device::StreamEvent event) {
    if (!DiskStreams::has(event.stream)) device_->hold(event);
}

bool FileDevice::happened(device::StreamEvent event) {
    return DiskStreams::has(event.stream) ? streams_->happened(event) : device_->happened(event);
}

void FileDevice::wait(device::StreamEvent event) {
    DiskStreams::has(event.stream) ? streams_->wait(event) : device_->wait(event);
}

// --- memory ----------------------------------------------------------------------------------------------

// A file begins as zeros, as the optimizer's state does: it is never poisoned.
std::byte* FileDevice::take(int rank, plan::MemorySpace space, std::int64_t bytes, bool poisoned) {
    if (space != plan::MemorySpace::disk) return device_->take(rank, space, bytes, poisoned);
    std::byte* data = nullptr;
    try {
        data = files_->take(bytes);
    } catch (const std::system_error& error) {
        const int number = error.code().value();
        shortage_ = number;
        if (number == ENOSPC || number == EDQUOT || number == EFBIG) return nullptr;
        throw RunError(
            fmt::format("rank {}: memory.nvme: no file of {} bytes can be made in the folder {} ({})", rank,
                        bytes, files_->folder(), error.code().message()));
    }
    return data;
}

void FileDevice::give_back(int rank, plan::MemorySpace space, std::byte* data) noexcept {
    if (space != plan::MemorySpace::disk) return device_->give_back(rank, space, data);
    files_->give_back(data);
}

// Through memory of the host, on this thread.
void FileDevice::copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) {
    const disk::DiskFile *source = files_->find(from), *target = files_->find(to);
    if (!source && !target) return device_->copy(rank, to, from, bytes);
    std::vector<std::byte> part(static_cast<std::size_t>(std::min(bytes, kCopyBytes)));
    try {
        for (std::int64_t done = 0; done < bytes;) {
            const std::int64_t count = std::min(bytes - done, kCopyBytes);
            if (source) {
                source->read(part.data(), source->offset_of(from + done), count);
            } else {
                device_->copy(rank, part.data(), from + done, count);
            }
            if (target) {
                target->write(part.data(), target->offset_of(to + done), count);
            } else {
                device_->copy(rank, to + done, part.data(), count);
            }
            done += count;
        }
    } catch (const std::system_error& error) {
        throw RunError(fmt::format("rank {}: cannot copy {} bytes {} a file in {} (memory.nvme): {}", rank,
                                   bytes, target ? "into" : "out of", files_->folder(),
                                   error.code().message()));
    }
}

void FileDevice::fill(std::byte* data, std::int64_t bytes) {
    const std::vector<std::byte> part(static_cast<std::size_t>(std::min(bytes, kCopyBytes)),
                                      std::byte{kPoisonByte});
    const disk::DiskFile& file = *files_->find(data);
    for (std::int64_t done = 0; done < bytes; done += kCopyBytes)
        file.write(part.data(), file.offset_of(data + done), std::min(bytes - done, kCopyBytes));
}

// --- the run ---------------------------------------------------------------------------------------------

std::string FileDevice::out_of_memory_place(int rank, plan::MemorySpace space) {
    if (space != plan::MemorySpace::disk) return device_->out_of_memory_place(rank, space);
    return fmt::format("into a file in {} (memory.nvme), where {} bytes are free ({})", files_->folder(),
                       files_->free_bytes(), std::generic_category().message(shortage_));
}

void FileDevice::failed(const disk::DiskTransfer& transfer, const std::string& reason) {
    const std::string where =
        transfer.file ? fmt::format("step {}, rank {}: ", transfer.step, transfer.rank) : "";
    fail(std::make_exception_ptr(
        RunError(fmt::format("{}{} in {} (memory.nvme); check the disk, then resume from the last checkpoint",
                             where, reason, files_->folder()))));
}

void FileDevice::fail(std::exception_ptr error) {
    device_->fail(error);
    streams_->fail(std::move(error));
}

void FileDevice::stop() {
    streams_->stop();
    device_->stop();
}

}  // namespace shardscope::trainer::executor
