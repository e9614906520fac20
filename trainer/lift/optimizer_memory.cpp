#include "trainer/lift/optimizer_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace shardscope::trainer::lift {

namespace {

constexpr int kMostBuffers = 4;  // of a parameter at a time, in PyTorch's optimizers

// The bytes of the trained parameters, or parts of them, that the first rank updates.
std::vector<double> local_parameters(const sharding::Program& program) {
    std::vector<double> bytes;
    for (const sharding::OptimizerSlot& slot : program.optimizer().slots()) {
        for (const plan::Segment& segment : slot.segments) {
            const std::int64_t elements =
                std::min(segment.first + segment.elements, slot.elements) - segment.first;
            if (segment.trained && elements > 0)
                bytes.push_back(static_cast<double>(elements) * sizeof(float));
        }
    }
    return bytes;
}

double most(const std::vector<double>& parameters, int buffers, bool previous) {
    double most = 0, before = 0;
    for (const double bytes : parameters) {
        most = std::max(most, buffers * bytes + (previous ? before : 0));
        before = bytes;
    }
    return most;
}

}  // namespace

OptimizerMemory::OptimizerMemory(std::int64_t rise, const sharding::Program& program, bool together) {
    const std::vector<double> parameters = local_parameters(program);
    const double all = std::accumulate(parameters.begin(), parameters.end(), 0.0),
                 recorded = static_cast<double>(rise);
    if (rise <= 0 || all <= 0) return;
    share_ = recorded / all;
    if (together || recorded > (kMostBuffers + 0.5) * most(parameters, 1, false)) return;
    double nearest = std::numeric_limits<double>::infinity();
    for (int buffers = 1; buffers <= kMostBuffers; ++buffers) {
        for (const bool previous : {false, true}) {
            const double share = recorded / most(parameters, buffers, previous);
            if (std::abs(share - 1) >= nearest) continue;
            nearest = std::abs(share - 1);
            share_ = share;
            buffers_ = buffers;
            previous_ = previous;
        }
    }
}

std::int64_t OptimizerMemory::of(const sharding::Program& program) const {
    if (!known()) return 0;
    const std::vector<double> parameters = local_parameters(program);
    return std::llround(share_ * (buffers_ > 0 ? most(parameters, buffers_, previous_)
                                               : std::accumulate(parameters.begin(), parameters.end(), 0.0)));
}

}  // namespace shardscope::trainer::lift
