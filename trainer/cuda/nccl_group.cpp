#include "trainer/cuda/nccl_group.h"

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/collective/pieces.h"
#include "trainer/cuda/local_kernels.h"
#include "trainer/cuda/nccl_start.h"

namespace shardscope::trainer::cuda {

namespace {

int type_of(plan::DType dtype) {
    switch (dtype) {
        case plan::DType::fp32:
            return kNcclFloat32;
        case plan::DType::bf16:
            return kNcclBfloat16;
        case plan::DType::fp16:
            return kNcclFloat16;
        case plan::DType::fp64:
            return kNcclFloat64;
        case plan::DType::int32:
            return kNcclInt32;
        case plan::DType::int8:
            break;
    }
    throw std::logic_error("NCCL has no such type");
}

// Divides a sum that NCCL did not average, because the divisor is not the number of members.
void divide(const collective::CollectiveCall& call, std::int64_t elements, cudaStream_t stream) {
    const auto n = static_cast<std::size_t>(elements);
    const double factor = 1.0 / call.divisor;
    switch (call.dtype) {
        case plan::DType::fp32:
            return scale_sum(static_cast<float*>(call.output), n, factor, stream);
        case plan::DType::bf16:
            return scale_sum(static_cast<Bf16*>(call.output), n, factor, stream);
        case plan::DType::fp16:
            return scale_sum(static_cast<Fp16*>(call.output), n, factor, stream);
        case plan::DType::fp64:
            return scale_sum(static_cast<double*>(call.output), n, factor, stream);
        case plan::DType::int32:
        case plan::DType::int8:
            throw std::logic_error("sums of integers are not divided");
    }
}

// Four bytes on a GPU that are summed as a barrier, because NCCL has none.
class Token {
  public:
    explicit Token(int gpu) {
        check(cudaSetDevice(gpu), "cudaSetDevice");
        check(cudaMalloc(&data_, sizeof(float)), "cudaMalloc for a barrier");
        check(cudaMemset(data_, 0, sizeof(float)), "cudaMemset");
    }
    ~Token() { cudaFree(data_); }
    Token(const Token&) = delete;
    Token& operator=(const Token&) = delete;
    void* data() const { return data_; }

  private:
    void* data_ = nullptr;
};

class NcclGroup final : public Group {
  public:
    NcclGroup(const NcclLibrary& nccl, plan::CommunicatorId id, const std::vector<int>& ranks,
              double timeout_s, const NcclPeers* peers)
        : nccl_(nccl), members_(ranks.size()), watchdog_(nccl, id, ranks, timeout_s, peers) {}

    // Adds a member of this process.
    void adopt(const NcclStart::Member& member, NcclComm* comm);
    void watch(const std::function<void(std::exception_ptr)>& on_failure) override {
        watchdog_.start(on_failure);
    }
    void end_watch() override { watchdog_.stop(); }
    void enqueue(const device::CollectiveLaunch& collective, const CountedStream& stream) override;
    void fail(std::exception_ptr error) override { watchdog_.fail(std::move(error)); }
    bool announces() const override { return true; }
    std::string waiting() override { return watchdog_.waiting(); }

  private:
    void issue(const device::CollectiveLaunch& collective, NcclComm* comm, cudaStream_t stream);
    void exchange(const collective::CollectiveCall& call, NcclComm* comm, cudaStream_t stream);

    const NcclLibrary& nccl_;
    std::vector<std::optional<Token>> members_;  // by place; those of this process
    NcclWatchdog watchdog_;
};

void NcclGroup::adopt(const NcclStart::Member& member, NcclComm* comm) {
    const auto place = static_cast<std::size_t>(member.place);
    watchdog_.adopt(place, comm, member.gpu);
    members_[place].emplace(member.gpu);
}

void NcclGroup::issue(const device::CollectiveLaunch& collective, NcclComm* comm, cudaStream_t stream) {
    const collective::CollectiveCall& call = collective.call;
    const int type = type_of(call.dtype);
    const auto members = static_cast<std::int64_t>(members_.size());
    const bool average = call.divisor > 1 && call.divisor == members;
    const int reduction = call.reduction == plan::Reduction::max ? kNcclMax : average ? kNcclAvg : kNcclSum;
    if (call.full_elements % members != 0 && (call.operation == plan::Operation::all_gather ||
                                              call.operation == plan::Operation::reduce_scatter)) {
        throw std::logic_error(
            fmt::format("{} does not divide by the {} ranks of its communicator", describe(call), members));
    }
    const auto each = static_cast<std::size_t>(call.full_elements / members);
    const auto all = static_cast<std::size_t>(call.full_elements);
    std::int64_t summed = 0;  // elements of a sum that this rank receives
    switch (call.operation) {
        case plan::Operation::all_gather:
            nccl_.check(nccl_.AllGather(call.input, call.output, each, type, comm, stream), "ncclAllGather",
                        comm);
            break;
        case plan::Operation::reduce_scatter:
            nccl_.check(nccl_.ReduceScatter(call.input, call.output, each, type, reduction, comm, stream),
                        "ncclReduceScatter", comm);
            summed = call.full_elements / members;
            break;
        case plan::Operation::all_reduce:
            nccl_.check(nccl_.AllReduce(call.input, call.output, all, type, reduction, comm, stream),
                        "ncclAllReduce", comm);
            summed = call.full_elements;
            break;
        case plan::Operation::broadcast:
            nccl_.check(nccl_.Broadcast(call.input, call.output, all, type, 0, comm, stream), "ncclBroadcast",
                        comm);
            break;
        case plan::Operation::barrier: {
            void* const token = members_[static_cast<std::size_t>(collective.place)]->data();
            nccl_.check(nccl_.AllReduce(token, token, 1, kNcclFloat32, kNcclSum, comm, stream),
                        "ncclAllReduce for a barrier", comm);
            break;
        }
        case plan::Operation::all_to_all:
            exchange(call, comm, stream);
            break;
        case plan::Operation::send:
            nccl_.check(nccl_.Send(call.input, all, type, 1, comm, stream), "ncclSend", comm);
            break;
        case plan::Operation::recv:
            nccl_.check(nccl_.Recv(call.output, all, type, 0, comm, stream), "ncclRecv", comm);
            break;
        default:
            throw std::logic_error("the nccl process group has no such collective");
    }
    if (summed > 0 && call.divisor > 1 && !average) divide(call, summed, stream);
}

// A group of messages, which NCCL carries out together.
void NcclGroup::exchange(const collective::CollectiveCall& call, NcclComm* comm, cudaStream_t stream) {
    const int type = type_of(call.dtype);
    const std::int64_t size = size_of(call.dtype);
    const auto* input = static_cast<const std::byte*>(call.input);
    auto* output = static_cast<std::byte*>(call.output);
    nccl_.check(nccl_.GroupStart(), "ncclGroupStart");
    try {
        for (std::size_t m = 0; m < members_.size(); ++m) {
            const auto peer = static_cast<int>(m);
            const collective::ElementRange sent = collective::sent_piece(call, members_.size(), m),
                                           received = collective::received_piece(call, members_.size(), m);
            nccl_.check(nccl_.Send(input + sent.begin * size, static_cast<std::size_t>(sent.count()), type,
                                   peer, comm, stream),
                        "ncclSend", comm);
            nccl_.check(nccl_.Recv(output + received.begin * size, static_cast<std::size_t>(received.count()),
                                   type, peer, comm, stream),
                        "ncclRecv", comm);
        }
    } catch (...) {
        (void)nccl_.GroupEnd();
        throw;
    }
    nccl_.check(nccl_.GroupEnd(), "ncclGroupEnd of an all_to_all", comm);
}

void NcclGroup::enqueue(const device::CollectiveLaunch& collective, const CountedStream& stream) {
    try {
        const NcclWatchdog::Call call(watchdog_, collective);
        issue(collective, call.comm(), stream.get());
    } catch (const CudaError&) {
        watchdog_.refused(std::current_exception());
    }
    watchdog_.issued(collective, stream.get());
}

// The members of a communicator that belong to this process.
NcclStart start_of(const std::vector<int>& ranks, const std::vector<int>& ordinals) {
    NcclStart start;
    start.members = static_cast<int>(ranks.size());
    for (std::size_t place = 0; place < ranks.size(); ++place) {
        const int gpu = ordinals[static_cast<std::size_t>(ranks[place])];
        if (gpu >= 0) start.here.push_back({ranks[place], static_cast<int>(place), gpu});
    }
    return start;
}

}  // namespace

std::vector<std::unique_ptr<Group>> make_nccl_groups(const NcclLibrary& nccl,
                                                     const std::vector<std::vector<int>>& members,
                                                     const std::vector<int>& ordinals, double timeout_s,
                                                     const NcclPeers* peers, int channels) {
    const std::size_t first_channel = members.size() - static_cast<std::size_t>(channels);
    std::vector<std::unique_ptr<Group>> groups;
    std::vector<NcclStart> starts;
    std::vector<NcclGroup*> started;
    for (std::size_t id = 0; id < members.size(); ++id) {
        auto group =
            std::make_unique<NcclGroup>(nccl, plan::CommunicatorId(id), members[id], timeout_s, peers);
        NcclStart start = start_of(members[id], ordinals);
        start.channel = id >= first_channel;
        if (!start.here.empty()) {
            if (peers) {
                start.id = peers->ids[id];
            } else {
                nccl.check(nccl.GetUniqueId(&start.id), "ncclGetUniqueId");
            }
            starts.push_back(std::move(start));
            started.push_back(group.get());
        }
        groups.push_back(std::move(group));
    }
    const auto communicators =
        start_communicators(nccl, starts, timeout_s, peers ? peers->bootstrap.get() : nullptr);
    for (std::size_t s = 0; s < starts.size(); ++s) {
        for (std::size_t m = 0; m < starts[s].here.size(); ++m) {
            started[s]->adopt(starts[s].here[m], communicators[s][m]);
        }
    }
    return groups;
}

}  // namespace shardscope::trainer::cuda
