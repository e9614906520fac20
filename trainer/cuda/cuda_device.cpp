#include "trainer/cuda/cuda_device.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "trainer/cuda/groups.h"
#include "trainer/cuda/kernels.h"

namespace shardscope::trainer::cuda {

namespace {

constexpr int kPoison = 0xFF;  // all bits set: a NaN in fp32, bf16 and fp64

// Reports a piece of work to `marks`, which may be null, from construction to the end of the scope.
class Marked {
  public:
    Marked(device::WorkMarks* marks, const profiler::DeviceWork& work) : marks_(marks) {
        if (marks_) marks_->begin(work);
    }
    ~Marked() {
        if (marks_) marks_->end();
    }
    Marked(const Marked&) = delete;
    Marked& operator=(const Marked&) = delete;

  private:
    device::WorkMarks* marks_;
};

}  // namespace

CudaDevice::CudaDevice(const device::DeviceSettings& settings, const NcclLibrary* nccl)
    : settings_(settings), gpus_(find_gpus()), ranks_(static_cast<std::size_t>(settings.mesh.ranks)) {
    if (settings_.ranks.empty()) {
        for (int rank = 0; rank < settings_.mesh.ranks; ++rank) settings_.ranks.push_back(rank);
    }
    const auto first = static_cast<std::size_t>(settings_.bootstrap ? settings_.local_rank : 0);
    const auto sharing = static_cast<std::size_t>(settings_.ranks_per_device);
    if (sharing > 1 && settings_.ranks.size() > sharing * gpus_.size()) {
        throw CudaError(
            fmt::format("run.ranks_per_device: {} ranks, {} on each GPU, need {} GPUs, and there "
                        "{} {}; put more ranks on each, or start fewer",
                        settings_.ranks.size(), sharing, settings_.ranks.size() / sharing,
                        gpus_.size() == 1 ? "is" : "are", gpus_.size()));
    }
    for (std::size_t i = 0; i < settings_.ranks.size(); ++i) {
        add_rank(settings_.ranks[i], gpus_[(first + i) / sharing % gpus_.size()]);
    }
    std::vector<const Gpu*> gpus;
    gpus.reserve(ranks_.size());
    for (const auto& rank : ranks_) gpus.push_back(rank ? rank->gpu : nullptr);
    groups_ = make_groups(settings_, gpus, nccl);
    for (const auto& group : groups_) {
        group->watch([this](std::exception_ptr error) { fail(std::move(error)); });
    }
}

CudaDevice::~CudaDevice() {
    stop();
    for (const auto& group : groups_) group->end_watch();  // no callback reaches this object any more
    groups_.clear();
    streams_.clear();
    for (const auto& rank : ranks_) {
        if (!rank) continue;
        cudaSetDevice(rank->gpu->ordinal);
        rank->gemm.reset();
        if (rank->aside) cudaStreamDestroy(rank->aside);
    }
}

void CudaDevice::add_rank(int rank, const Gpu& gpu) {
    auto& own = ranks_.at(static_cast<std::size_t>(rank));
    own = std::make_unique<Rank>();
    own->gpu = &gpu;
    enter(*own);
    own->gemm = std::make_unique<Gemm>(settings_.tf32);
    check(cudaStreamCreateWithFlags(&own->aside, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

CudaDevice::Rank& CudaDevice::here(int rank) const {
    const auto& found = ranks_.at(static_cast<std::size_t>(rank));
    if (!found) throw std::logic_error(fmt::format("rank {} is of another process", rank));
    return *found;
}

// Not cached: groups and NCCL set the thread's GPU too, so only the runtime knows it.
void CudaDevice::enter(const Rank& rank) {
    check(cudaSetDevice(rank.gpu->ordinal), "cudaSetDevice");
}

CudaDevice::Rank& CudaDevice::enter(int rank) const {
    Rank& found = here(rank);
    enter(found);
    return found;
}

// --- streams ---------------------------------------------------------------------------------------------

device::StreamIndex CudaDevice::add_stream(int rank, plan::Stream use) {
    Rank& of = enter(rank);
    StreamOf& own = streams_.emplace_back();
    own.rank = &of;
    // As in PyTorch's FSDP: all streams except the default one have high priority.
    own.stream = std::make_unique<CountedStream>(use != plan::Stream::compute);
    own.workspace = std::make_unique<Workspace>(own.stream->get());
    return static_cast<device::StreamIndex>(streams_.size()) - 1;
}

CudaDevice::StreamOf& CudaDevice::enter_stream(device::StreamIndex stream, const device::Waits& waits) {
    throw_if_failed();
    StreamOf& own = streams_[static_cast<std::size_t>(stream)];
    enter(*own.rank);
    for (const device::StreamEvent& event : waits.events()) {
        if (event.stream == stream) continue;
        cudaEvent_t happens =
            streams_[static_cast<std::size_t>(event.stream)].stream->event_of(event.sequence);
        if (happens) check(cudaStreamWaitEvent(own.stream->get(), happens, 0), "cudaStreamWaitEvent");
    }
    return own;
}

device::StreamEvent CudaDevice::appended(device::StreamIndex stream) {
    return {stream, streams_[static_cast<std::size_t>(stream)].stream->appended()};
}

device::StreamEvent CudaDevice::enqueue(device::StreamIndex stream, const device::Waits& waits,
                                        const device::Launch& launch) {
    const StreamOf& own = enter_stream(stream, waits);
    const Marked marked(settings_.marks, launch.work);
    launch_work(own, launch);
    return appended(stream);
}

void CudaDevice::launch_work(const StreamOf& own, const device::Launch& launch) {
    const plan::Op& op = *launch.op;
    const auto bytes = static_cast<std::size_t>(op.args.empty() ? 0 : op.args[0].bytes);
    const cudaStream_t stream = own.stream->get();
    switch (op.kind) {
        case plan::OpKind::kernel: {
            const DeviceContext context{stream, *own.workspace, *own.rank->gemm};
            return launch_kernel(op, launch.data, launch.context, context);
        }
        case plan::OpKind::memcpy:
            return check(cudaMemcpyAsync(launch.data[0], launch.data[1], bytes, cudaMemcpyDefault, stream),
                         "cudaMemcpyAsync");
        case plan::OpKind::memset:
            return check(cudaMemsetAsync(launch.data[0], op.value(), bytes, stream), "cudaMemsetAsync");
        default:
            throw std::logic_error("an operation that is not device work was enqueued");
    }
}

device::StreamEvent CudaDevice::enqueue(device::StreamIndex stream, const device::Waits& waits,
                                        const device::CollectiveLaunch& collective) {
    const StreamOf& own = enter_stream(stream, waits);
    const Marked marked(collective.recorded ? settings_.marks : nullptr, collective.kernel);
    groups_[static_cast<std::size_t>(collective.communicator)]->enqueue(collective, *own.stream);
    return appended(stream);
}

device::StreamEvent CudaDevice::mark(device::StreamIndex stream, const device::Waits& waits) {
    enter_stream(stream, waits);
    return appended(stream);
}

device::StreamEvent CudaDevice::poison(device::StreamIndex stream, const device::Waits& waits,
                                       std::byte* data, std::int64_t bytes) {
    const StreamOf& own = enter_stream(stream, waits);
    check(cudaMemsetAsync(data, kPoison, static_cast<std::size_t>(bytes), own.stream->get()),
          "cudaMemsetAsync");
    return appended(stream);
}

void CudaDevice::hold(device::StreamEvent event) {
    if (event.stream < 0) return;
    streams_[static_cast<std::size_t>(event.stream)].stream->hold(event.sequence);
}

bool CudaDevice::happened(device::StreamEvent event) {
    if (event.stream < 0 || event.sequence == 0) return true;
    return streams_[static_cast<std::size_t>(event.stream)].stream->happened(event.sequence);
}

// Not cudaEventSynchronize: a failure elsewhere must end the wait.
void CudaDevice::wait(device::StreamEvent event) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    while (true) {
        throw_if_failed();
        if (happened(event)) return;
        // Spins at first, to notice the end of a step with little delay, then sleeps, to keep no core busy.
        if (Clock::now() - begin < std::chrono::microseconds(200)) continue;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

// --- memory ----------------------------------------------------------------------------------------------

std::byte* CudaDevice::take(int rank, plan::MemorySpace space, std::int64_t bytes, bool poisoned) {
    const Rank& on = enter(rank);
    const auto size = static_cast<std::size_t>(bytes);
    void* data = nullptr;
    // Host buffers are pinned too, because batches are copied from them to the device.
    const cudaError_t result = space == plan::MemorySpace::device
                                   ? cudaMalloc(&data, size)
                                   : cudaHostAlloc(&data, size, cudaHostAllocPortable);
    if (result == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return nullptr;
    }
    check(result, space == plan::MemorySpace::device ? "cudaMalloc" : "cudaHostAlloc");
    if (poisoned) {
        check(cudaMemsetAsync(data, kPoison, size, on.aside), "cudaMemsetAsync");
        check(cudaStreamSynchronize(on.aside), "cudaStreamSynchronize");
    }
    return static_cast<std::byte*>(data);
}

void CudaDevice::give_back(int rank, plan::MemorySpace space, std::byte* data) noexcept {
    cudaSetDevice(here(rank).gpu->ordinal);
    if (space == plan::MemorySpace::device) {
        cudaFree(data);
    } else {
        cudaFreeHost(data);
    }
}

void CudaDevice::copy(int rank, std::byte* to, const std::byte* from, std::int64_t bytes) {
    const Rank& on = enter(rank);
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, on.aside),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(on.aside), "cudaStreamSynchronize");
}

void CudaDevice::use_product_workspaces(int rank, std::byte* both, std::int64_t bytes) {
    enter(rank).gemm->use_workspaces(both, bytes);
}

std::int64_t CudaDevice::bytes_in_use(int rank) {
    enter(rank);
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(total - free);
}

// Memory of the GPU that others use, including other ranks, is not available.
std::int64_t CudaDevice::memory_for(int rank, std::int64_t reserved) {
    const std::int64_t used = bytes_in_use(rank);
    return used < 0 ? reserved : std::max(reserved, here(rank).gpu->memory - used + reserved);
}

std::string CudaDevice::out_of_memory_place(int rank, plan::MemorySpace space) {
    const Gpu& gpu = *here(rank).gpu;
    if (space != plan::MemorySpace::device)
        return "into the memory of the host that can be pinned (ulimit -l)";
    return fmt::format("into the {} bytes of GPU {} ({}), of which {} are in use", gpu.memory, gpu.ordinal,
                       gpu.name, bytes_in_use(rank));
}

// --- the run ---------------------------------------------------------------------------------------------

void CudaDevice::describe(traces::schema::RankRow& row) const {
    const Gpu& gpu = *here(row.rank).gpu;
    row.device_name = gpu.name;
    row.device_memory = gpu.memory;
}

std::string CudaDevice::waiting() {
    for (const auto& group : groups_) {
        std::string clause = group->waiting();
        if (!clause.empty()) return clause;
    }
    return {};
}

void CudaDevice::fail(std::exception_ptr error) {
    {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = error;
        failed_ = true;
    }
    for (const auto& group : groups_) group->fail(error);
}

void CudaDevice::throw_if_failed() {
    if (!failed_) return;
    const std::lock_guard lock(error_mutex_);
    std::rethrow_exception(error_);
}

void CudaDevice::stop() {
    if (std::exchange(stopped_, true)) return;
    // After a failure the groups have aborted everything that would never end; the rest ends or fails.
    for (const StreamOf& each : streams_) {
        cudaSetDevice(each.rank->gpu->ordinal);
        cudaStreamSynchronize(each.stream->get());
    }
}

}  // namespace shardscope::trainer::cuda
