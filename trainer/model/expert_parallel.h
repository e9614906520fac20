// Expert parallelism (Lepikhin et al., "GShard": arXiv 2006.16668, section 3; Fedus et al., "Switch
// Transformers": arXiv 2101.03961, section 2.2): the experts of a block are divided among the e ranks of an
// expert group, which read different samples or, in a context group, have other tokens of them. A rank has
// E/e of the experts, whole; the router and all else is on every rank. Expert i is on the rank at place
// i div (E/e).
//
// A rank's T tokens have T k rows, in the order of their experts and so of these experts' ranks. They are
// sent there (dispatch), and the results are sent back (combine); the backward does both again, the other way
// round. With rows of h elements of w bytes, count(i, j) of them from rank i to rank j:
//
//     sent by rank i:   sum over j != i of count(i, j) h w, in each of 4 all_to_alls of a block
//     uniform routing:  T k h w (e-1)/e
//     and once, before them: the E counts of int32, with pieces of equal size
//
// The host reads the counts before it enqueues the rows, as PyTorch's all_to_all_single does with its splits.
// What arrives is in the order of the ranks that sent it, and of each in the order of the experts: E groups
// of rows, group g of expert g mod (E/e). Buffers have room for the worst case, all tokens of all ranks: e T
// min(k, E/e) rows, or E C with a capacity of C; only rows that exist are sent and computed.
//
// Without drops the results are those of one rank with all samples, but for the order of sums. With a
// capacity they are not: a rank drops tokens by its own T.
//
// Gradients of experts are sums over the group already, because a rank has computed with the rows of all.
// Their data-parallel group has the ranks with the same experts, 1/e of the others'; the divisor is the same.
// Ranks of a tensor group do not divide experts: each has those of its place whole and, with sequence
// parallelism, sends rows of its own; without, all of them do the same.
#pragma once

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// The part of the experts' weights that a rank of an expert group has.
TensorCut expert_cut(int ranks);

// How many rows go where, in one block of one micro-batch. `to_ranks` and `from_ranks` are the numbers of
// rows by expert, on the host.
struct ExpertExchange {
    plan::Tensor to_ranks, from_ranks;
    Routed here, there;  // the rows in this rank's order, and those that its experts get
};

// Exchanges the counts of the rows `here`; `most`: rows that may arrive. Waits for them on the host.
ExpertExchange exchange_counts(Graph& graph, const Routed& here, std::int64_t most);

// The rows [.., width] that this rank's experts get; and the other way round, the results for its own.
plan::Tensor send_to_experts(Graph& graph, const plan::Tensor& rows, const ExpertExchange& exchange,
                             std::int64_t width);
plan::Tensor send_back(Graph& graph, const plan::Tensor& rows, const ExpertExchange& exchange,
                       std::int64_t width);

// Adds up the numbers of choices of each expert over all ranks that have other tokens.
void sum_over_tokens(Graph& graph, const plan::Tensor& shares);

}  // namespace shardscope::trainer::model
