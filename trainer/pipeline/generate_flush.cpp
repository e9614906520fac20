// Schedules whose backward is whole. Sources: GPipe, arXiv 1811.06965; 1F1B ("PipeDream-flush") and
// interleaved 1F1B, arXiv 2104.04473, section 2.2; looped breadth-first, arXiv 2211.05953. Idle time of a
// rank, F and B of a chunk, no transfer time: (p-1)(F+B) for each, if m >= p (GPipe: always).
#include <algorithm>

#include "trainer/pipeline/generators.h"

namespace shardscope::trainer::pipeline {

// All forwards, then all backwards in the order of the forwards, as PyTorch does; the paper's figure reverses
// the backwards.
void gpipe(RankWriter& w) {
    repeat(w.m, [&] { w.forward(0); });
    repeat(w.m, [&] { w.backward(0); });
}

// As many forwards as ranks follow, then a forward and a backward in turn, then the backwards that remain.
void one_forward_one_backward(RankWriter& w) {
    const int warm_up = w.p - 1 - w.r;
    repeat(warm_up, [&] { w.forward(0); });
    repeat(w.m - warm_up, [&] {
        w.forward(0);
        w.backward(0);
    });
    repeat(warm_up, [&] { w.backward(0); });
}

// A round takes R micro-batches through the first chunk, then through the second ...; backwards go from the
// last chunk to the first. The warm-up is as long as it takes until the first backward can arrive.
void interleaved(RankWriter& w) {
    const int all = w.m * w.v, round = micro_batches_per_round(w.p, w.m);
    const int warm_up = std::min((w.v - 1) * round + 2 * (w.p - 1 - w.r), all);
    int f = 0, b = 0;
    const auto forward = [&] { w.forward(f++ / round % w.v); };
    const auto backward = [&] { w.backward(w.v - 1 - b++ / round % w.v); };
    repeat(warm_up, forward);
    repeat(all - warm_up, [&] {
        forward();
        backward();
    });
    repeat(warm_up, backward);
}

// Every micro-batch through the first chunk, then through the second ...; backwards the other way round.
void looped_bfs(RankWriter& w) {
    for (int chunk = 0; chunk < w.v; ++chunk) repeat(w.m, [&] { w.forward(chunk); });
    for (int chunk = w.v - 1; chunk >= 0; --chunk) {
        for (int k = w.m - 1; k >= 0; --k) w.backward(chunk, k);
    }
}

}  // namespace shardscope::trainer::pipeline
