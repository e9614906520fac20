// Tensor parallelism (Shoeybi et al., "Megatron-LM", arXiv 1909.08053, section 3): the ranks of a tensor
// group hold parts of the matmuls of a layer and compute parts of its heads, with the same samples.
//
// The matmuls come in pairs. The first is cut by the rows of its weight [out, in] (PyTorch: ColwiseParallel,
// for the transposed weight): each rank computes some of the outputs. What follows (an activation, the
// attention of some heads) stays with them. The second is cut by its columns (RowwiseParallel): each rank
// computes a part of the sum of every output, and an all-reduce adds the parts; its bias is added once, after
// that. In the backward, the gradient of the first one's input is a sum over the ranks, too. With activations
// of N = batch * context * width elements and n ranks, a block has two pairs:
//
//     all-reduces of N: 2 in the forward, 2 in the backward, 2 more if it is recomputed (checkpointed whole)
//     sent by a rank:   4 * 2 (n - 1) / n * N elements in a step
//
// Norms, dropout and the residual are the same on each rank. With sequence parallelism (Korthikanti et al.:
// arXiv 2205.05198, section 4.2) each rank has 1 / n of the rows there instead: a pair begins with an
// all-gather and ends with a reduce-scatter, and the backward mirrors both. That is as many bytes as the
// all-reduces. The gradients of the parameters there are sums over the ranks: one all-reduce each, before the
// data axes reduce them or the optimizer reads them. Here a rank has n-ths of all rows, sample after sample,
// where Megatron cuts each sample.
//
// Where a group has more ranks than there are k heads of keys and values, of d features, n / k neighbours
// share one, and each still has rows of its own of their weights: k d / n features of keys and values for all
// R = batch * context rows. Between the first matmul and the attention the ranks gather all of them, and each
// takes its head; in the backward its gradients are summed with those of the ranks that share it (NVIDIA's
// Megatron-LM, megatron/core/transformer/attention.py, which for num_query_groups below the tensor size
// gathers the queries, too). For each layer:
//
//     an all-gather of 2 R k d in the forward, one more if it is recomputed; a reduce-scatter of 2 R k d in
//     the backward; sent by a rank: (n - 1) / n * 2 R k d each
//
// The vocabulary is divided, too (vocabulary_parallel.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// The cuts of the two matmuls of a pair; without tensor parallelism (`ranks` is 1) nothing is cut.
// `sections`: rows that are cut one by one, such as queries, keys and values.
TensorCut first_of_pair(int ranks, std::vector<std::int64_t> sections = {});
TensorCut second_of_pair(int ranks);
// A parameter that is whole, and whose gradient each rank computes from all rows: the bias of the second.
TensorCut whole_in_pair(int ranks);

// Element `element` of the part that the rank at a place of its group (TensorCut::group) has of a parameter,
// in the whole parameter; its neighbours up to element `end` of the part are neighbours there.
struct WholeRun {
    std::int64_t whole = 0, end = 0;
};
WholeRun whole_run(const Parameter& parameter, std::int64_t element, int place);

// Joins the ranks' values over the tensor group, in place.
void reduce_over_group(Graph& graph, const plan::Tensor& x, plan::Reduction reduction = plan::Reduction::sum);

// The input of a pair: `x` itself, or the rows of all ranks. In the backward its gradient is summed over the
// group.
plan::Tensor enter_tensor_region(Graph& graph, const plan::Tensor& x, int ranks);

// The output of a pair: the sum of `y` over the group, or this rank's rows of it. The backward is
// gather_gradient.
plan::Tensor leave_tensor_region(Graph& graph, const plan::Tensor& y);
// The gradient of y, of which `dy` is that of leave_tensor_region's result.
plan::Tensor gather_gradient(Graph& graph, const plan::Tensor& dy);

// The keys and values of a rank's queries, where `ranks` neighbours share a head of `width` features:
// qkv [rows, queries + 2 width / ranks] becomes [rows, queries + 2 width].
struct SharedKvHead {
    std::int64_t queries = 0, width = 0;
    int ranks = 1;
};
plan::Tensor gather_kv_head(Graph& graph, const std::string& path, plan::Tensor qkv,
                            const SharedKvHead& head);

// y [rows, width] += bias, in place.
void add_bias(Graph& graph, const plan::Tensor& y, const plan::Arg& bias, std::int64_t width);

// Marks the parameters whose gradients each rank has computed from its rows alone
// (Parameter::partial_gradient).
void mark_partial_gradients(Module& root);

}  // namespace shardscope::trainer::model
