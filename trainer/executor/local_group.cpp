#include "trainer/executor/local_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "trainer/kernels/elementwise.h"

namespace shardscope::trainer {

namespace {

using Calls = std::vector<CollectiveCall>;

void copy(const float* from, float* to, std::int64_t elements) {
    if (from != to && elements > 0) std::memcpy(to, from, static_cast<std::size_t>(elements) * sizeof(float));
}

void all_gather(const Calls& calls, std::size_t rank) {
    const auto shard = calls[rank].full_elements / static_cast<std::int64_t>(calls.size());
    for (std::size_t s = 0; s < calls.size(); ++s) {
        copy(calls[s].input, calls[rank].output + static_cast<std::int64_t>(s) * shard, shard);
    }
}

// Sums elements [first, first + count) of all inputs into `out`.
void sum(const Calls& calls, std::int64_t first, std::int64_t count, float* out, bool average) {
    std::vector<const float*> inputs;
    inputs.reserve(calls.size());
    for (const CollectiveCall& call : calls) inputs.push_back(call.input + first);
    const float factor = average ? 1.0F / static_cast<float>(calls.size()) : 1.0F;
    kernels::sum_ranks(inputs.data(), static_cast<int>(inputs.size()), out, static_cast<std::size_t>(count),
                       factor);
}

void reduce_scatter(const Calls& calls, std::size_t rank) {
    const auto shard = calls[rank].full_elements / static_cast<std::int64_t>(calls.size());
    sum(calls, static_cast<std::int64_t>(rank) * shard, shard, calls[rank].output, calls[rank].average);
}

// Each rank sums its part of the elements and writes the result to everybody, so that all ranks hold the same
// bits and nothing is read after it was overwritten (calls may be in place).
void all_reduce(const Calls& calls, std::size_t rank) {
    constexpr std::int64_t kBlock = 4096;
    std::array<float, kBlock> block;
    const std::int64_t all = calls[rank].full_elements;
    const auto ranks = static_cast<std::int64_t>(calls.size());
    const std::int64_t part = (all + ranks - 1) / ranks;
    const std::int64_t begin = std::min(all, static_cast<std::int64_t>(rank) * part);
    const std::int64_t end = std::min(all, begin + part);
    for (std::int64_t first = begin; first < end; first += kBlock) {
        const std::int64_t count = std::min(kBlock, end - first);
        sum(calls, first, count, block.data(), calls[rank].average);
        for (const CollectiveCall& call : calls) copy(block.data(), call.output + first, count);
    }
}

void carry_out(const Calls& calls, std::size_t rank) {
    switch (calls[rank].operation) {
        case Operation::all_gather:
            return all_gather(calls, rank);
        case Operation::reduce_scatter:
            return reduce_scatter(calls, rank);
        case Operation::all_reduce:
            return all_reduce(calls, rank);
        case Operation::broadcast:
            return copy(calls[0].input, calls[rank].output, calls[rank].full_elements);
        case Operation::barrier:
            return;
        default:
            throw std::logic_error("the local process group has no such collective");
    }
}

}  // namespace

std::shared_ptr<Meeting> LocalGroup::join(int rank, std::int64_t sequence, const CollectiveCall& call) {
    const std::lock_guard lock(mutex_);
    Open& open = open_[sequence];
    if (!open.meeting) {
        open.meeting = std::make_shared<Meeting>(static_cast<std::size_t>(ranks_));
        open.calls = std::make_shared<Calls>(static_cast<std::size_t>(ranks_));
        open.first = call;
    } else if (open.first.operation != call.operation || open.first.full_elements != call.full_elements) {
        throw std::logic_error(
            fmt::format("collective {}: rank {} calls {} of {} elements while another rank calls {} of {}",
                        sequence, rank, traces::name(call.operation), call.full_elements,
                        traces::name(open.first.operation), open.first.full_elements));
    }
    (*open.calls)[static_cast<std::size_t>(rank)] = call;
    auto meeting = open.meeting;
    meeting->set_part(static_cast<std::size_t>(rank),
                      [calls = open.calls, rank](int) { carry_out(*calls, static_cast<std::size_t>(rank)); });
    if (++open.joined == ranks_) open_.erase(sequence);
    return meeting;
}

}  // namespace shardscope::trainer
