#include "trainer/executor/cpu_device.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <sys/mman.h>

#include "profiler/recorder/recorder.h"
#include "traces/store/machine.h"
#include "trainer/executor/cpu_kernels.h"
#include "trainer/executor/host_memory.h"
#include "trainer/executor/live_board.h"

namespace shardscope::trainer::executor {

namespace {

using profiler::Ticks;
using profiler::ticks;

constexpr int kPoison = 0xFF;  // all bits set: a NaN in fp32, bf16 and fp64

}  // namespace

void execute(const device::Launch& launch) {
    const plan::Op& op = *launch.op;
    const auto bytes = static_cast<std::size_t>(op.args.empty() ? 0 : op.args[0].bytes);
    switch (op.kind) {
        case plan::OpKind::kernel:
            return run_kernel(op, launch.data, launch.context);
        case plan::OpKind::memcpy:
            std::memcpy(launch.data[0], launch.data[1], bytes);
            return;
        case plan::OpKind::memset:
            std::memset(launch.data[0], op.value(), bytes);
            return;
        default:
            throw std::logic_error("an operation that is not device work was enqueued");
    }
}

CpuDevice::CpuDevice(const plan::Mesh& mesh, const CpuDeviceOptions& options,
                     std::unique_ptr<comm::ProcessGroup> group)
    : options_(options),
      groups_(mesh, options.transfer_delay, options.delays),
      group_(std::move(group)),
      worker_logs_(static_cast<std::size_t>(options.workers), nullptr),
      scheduler_(options.workers, [this](int worker) {
          if (options_.recorder) {
              worker_logs_[static_cast<std::size_t>(worker)] =
                  options_.recorder->attach_thread(fmt::format("worker {}", worker), -1);
          }
      }) {
    if (group_ && options.own_core) group_->look_while([this] { return scheduler_.resting(); });
}

// --- streams ---------------------------------------------------------------------------------------------

device::StreamIndex CpuDevice::add_stream(int rank, plan::Stream /*use*/) {
    launches_.emplace_back();
    ranks_.push_back(rank);
    return scheduler_.add_stream(rank);
}

// A record that no worker uses any more; its launch is an earlier one.
CpuDevice::InFlight& CpuDevice::in_flight(device::StreamIndex stream) {
    Launches& launches = launches_[static_cast<std::size_t>(stream)];
    if (launches.empty() || !scheduler_.happened(launches.front()->event)) {
        return *launches.emplace_back(std::make_unique<InFlight>());
    }
    launches.push_back(std::move(launches.front()));
    launches.pop_front();
    return *launches.back();
}

device::StreamEvent CpuDevice::enqueue(device::StreamIndex stream, const device::Waits& waits,
                                       const device::Launch& launch) {
    InFlight& own = in_flight(stream);
    own.launch = launch;
    const Priority priority = launch.op->kind == plan::OpKind::kernel ? Priority::compute : Priority::copy;
    own.event = scheduler_.enqueue(
        stream, priority, waits, [this, &own](int worker) { run(own.launch, worker); }, launch.op->exclusive);
    return own.event;
}

// Called on a worker.
void CpuDevice::run(const device::Launch& launch, int worker) {
    if (options_.delays) options_.delays->maybe_sleep();
    if (!options_.recorder) return execute(launch);
    const Ticks start = ticks();
    execute(launch);
    const Ticks end = ticks();
    switch (launch.op->kind) {
        case plan::OpKind::kernel:
            return log_of(worker).kernel(start, end, launch.work);
        case plan::OpKind::memcpy:
            return log_of(worker).memcpy(start, end, launch.work);
        default:
            return log_of(worker).memset(start, end, launch.work);
    }
}

device::StreamEvent CpuDevice::enqueue(device::StreamIndex stream, const device::Waits& waits,
                                       const device::CollectiveLaunch& collective) {
    return group_ ? begin(stream, waits, collective) : meet(stream, waits, collective);
}

LiveCollective CpuDevice::live_of(device::StreamIndex stream,
                                  const device::CollectiveLaunch& collective) const {
    return options_.live->collective(rank_of(stream), collective.communicator, collective.sequence,
                                     collective.call.operation);
}

// A collective among the ranks of this process.
device::StreamEvent CpuDevice::meet(device::StreamIndex stream, const device::Waits& waits,
                                    const device::CollectiveLaunch& collective) {
    const auto part = static_cast<std::size_t>(collective.place);
    auto meeting =
        groups_.of(collective.communicator).join(collective.place, collective.sequence, collective.call);
    const plan::Operation operation = collective.call.operation;
    if (options_.live) meeting->show(part, live_of(stream, collective));
    if (collective.recorded) {
        // The kernel's time is from this rank's arrival to its own data in place; an all_reduce's is in place
        // when all parts are done, because each part writes to every rank.
        const bool ends_together =
            operation == plan::Operation::all_reduce || operation == plan::Operation::barrier;
        meeting->on_part_complete(
            part, [this, kernel = collective.kernel, row = collective.row, ends_together](
                      Ticks arrived, Ticks own_end, Ticks last_end, int worker) {
                log_of(worker).kernel(arrived, ends_together ? last_end : own_end, kernel);
                log_of(worker).collective(row);
            });
    }
    return scheduler_.enqueue_arrival(stream, waits, std::move(meeting), part);
}

// A collective among processes. The kernel's time is from this rank's arrival to its own data in place.
device::StreamEvent CpuDevice::begin(device::StreamIndex stream, const device::Waits& waits,
                                     const device::CollectiveLaunch& collective) {
    return scheduler_.enqueue_elsewhere(stream, waits, [this, stream, collective](int) {
        const Ticks arrived = collective.recorded || options_.live ? ticks() : Ticks();
        if (options_.live) live_of(stream, collective).enter(arrived);
        group_->begin(collective, [this, stream, collective, arrived](const std::exception_ptr& error) {
            end(stream, collective, arrived, error);
        });
    });
}

// Called on the group's thread.
void CpuDevice::end(device::StreamIndex stream, const device::CollectiveLaunch& collective, Ticks arrived,
                    const std::exception_ptr& error) {
    if (error) return scheduler_.fail(error);
    if (options_.live) live_of(stream, collective).leave(ticks());
    try {
        if (collective.recorded) {
            if (!group_log_) group_log_ = options_.recorder->attach_thread("communication", -1);
            group_log_->kernel(arrived, ticks(), collective.kernel);
            group_log_->collective(collective.row);
        }
    } catch (...) {  // no memory for the thread's log
        return scheduler_.fail(std::current_exception());
    }
    scheduler_.end_elsewhere(stream);
}

device::StreamEvent CpuDevice::mark(device::StreamIndex stream, const device::Waits& waits) {
    return scheduler_.enqueue(stream, Priority::communication, waits, [](int) {});
}

device::StreamEvent CpuDevice::poison(device::StreamIndex stream, const device::Waits& waits, std::byte* data,
                                      std::int64_t bytes) {
    return scheduler_.enqueue(stream, Priority::copy, waits, [data, bytes](int) {
        std::memset(data, kPoison, static_cast<std::size_t>(bytes));
    });
}

// --- memory ----------------------------------------------------------------------------------------------

std::byte* CpuDevice::take(int /*rank*/, plan::MemorySpace /*space*/, std::int64_t bytes, bool poisoned) {
    const auto size = static_cast<std::size_t>(bytes);
    std::byte* data = take_host_memory(size);
    if (data && options_.headroom > 0) {
        const auto headroom = static_cast<std::size_t>(options_.headroom);
        void* probe = ::mmap(nullptr, headroom, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (probe == MAP_FAILED) {
            give_back_host_memory(data);
            return nullptr;
        }
        ::munmap(probe, headroom);
    }
    // The pages are touched here, not inside a kernel.
    if (data) std::memset(data, poisoned ? kPoison : 0, size);
    return data;
}

void CpuDevice::give_back(int /*rank*/, plan::MemorySpace /*space*/, std::byte* data) noexcept {
    give_back_host_memory(data);
}

void CpuDevice::copy(int /*rank*/, std::byte* to, const std::byte* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// --- the run ---------------------------------------------------------------------------------------------

void CpuDevice::describe(traces::schema::RankRow& row) const {
    row.device_name = traces::store::processor_name() + " (cpu device)";
    row.device_memory = traces::store::physical_memory();
}

void CpuDevice::fail(std::exception_ptr error) {
    scheduler_.fail(error);
    if (group_) group_->fail(std::move(error));
}

void CpuDevice::stop() {
    scheduler_.stop();
    if (group_) group_->stop();
}

std::string CpuDevice::out_of_memory_place(int /*rank*/, plan::MemorySpace /*space*/) {
    return "into the memory that the system gives this process (ulimit -v)";
}

}  // namespace shardscope::trainer::executor
