#include "trainer/executor/local_group.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include <fmt/core.h>

#include "trainer/collective/pieces.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/streaming.h"

namespace shardscope::trainer::executor {

namespace {

using Calls = std::vector<collective::CollectiveCall>;

void move_bytes(const void* from, void* to, std::int64_t bytes, bool streams) {
    if (from == to || bytes <= 0) return;
    if (streams) {
        kernels::streaming_copy(from, to, static_cast<std::size_t>(bytes));
    } else {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }
}

// Whether what `writers` of the members write in a collective bypasses the caches.
bool past(std::size_t cache_bytes, const collective::CollectiveCall& call, std::size_t writers) {
    return static_cast<std::size_t>(call.full_elements * size_of(call.dtype)) * writers > cache_bytes;
}

void all_gather(const Calls& calls, std::size_t place, std::size_t cache_bytes) {
    const collective::CollectiveCall& own = calls[place];
    const std::int64_t size = size_of(own.dtype);
    const bool streams = past(cache_bytes, own, calls.size());
    for (std::size_t from = 0; from < calls.size(); ++from) {
        const collective::ElementRange range = collective::piece_of(own.full_elements, calls.size(), from);
        move_bytes(calls[from].input, static_cast<std::byte*>(own.output) + range.begin * size,
                   range.count() * size, streams);
    }
}

void all_to_all(const Calls& calls, std::size_t place, std::size_t cache_bytes) {
    const collective::CollectiveCall& own = calls[place];
    const std::int64_t size = size_of(own.dtype);
    const bool streams = past(cache_bytes, own, calls.size());
    for (std::size_t from = 0; from < calls.size(); ++from) {
        const auto [sent, received] = collective::sent_between(calls, from, place);
        move_bytes(static_cast<const std::byte*>(calls[from].input) + sent.begin * size,
                   static_cast<std::byte*>(own.output) + received.begin * size, sent.count() * size, streams);
    }
}

// Elements [first, first + count) of all inputs.
template <class T>
std::vector<const T*> inputs_at(const Calls& calls, std::int64_t first) {
    std::vector<const T*> inputs;
    inputs.reserve(calls.size());
    for (const collective::CollectiveCall& call : calls)
        inputs.push_back(static_cast<const T*>(call.input) + first);
    return inputs;
}

template <class T>
void reduce_scatter(const Calls& calls, std::size_t place, std::size_t cache_bytes) {
    const collective::CollectiveCall& own = calls[place];
    const collective::ElementRange range = collective::piece_of(own.full_elements, calls.size(), place);
    const bool streams = past(cache_bytes, own, 1);
    const auto inputs = inputs_at<T>(calls, range.begin);
    const auto ranks = static_cast<int>(inputs.size());
    const auto count = static_cast<std::size_t>(range.count());
    auto* output = static_cast<T*>(own.output);
    if (streams) return kernels::streaming_sum(inputs.data(), ranks, output, count, 1.0 / own.divisor);
    kernels::sum_ranks(inputs.data(), ranks, output, count, 1.0 / own.divisor);
}

template <class T>
void join(const collective::CollectiveCall& call, const std::vector<const T*>& inputs, T* out,
          std::size_t count) {
    const auto ranks = static_cast<int>(inputs.size());
    if (call.reduction == plan::Reduction::sum)
        return kernels::sum_ranks(inputs.data(), ranks, out, count, 1.0 / call.divisor);
    if constexpr (std::is_same_v<T, float>) return kernels::max_ranks(inputs.data(), ranks, out, count);
    throw std::logic_error("the local process group finds the largest of fp32 alone");
}

// Each member sums its part of the elements and writes the result to all members, so that all hold the same
// bits and nothing is read after it was overwritten (calls may be in place).
template <class T>
void all_reduce(const Calls& calls, std::size_t place, std::size_t cache_bytes) {
    constexpr std::int64_t kBlock = 4096;
    std::array<T, kBlock> block;
    const collective::CollectiveCall& own = calls[place];
    const collective::ElementRange range = collective::piece_of(own.full_elements, calls.size(), place);
    const bool streams = past(cache_bytes, own, calls.size());
    for (std::int64_t first = range.begin; first < range.end; first += kBlock) {
        const auto count = static_cast<std::size_t>(std::min(kBlock, range.end - first));
        const auto inputs = inputs_at<T>(calls, first);
        join(own, inputs, block.data(), count);
        for (const collective::CollectiveCall& call : calls) {
            move_bytes(block.data(), static_cast<T*>(call.output) + first,
                       static_cast<std::int64_t>(count * sizeof(T)), streams);
        }
    }
}

template <class T>
void reduce(const Calls& calls, std::size_t place, std::size_t cache_bytes) {
    return calls[place].operation == plan::Operation::all_reduce
               ? all_reduce<T>(calls, place, cache_bytes)
               : reduce_scatter<T>(calls, place, cache_bytes);
}

// `cache_bytes`: what all members write stays in the last-level cache until it is read, if it is no larger
// than this.
void carry_out(const Calls& calls, std::size_t place, std::size_t cache_bytes) {
    const collective::CollectiveCall& own = calls[place];
    switch (own.operation) {
        case plan::Operation::all_gather:
            return all_gather(calls, place, cache_bytes);
        case plan::Operation::all_to_all:
            return all_to_all(calls, place, cache_bytes);
        case plan::Operation::reduce_scatter:
        case plan::Operation::all_reduce:
            switch (own.dtype) {
                case plan::DType::fp32:
                    return reduce<float>(calls, place, cache_bytes);
                case plan::DType::bf16:
                    return reduce<kernels::Bf16>(calls, place, cache_bytes);
                case plan::DType::fp16:
                    return reduce<kernels::Fp16>(calls, place, cache_bytes);
                case plan::DType::fp64:
                    return reduce<double>(calls, place, cache_bytes);
                case plan::DType::int32:
                case plan::DType::int8:
                    break;
            }
            throw std::logic_error("the local process group does not sum integers");
        case plan::Operation::broadcast:
            return move_bytes(calls[0].input, own.output, own.full_elements * size_of(own.dtype),
                              past(cache_bytes, own, calls.size()));
        case plan::Operation::barrier:
        case plan::Operation::send:  // the receiver copies
            return;
        case plan::Operation::recv:
            return move_bytes(calls[0].input, own.output, own.full_elements * size_of(own.dtype),
                              past(cache_bytes, own, 1));
        default:
            throw std::logic_error("the local process group has no such collective");
    }
}

}  // namespace

std::shared_ptr<Meeting> LocalGroup::join(int place, std::int64_t sequence,
                                          const collective::CollectiveCall& call) {
    const std::lock_guard lock(mutex_);
    Open& open = open_[sequence];
    if (!open.meeting) {
        open.meeting = std::make_shared<Meeting>(static_cast<std::size_t>(members_), transfer_delay_);
        open.calls = std::make_shared<Calls>(static_cast<std::size_t>(members_));
        open.first = call;
    } else if (!agree(open.first, call)) {
        throw std::logic_error(
            fmt::format("collective {}: {} calls {}, another calls {}", sequence,
                        ranks_.empty() ? fmt::format("the member at place {}", place)
                                       : fmt::format("rank {}", ranks_[static_cast<std::size_t>(place)]),
                        describe(call), describe(open.first)));
    }
    const auto part = static_cast<std::size_t>(place);
    (*open.calls)[part] = call;
    auto meeting = open.meeting;
    meeting->set_part(part, [calls = open.calls, part, delays = delays_, bytes = cache_bytes_](int) {
        if (delays) delays->maybe_sleep();
        carry_out(*calls, part, bytes);
    });
    if (++open.joined == members_) open_.erase(sequence);
    return meeting;
}

LocalGroups::LocalGroups(const plan::Mesh& mesh, std::chrono::microseconds transfer_delay,
                         collective::Delays* delays) {
    for (const std::vector<int>& members : mesh.communicators()) {
        groups_.push_back(std::make_unique<LocalGroup>(static_cast<int>(members.size()), transfer_delay,
                                                       delays, kernels::cached_bytes(), members));
    }
}

}  // namespace shardscope::trainer::executor
