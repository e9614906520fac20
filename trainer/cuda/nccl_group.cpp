#include "trainer/cuda/nccl_group.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "trainer/cuda/local_kernels.h"
#include "trainer/executor/pieces.h"

namespace shardscope::trainer::cuda {

namespace {

using Clock = std::chrono::steady_clock;

int type_of(DType dtype) {
    switch (dtype) {
        case DType::fp32:
            return kNcclFloat32;
        case DType::bf16:
            return kNcclBfloat16;
        case DType::fp64:
            return kNcclFloat64;
        case DType::int32:
            return kNcclInt32;
    }
    throw std::logic_error("NCCL has no such type");
}

// Divides a sum that NCCL did not: the divisor is not the number of members.
void divide(const CollectiveCall& call, std::int64_t elements, cudaStream_t stream) {
    const auto n = static_cast<std::size_t>(elements);
    const double factor = 1.0 / call.divisor;
    switch (call.dtype) {
        case DType::fp32:
            return scale_sum(static_cast<float*>(call.output), n, factor, stream);
        case DType::bf16:
            return scale_sum(static_cast<Bf16*>(call.output), n, factor, stream);
        case DType::fp64:
            return scale_sum(static_cast<double*>(call.output), n, factor, stream);
        case DType::int32:
            throw std::logic_error("sums of integers are not divided");
    }
}

class NcclGroup final : public Group {
  public:
    NcclGroup(const NcclLibrary& nccl, int id, std::vector<int> ranks, const std::vector<int>& ordinals,
              double timeout_s)
        : nccl_(nccl), id_(id), ranks_(std::move(ranks)), timeout_s_(timeout_s), members_(ranks_.size()) {
        for (std::size_t m = 0; m < ranks_.size(); ++m) {
            members_[m].gpu = ordinals[static_cast<std::size_t>(ranks_[m])];
        }
    }
    ~NcclGroup() override { end(); }

    void start();
    void enqueue(const CollectiveLaunch& collective, const CountedStream& stream) override;
    void fail(std::exception_ptr error) override;
    bool announces() const override { return true; }

  private:
    struct InFlight {
        CollectiveCall call;
        std::int64_t sequence = 0;
        Clock::time_point since;
        cudaEvent_t over = nullptr;
    };
    struct Member {
        int gpu = 0;
        std::atomic<NcclComm*> comm = nullptr;  // null once it is aborted
        std::deque<InFlight> in_flight;         // in their order
        std::vector<cudaEvent_t> spare;
    };

    void issue(const CollectiveCall& call, Member& member, cudaStream_t stream);
    void note(const CollectiveLaunch& collective, Member& member, cudaStream_t stream);
    void watch();
    std::string trouble();
    void abort();
    void end();

    const NcclLibrary& nccl_;
    int id_;
    std::vector<int> ranks_;
    double timeout_s_;
    std::mutex mutex_;             // guards all below
    std::vector<Member> members_;  // by place
    std::exception_ptr error_;
    bool ends_ = false;
    std::condition_variable changed_;
    std::thread watchdog_;
};

void NcclGroup::start() {
    NcclId id{};
    nccl_.check(nccl_.GetUniqueId(&id), "ncclGetUniqueId");
    std::vector<NcclComm*> comms(members_.size(), nullptr);
    nccl_.check(nccl_.GroupStart(), "ncclGroupStart");
    for (std::size_t m = 0; m < members_.size(); ++m) {
        check(cudaSetDevice(members_[m].gpu), "cudaSetDevice");
        nccl_.check(nccl_.CommInitRank(&comms[m], static_cast<int>(members_.size()), id, static_cast<int>(m)),
                    fmt::format("ncclCommInitRank of rank {}", ranks_[m]));
    }
    nccl_.check(nccl_.GroupEnd(), fmt::format("starting NCCL among {} ranks", members_.size()));
    for (std::size_t m = 0; m < members_.size(); ++m) members_[m].comm = comms[m];
    watchdog_ = std::thread([this] { watch(); });
}

void NcclGroup::issue(const CollectiveCall& call, Member& member, cudaStream_t stream) {
    const int type = type_of(call.dtype);
    const auto members = static_cast<std::int64_t>(members_.size());
    const bool average = call.divisor > 1 && call.divisor == members;
    const int reduction = average ? kNcclAvg : kNcclSum;
    if (call.full_elements % members != 0 &&
        (call.operation == Operation::all_gather || call.operation == Operation::reduce_scatter)) {
        throw std::logic_error(
            fmt::format("{} does not divide by the {} ranks of its communicator", describe(call), members));
    }
    const auto each = static_cast<std::size_t>(call.full_elements / members);
    const auto all = static_cast<std::size_t>(call.full_elements);
    std::int64_t summed = 0;  // elements that this rank receives of a sum
    switch (call.operation) {
        case Operation::all_gather:
            nccl_.check(nccl_.AllGather(call.input, call.output, each, type, member.comm, stream),
                        "ncclAllGather", member.comm);
            break;
        case Operation::reduce_scatter:
            nccl_.check(
                nccl_.ReduceScatter(call.input, call.output, each, type, reduction, member.comm, stream),
                "ncclReduceScatter", member.comm);
            summed = call.full_elements / members;
            break;
        case Operation::all_reduce:
            nccl_.check(nccl_.AllReduce(call.input, call.output, all, type, reduction, member.comm, stream),
                        "ncclAllReduce", member.comm);
            summed = call.full_elements;
            break;
        case Operation::broadcast:
            nccl_.check(nccl_.Broadcast(call.input, call.output, all, type, 0, member.comm, stream),
                        "ncclBroadcast", member.comm);
            break;
        case Operation::barrier:
            break;  // nothing to move: events of the streams are the order
        default:
            throw std::logic_error("the nccl process group has no such collective");
    }
    if (summed > 0 && call.divisor > 1 && !average) divide(call, summed, stream);
}

void NcclGroup::enqueue(const CollectiveLaunch& collective, const CountedStream& stream) {
    Member& member = members_[static_cast<std::size_t>(collective.place)];
    {
        const std::lock_guard lock(mutex_);
        if (error_) std::rethrow_exception(error_);
    }
    issue(collective.call, member, stream.get());
    note(collective, member, stream.get());
}

// For the watchdog.
void NcclGroup::note(const CollectiveLaunch& collective, Member& member, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    cudaEvent_t over = nullptr;
    if (member.spare.empty()) {
        check(cudaEventCreateWithFlags(&over, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    } else {
        over = member.spare.back();
        member.spare.pop_back();
    }
    check(cudaEventRecord(over, stream), "cudaEventRecord");
    member.in_flight.push_back({collective.call, collective.sequence, Clock::now(), over});
}

// --- the watchdog ----------------------------------------------------------------------------------------

// Once a tenth of a second: what has gone wrong, and the end of it.
void NcclGroup::watch() {
    std::unique_lock lock(mutex_);
    while (!ends_ && !error_) {
        changed_.wait_for(lock, std::chrono::milliseconds(100));
        if (ends_ || error_) return;
        const std::string sentence = trouble();
        if (sentence.empty()) continue;
        error_ = std::make_exception_ptr(CudaError(sentence));
        abort();
    }
}

std::string NcclGroup::trouble() {
    for (std::size_t m = 0; m < members_.size(); ++m) {
        Member& member = members_[m];
        int state = kNcclSuccess;
        nccl_.CommGetAsyncError(member.comm, &state);
        if (state != kNcclSuccess && state != kNcclInProgress) {
            return fmt::format("rank {}: NCCL failed: {}; NCCL_DEBUG=WARN says more", ranks_[m],
                               nccl_.GetErrorString(state));
        }
        while (!member.in_flight.empty() && cudaEventQuery(member.in_flight.front().over) == cudaSuccess) {
            member.spare.push_back(member.in_flight.front().over);
            member.in_flight.pop_front();
        }
        (void)cudaGetLastError();
    }
    if (timeout_s_ <= 0) return {};
    // The rank that has been given the fewest collectives is the one that the others wait for.
    for (std::size_t m = 0; m < members_.size(); ++m) {
        if (members_[m].in_flight.empty()) continue;
        const InFlight& first = members_[m].in_flight.front();
        if (Clock::now() - first.since < std::chrono::duration<double>(timeout_s_)) continue;
        std::string others;
        for (std::size_t o = 0; o < members_.size(); ++o) {
            const bool there =
                !members_[o].in_flight.empty() && members_[o].in_flight.back().sequence >= first.sequence;
            if (!there) others += fmt::format("{}{}", others.empty() ? "" : ", ", ranks_[o]);
        }
        return fmt::format(
            "rank {}: {} (number {} of communicator {}) did not end within the {} s of run.timeout; {}",
            ranks_[m], describe(first.call), first.sequence, id_, timeout_s_,
            others.empty() ? "all its ranks have begun it" : "rank " + others + " has not begun it");
    }
    return {};
}

// Streams that wait in NCCL's kernels go on. Under the lock.
void NcclGroup::abort() {
    for (Member& member : members_) {
        NcclComm* comm = member.comm.exchange(nullptr);
        if (!comm) continue;
        cudaSetDevice(member.gpu);
        nccl_.CommAbort(comm);
    }
}

void NcclGroup::fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = std::move(error);
    abort();
    changed_.notify_all();
}

void NcclGroup::end() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        changed_.notify_all();
    }
    if (watchdog_.joinable()) watchdog_.join();
    for (Member& member : members_) {
        cudaSetDevice(member.gpu);
        if (member.comm) nccl_.CommDestroy(member.comm);
        for (const InFlight& each : member.in_flight) cudaEventDestroy(each.over);
        for (cudaEvent_t event : member.spare) cudaEventDestroy(event);
    }
}

}  // namespace

std::vector<std::unique_ptr<Group>> make_nccl_groups(const NcclLibrary& nccl,
                                                     const std::vector<std::vector<int>>& members,
                                                     const std::vector<int>& ordinals, double timeout_s) {
    std::vector<std::unique_ptr<Group>> groups;
    for (std::size_t id = 0; id < members.size(); ++id) {
        const bool world_again = id > 0 && members[id].size() == members[0].size();
        auto group =
            std::make_unique<NcclGroup>(nccl, static_cast<int>(id), members[id], ordinals, timeout_s);
        if (!world_again) group->start();
        groups.push_back(std::move(group));
    }
    return groups;
}

}  // namespace shardscope::trainer::cuda
