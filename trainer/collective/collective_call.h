// One rank's part in a collective, for every process group.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::collective {

// A member's buffers may be in place (all_reduce; all_gather whose input is its own piece of the output;
// reduce_scatter whose output is its own piece of the input; broadcast). If the elements of an all_gather or
// reduce_scatter are not divisible by the number of members, pieces are rounded up and the last ones are
// shorter or empty. An all_to_all moves piece i of the member at place j to piece j of the one at place i; it
// is not in place, and its pieces are equal unless `sends` and `receives` say how long each is; then they lie
// one behind the other, from the beginning of input and output.
//
// A message is a collective of two members, in a communicator of its own (Mesh::channel): the one at place 0
// sends, the one at place 1 receives; output and input are both the one buffer that it has.
struct CollectiveCall {
    plan::Operation operation = plan::Operation::barrier;
    plan::DType dtype =
        plan::DType::fp32;  // sums: fp32, bf16 (in fp32, rounded once) or fp64; anything can be moved
    void* output = nullptr;
    const void* input = nullptr;
    std::int64_t full_elements =
        0;                     // all_gather: of the output; reduce_scatter: of the input; else of either
    std::int32_t divisor = 1;  // sums are divided by this
    plan::Reduction reduction = plan::Reduction::sum;  // max: all_reduce of fp32 alone
    // all_to_all: the elements that go to each member, and that come from it; empty: equal pieces.
    std::vector<std::int64_t> sends = {}, receives = {};
};

}  // namespace shardscope::trainer::collective
