// Embedding, head and loss of a vocabulary that is divided among the ranks of a tensor group (Shoeybi et al.,
// "Megatron-LM", arXiv 1909.08053, section 3): rank t has the entries [t * share, (t + 1) * share), with
// share = vocabulary / ranks rounded up; what lies beyond the vocabulary is padding, which no token reads and
// no probability includes. With R = batch * context rows of `width`:
//
//     embedding: a rank looks up its own entries and has zeros elsewhere; one all-reduce of R * width.
//     Nothing in the
//                backward.
//     head:      each rank computes the logits of its entries, [R, share]; the gradient of its input is
//     summed over the
//                group, one all-reduce of R * width.
//     loss:      the logits stay where they are. Three all-reduces of R fp32: the largest logit of each row,
//     the sums of
//                e^(logit - largest), and the target's logit. Nothing in the backward: p - 1 at the target,
//                else p.
#pragma once

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// How a rank's tokens look in its part of the vocabulary (kernels/vocabulary.h), int32 each.
struct LocalTokens {
    plan::Tensor local;   // entries of this rank; `entries` for those of the others; -1 for none
    plan::Tensor inside;  // the same, with 0 for what is not of this rank: rows that can be looked up
};

// The entries that a rank has.
std::int64_t vocabulary_share(std::int64_t vocabulary, int ranks);

LocalTokens local_tokens(Graph& graph, const plan::Tensor& tokens, std::int64_t entries, bool inside);

// y [rows, width]: sets to 0 what belongs to the entries of other ranks.
void zero_other_rows(Graph& graph, const plan::Tensor& y, const plan::Tensor& local, std::int64_t width,
                     std::int64_t entries);

// As cross_entropy_loss; fp32 logits [rows, share] of this rank's part of `vocabulary` entries.
plan::Tensor vocabulary_parallel_loss(Graph& graph, const plan::Tensor& logits, const plan::Tensor& targets,
                                      std::int64_t vocabulary, std::int64_t counted);

}  // namespace shardscope::trainer::model
