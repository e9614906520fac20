// Which tokens of a sequence each rank of a context group has. A sequence is cut into chunks of equal size,
// and a rank has one of them, or, where attention is causal, two: chunk r of the first half and the one as
// far from the end, 2n - 1 - r. A token attends to those before it, so every rank then has the same number of
// pairs of tokens (torch.distributed's _HeadTailLoadBalancer; "zig-zag").
#pragma once

#include <cstdint>

namespace shardscope::trainer::kernels {

struct ContextCut {
    int ranks = 1, place = 0;  // of the context group
    bool causal = true;

    constexpr int own() const { return causal ? 2 : 1; }  // chunks of a rank
    constexpr int chunks() const { return own() * ranks; }
    // The place in the sequence of a rank's i-th chunk; they ascend.
    constexpr int chunk(int i, int of_rank) const { return i == 0 ? of_rank : chunks() - 1 - of_rank; }
    constexpr int chunk(int i) const { return chunk(i, place); }

    // For elements [first, first + count) of a rank's part of a batch of sequences, of which its part of each
    // has `part` elements: calls visit(at, elements, whole) for runs that are neighbours in the whole batch,
    // where `whole` is the first one's place there.
    template <class Visit>
    constexpr void for_runs(std::int64_t first, std::int64_t count, std::int64_t part,
                            const Visit& visit) const {
        const std::int64_t size = part / own(), end = first + count;
        for (std::int64_t e = first; e < end;) {
            const std::int64_t run = e / size, next = (run + 1) * size < end ? (run + 1) * size : end;
            const std::int64_t sequence = run / own();
            const std::int64_t chunk_there = sequence * chunks() + chunk(static_cast<int>(run % own()));
            visit(e - first, next - e, chunk_there * size + e % size);
            e = next;
        }
    }
};

}  // namespace shardscope::trainer::kernels
