// DualPipeV: DualPipe of DeepSeek-V3 (arXiv 2412.19437) cut in half, so that each rank holds a stage of the
// way down and one of the way up the V; source: deepseek-ai/DualPipe, dualpipev.py. Forwards run together
// with backwards of the other stage, which hides the communication of both. Idle time of a rank if F = I >=
// W, m >= 2p and a pair takes F + B: (p-1)((F+B) + B - 3W), B = I + W of a chunk; no bound is known
// otherwise.
#include "trainer/pipeline/generators.h"

namespace shardscope::trainer::pipeline {

void dualpipe_v(RankWriter& w) {
    const int behind = w.p - 1 - w.r;  // ranks
    repeat(2 * behind, [&] { w.forward(0); });
    repeat(w.r + 1, [&] {
        w.forward(0);
        w.forward(1);
    });
    repeat(behind, [&] {
        w.input(1);
        w.weight();
        w.forward(1);
    });
    for (int i = 0; i < w.m - 2 * w.p + w.r + 1; ++i) {
        if (i == 0 && behind == 0) {  // the last rank's first backward needs the forward of the same cell
            w.forward(0);
            w.backward(1);
        } else {
            w.forward_with_backward(0, 1);
        }
        w.forward_with_backward(1, 0);
    }
    repeat(behind, [&] {
        w.backward(1);
        w.forward_with_backward(1, 0);
    });
    for (int i = 0; i < 2 * (w.r + 1); ++i) {  // the second half leaves W for the idle time that follows
        const int chunk = i % 2 == 0 ? 1 : 0;
        if (i <= w.r) {
            w.backward(chunk);
        } else {
            w.input(chunk);
        }
    }
    repeat(behind, [&] {
        w.weight();
        w.input(0);
    });
    w.weights();
}

}  // namespace shardscope::trainer::pipeline
