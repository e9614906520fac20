#include "trainer/cuda/local_group.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <fmt/core.h>

#include "trainer/collective/pieces.h"
#include "trainer/cuda/local_kernels.h"

namespace shardscope::trainer::cuda {

namespace {

using Calls = std::vector<collective::CollectiveCall>;

MemberBuffers buffers_of(const Calls& calls) {
    MemberBuffers buffers;
    buffers.members = static_cast<int>(calls.size());
    for (std::size_t m = 0; m < calls.size(); ++m) {
        buffers.in[m] = calls[m].input;
        buffers.out[m] = calls[m].output;
    }
    return buffers;
}

// Each member sums one piece: a reduce_scatter keeps it, an all_reduce writes it to every member.
template <class T>
void reduce(const Calls& calls, std::size_t place, cudaStream_t stream) {
    const collective::CollectiveCall& own = calls[place];
    const collective::ElementRange range = collective::piece_of(own.full_elements, calls.size(), place);
    const auto first = static_cast<std::size_t>(range.begin), n = static_cast<std::size_t>(range.count());
    if (own.reduction == plan::Reduction::max) {
        if (own.operation != plan::Operation::all_reduce || own.dtype != plan::DType::fp32)
            throw std::logic_error("the local process group finds the largest of fp32 alone");
        max_members(buffers_of(calls), first, n, stream);
    } else if (own.operation == plan::Operation::all_reduce) {
        all_reduce_members<T>(buffers_of(calls), first, n, 1.0 / own.divisor, stream);
    } else {
        reduce_members<T>(buffers_of(calls), static_cast<T*>(own.output), first, n, 1.0 / own.divisor,
                          stream);
    }
}

void carry_out(const Calls& calls, std::size_t place, cudaStream_t stream) {
    const collective::CollectiveCall& own = calls[place];
    const auto bytes = static_cast<std::size_t>(own.full_elements * size_of(own.dtype));
    switch (own.operation) {
        case plan::Operation::all_gather: {
            const collective::ElementRange first = collective::piece_of(own.full_elements, calls.size(), 0);
            return gather_members(buffers_of(calls), own.output,
                                  static_cast<std::size_t>(first.count() * size_of(own.dtype)), bytes,
                                  stream);
        }
        case plan::Operation::all_to_all: {
            const std::int64_t size = size_of(own.dtype);
            for (std::size_t from = 0; from < calls.size(); ++from) {
                const auto [sent, received] = collective::sent_between(calls, from, place);
                if (sent.count() == 0) continue;
                check(
                    cudaMemcpyAsync(static_cast<std::byte*>(own.output) + received.begin * size,
                                    static_cast<const std::byte*>(calls[from].input) + sent.begin * size,
                                    static_cast<std::size_t>(sent.count() * size), cudaMemcpyDefault, stream),
                    "cudaMemcpyAsync");
            }
            return;
        }
        case plan::Operation::reduce_scatter:
        case plan::Operation::all_reduce:
            switch (own.dtype) {
                case plan::DType::fp32:
                    return reduce<float>(calls, place, stream);
                case plan::DType::bf16:
                    return reduce<Bf16>(calls, place, stream);
                case plan::DType::fp16:
                    return reduce<Fp16>(calls, place, stream);
                case plan::DType::fp64:
                    return reduce<double>(calls, place, stream);
                case plan::DType::int32:
                case plan::DType::int8:
                    break;
            }
            throw std::logic_error("the local process group does not sum integers");
        case plan::Operation::broadcast:
            return broadcast_first(buffers_of(calls), own.output, bytes, stream);
        case plan::Operation::barrier:
            return barrier_members(stream);
        default:
            throw std::logic_error("the local process group has no such collective");
    }
}

}  // namespace

LocalGroup::LocalGroup(std::vector<int> ranks, double timeout_s)
    : ranks_(std::move(ranks)), timeout_s_(timeout_s), members_(ranks_.size()) {
    if (ranks_.size() > kMostMembers) {
        throw CudaError(
            fmt::format("run.ranks: {} ranks are more than the {} that the local process group "
                        "takes on CUDA; use fewer",
                        ranks_.size(), kMostMembers));
    }
}

void LocalGroup::fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
}

// Blocks until all members have `passed` a point of the collective.
void LocalGroup::meet(std::unique_lock<std::mutex>& lock, const device::CollectiveLaunch& collective,
                      const std::vector<bool>& passed) {
    const auto met = [&] {
        return error_ || std::all_of(passed.begin(), passed.end(), [](bool each) { return each; });
    };
    if (timeout_s_ <= 0) {
        changed_.wait(lock, met);
    } else if (!changed_.wait_for(lock, std::chrono::duration<double>(timeout_s_), met)) {
        std::string missing;
        for (std::size_t m = 0; m < passed.size(); ++m) {
            if (!passed[m]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", ranks_[m]);
        }
        error_ = std::make_exception_ptr(
            CudaError(fmt::format("rank {} did not arrive at {} {} of communicator {} within the {} s of "
                                  "run.timeout; raise run.timeout "
                                  "if it is only slow",
                                  missing, traces::schema::name(collective.call.operation),
                                  collective.sequence, collective.communicator, timeout_s_)));
        changed_.notify_all();
    }
    if (error_) std::rethrow_exception(error_);
}

void LocalGroup::enqueue(const device::CollectiveLaunch& collective, const CountedStream& stream) {
    const auto place = static_cast<std::size_t>(collective.place);
    std::unique_lock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    Member& own = members_[place];
    if (!own.ready) {
        own.ready.emplace();
        own.over.emplace();
    }
    check(cudaEventRecord(own.ready->get(), stream.get()), "cudaEventRecord");
    Open& open = open_[collective.sequence];
    if (open.calls.empty()) {
        open.calls.resize(members_.size());
        open.here.resize(members_.size());
        open.issued.resize(members_.size());
        open.first = collective.call;
    } else if (!agree(open.first, collective.call)) {
        throw std::logic_error(fmt::format("collective {}: rank {} calls {}, another calls {}",
                                           collective.sequence, ranks_[place], describe(collective.call),
                                           describe(open.first)));
    }
    open.calls[place] = collective.call;
    open.here[place] = true;
    changed_.notify_all();
    meet(lock, collective, open.here);

    // Here every member has named its buffers and recorded the event of its inputs.
    lock.unlock();
    for (std::size_t m = 0; m < members_.size(); ++m) {
        if (m == place) continue;
        check(cudaStreamWaitEvent(stream.get(), members_[m].ready->get(), 0), "cudaStreamWaitEvent");
    }
    carry_out(open.calls, place, stream.get());
    check(cudaEventRecord(own.over->get(), stream.get()), "cudaEventRecord");
    lock.lock();
    open.issued[place] = true;
    changed_.notify_all();
    meet(lock, collective, open.issued);

    // A member may use its buffers again when all parts are over.
    for (std::size_t m = 0; m < members_.size(); ++m) {
        if (m == place) continue;
        check(cudaStreamWaitEvent(stream.get(), members_[m].over->get(), 0), "cudaStreamWaitEvent");
    }
    if (++open.left == static_cast<int>(members_.size())) open_.erase(collective.sequence);
}

}  // namespace shardscope::trainer::cuda
