// Tensor parallelism (Shoeybi et al., "Megatron-LM", arXiv 1909.08053, section 3): the ranks of a tensor
// group hold parts of the matmuls of a layer and compute parts of its heads, with the same samples.
//
// A pair of matmuls shares one forward and one backward all-reduce. The first is cut by the rows of its
// weight [out, in] (PyTorch: ColwiseParallel, for the transposed weight): each rank computes some of the
// outputs. What follows (an activation, the attention of some heads) stays with them. The second is cut by
// its columns (RowwiseParallel): each rank computes a part of the sum of every output, and an all-reduce adds
// the parts; its bias is added once, after that. In the backward, the gradient of the first one's input is a
// sum over ranks, too. With activations of N = batch * context * width elements and n ranks, a block has two
// pairs:
//
//     all-reduces of N: 2 in the forward, 2 in the backward, 2 more if it is recomputed (checkpointed whole)
//     sent by a rank:   4 * 2 (n - 1) / n * N elements in a step
//
// Norms and position embeddings are whole on each rank, and the ranks compute the same values for them; the
// vocabulary is divided, too (vocabulary_parallel.h).
#pragma once

#include "trainer/model/module.h"

namespace shardscope::trainer {

// The cuts of the two matmuls of a pair; without tensor parallelism (`ranks` is 1) nothing is cut.
// `sections`: rows that are cut one by one, such as queries, keys and values.
TensorCut first_of_pair(int ranks, std::vector<std::int64_t> sections = {});
TensorCut second_of_pair(int ranks);

// Joins the ranks' values over the tensor group, in place.
void reduce_over_group(Graph& graph, const Tensor& x, Reduction reduction = Reduction::sum);

// The input of a pair: `x` itself. In the backward its gradient is summed over the tensor group.
Tensor enter_tensor_region(Graph& graph, const Tensor& x, int ranks);

// The output of a pair: sums `y` over the tensor group, in place, and adds the bias (buffer < 0: none). The
// backward has nothing to do for either.
void leave_tensor_region(Graph& graph, const Tensor& y, const Arg& bias, std::int64_t width);

}  // namespace shardscope::trainer
