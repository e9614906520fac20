// Schedules that split the backward into I, the gradient of the input, which the previous stage waits for,
// and W, the gradients of the weights, which no rank waits for and which fill idle time. Source: arXiv
// 2401.10241 (ZB-H1 and ZB-V). Idle time of a rank, F, I and W of a chunk: ZB-H1 (p-1) max(F, I, F+I-W) if
// m >= p; ZB-V (p-1) F if F = I = W and m >= 2p.
#include <algorithm>

#include "trainer/pipeline/generators.h"

namespace shardscope::trainer::pipeline {

// As interleaved 1F1B with a shorter warm-up; from the r-th backward on each is followed by the oldest
// pending W.
void zero_bubble(RankWriter& w) {
    const int all = w.m * w.v, round = micro_batches_per_round(w.p, w.m);
    const int warm_up = std::min((w.v - 1) * round + w.p - 1 - w.r, all);
    int f = 0, b = 0;
    const auto forward = [&] { w.forward(f++ / round % w.v); };
    const auto backward = [&] {
        w.input(w.v - 1 - b / round % w.v);
        if (b++ >= w.r) w.weight();
    };
    repeat(warm_up, forward);
    repeat(all - warm_up, [&] {
        forward();
        backward();
    });
    repeat(warm_up, backward);
    w.weights();
}

// Planned for at least 2p - 1 micro-batches, of which those from m on are omitted.
void zb_v(RankWriter& w) {
    const int n = std::max(2 * w.p - 1, w.m);
    const auto backward = [&](int chunk) {
        w.input(chunk);
        w.weight(chunk);
    };
    const auto turn = [&] {
        w.forward(1);
        backward(1);
    };
    repeat(2 * (w.p - w.r) - 1, [&] { w.forward(0); });
    repeat(w.r, [&] {
        w.forward(1);
        w.forward(0);
    });
    repeat(w.p - w.r, turn);
    while (w.forwards(1) < w.forwards(0) || w.forwards(0) < n) {
        if (w.forwards(0) < n) w.forward(0);
        backward(0);
        turn();
    }
    repeat(w.r, [&] {
        w.input(0);
        w.input(1);
    });
    repeat(w.p - w.r, [&] { backward(0); });
    while (w.has_weight(1)) w.weight(1);
    while (w.has_weight(0)) w.weight(0);
}

}  // namespace shardscope::trainer::pipeline
