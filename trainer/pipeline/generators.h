// The schedules, each a function that writes the list of one rank. Rules and sources are where they are
// defined; their limits and closed forms are in schedule_table.cpp.
#pragma once

#include "trainer/pipeline/rank_writer.h"

namespace shardscope::trainer::pipeline {

void gpipe(RankWriter& w);
void one_forward_one_backward(RankWriter& w);
void interleaved(RankWriter& w);
void looped_bfs(RankWriter& w);
void zero_bubble(RankWriter& w);  // ZB-H1, and with v > 1 PyTorch's InterleavedZeroBubble
void zb_v(RankWriter& w);
void dualpipe_v(RankWriter& w);

// R, the micro-batches that interleaved schedules take through a chunk before the next chunk: the m
// micro-batches are divided into max(1, m div p) rounds.
inline int micro_batches_per_round(int p, int m) {
    return m / (m < p ? 1 : m / p);
}

}  // namespace shardscope::trainer::pipeline
