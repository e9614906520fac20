#include "trainer/checkpoint/strided_read.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace shardscope::trainer::checkpoint {

namespace {

constexpr std::int64_t kNoByte = std::numeric_limits<std::int64_t>::max();

std::int64_t step_of(const StridedRun& run) {
    return run.stride * size_of(run.type);
}
std::int64_t count_of(const StridedRun& run) {
    return std::ssize(run.to) / 4;
}

// How many of the run's elements begin before byte `at`.
std::int64_t elements_before(const StridedRun& run, std::int64_t at) {
    if (at <= run.offset) return 0;
    return std::min(count_of(run), (at - run.offset - 1) / step_of(run) + 1);
}

}  // namespace

void read_strided(const File& file, std::span<const StridedRun> runs, std::int64_t block) {
    std::int64_t at = kNoByte, end = 0;
    for (const StridedRun& run : runs) {
        at = std::min(at, run.offset);
        end = std::max(end, run.offset + (count_of(run) - 1) * step_of(run) + size_of(run.type));
    }
    std::vector<std::byte> bytes;
    while (at != kNoByte) {
        // The last element that begins in the block may end after it.
        bytes.resize(static_cast<std::size_t>(std::min(end - at, block + size_of(ElementType::fp64) - 1)));
        file.read(bytes, at);
        std::int64_t next = kNoByte;
        for (const StridedRun& run : runs) {
            const std::int64_t first = elements_before(run, at), last = elements_before(run, at + block);
            if (last < count_of(run)) next = std::min(next, run.offset + last * step_of(run));
            if (first == last) continue;
            const std::int64_t from = run.offset + first * step_of(run) - at;
            to_fp32(std::span(bytes).subspan(static_cast<std::size_t>(from)), run.type, run.stride,
                    run.to.subspan(static_cast<std::size_t>(4 * first),
                                   static_cast<std::size_t>(4 * (last - first))));
        }
        at = next;
    }
}

}  // namespace shardscope::trainer::checkpoint
