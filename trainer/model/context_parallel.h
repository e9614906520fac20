// Context parallelism: the ranks of a context group have other tokens of the same samples (kernels/
// context_cut.h) and each a copy of the model. Everything but attention works on tokens alone; positions,
// targets and dropout follow the tokens. Attention needs the keys and values of all: with batch B, context S,
// G heads of keys and values of d features and c ranks, a rank's own are M = 2 B S/c G d elements. For each
// layer of a step a rank sends
//
//                allgather                         ring
//     forward    (c - 1) M, an all-gather of c M   c - 1 messages of M
//     backward   (c - 1) M, a reduce-scatter       c - 1 messages of M, and c of M gradients in fp32
//
// and what the forward sends once more if it is recomputed. allgather (Llama 3, arXiv 2407.21783,
// section 3.3.2) keeps the gathered keys and values for the backward. In the ring (Liu et al.: arXiv
// 2310.01889; PyTorch's context_parallel) a rank attends to its own keys while it sends them to the next rank
// and receives those of the previous one, and so on; the results are merged by the logarithms of their sums.
// In the backward the keys go round again, and their gradients, to which each rank adds, follow them one step
// behind: the last message brings them home. Where attention is causal, each rank has a chunk from the head
// and one from the tail of a sequence, so that all have as many pairs of a query and a key that it sees, in
// every step of the ring.
//
// Gradients of parameters are sums over the tokens, so over the context group, too: it is part of the groups
// that reduce and shard them (plan/mesh.h). The loss divides by the tokens of all ranks.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/model/attention.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// The tokens of each sample that a rank has in this forward.
inline std::int64_t own_tokens(const Graph& graph, std::int64_t context) {
    return graph.cached ? graph.cached->tokens : context / graph.context;
}

// The places in their sequence of the rank's tokens, and their rows of a table of `width` columns.
plan::Tensor own_positions(Graph& graph, std::int64_t context);
void take_own_rows(Graph& graph, const plan::Arg& rows, const plan::Tensor& positions, const plan::Arg& table,
                   std::int64_t width, plan::DType dtype);

// Attention between queries, keys and values of the rank's own tokens and those of the whole context group.
plan::Tensor attend_in_context_group(Graph& graph, const std::string& path, const plan::Tensor& qkv,
                                     const AttentionShape& shape);

}  // namespace shardscope::trainer::model
