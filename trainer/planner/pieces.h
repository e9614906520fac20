// What a stage of a pipeline does and keeps, by piece: each layer, what comes before the first layer, and
// what follows the last. A pipeline of two layers on two places is planned for it, in which one place has the
// first piece and a layer, the other a layer and the last piece.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "trainer/job/job.h"
#include "trainer/pipeline/action.h"
#include "trainer/plan/plan.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::planner {

// The computations of a stage: F, B, and B in its two parts, I and W.
enum Part : std::size_t { kForward, kBackward, kInput, kWeight, kParts };

constexpr Part part_of(pipeline::ActionKind kind) {
    switch (kind) {
        case pipeline::ActionKind::forward:
            return kForward;
        case pipeline::ActionKind::backward_input:
            return kInput;
        case pipeline::ActionKind::backward_weight:
            return kWeight;
        default:
            return kBackward;
    }
}

// What one action does for a piece, on the compute stream. Left out: what not every micro-batch does (gathers
// and their copies, reductions).
struct Work {
    double kernels = 0;                                                                 // seconds
    std::map<std::tuple<plan::Group, plan::Operation, std::int64_t>, int> collectives;  // with their bytes
    std::map<std::int64_t, int> ring;  // messages in a context group, by their bytes, beside the kernels
};

struct Piece {
    std::array<Work, kParts> work;
    // Bytes of activations: from the forward to the backward, and, where it is split, from I to W.
    std::int64_t saved = 0, left_for_weights = 0;
    std::int64_t elements = 0;  // of parameters that a rank of the tensor group has, but for experts
    std::int64_t experts = 0;   // elements of the experts that a rank of the expert group has
};

struct Pieces {
    Piece first, layer, last;
    std::int64_t message = 0;  // bytes of a message between two places
};

// `splits`: also those of I and W. Throws JobError where the job of two layers is impossible.
Pieces pieces_of(const job::Job& job, const sim::Cluster& cluster, bool splits);

}  // namespace shardscope::trainer::planner
