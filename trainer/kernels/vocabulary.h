// Arithmetic of a vocabulary whose entries are divided among the ranks of a tensor group: a rank's tokens,
// and the parts of the cross-entropy between its sums over the group (trainer/model/vocabulary_parallel.h).
// fp32; sums in the order of the columns. Thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// local[i] = tokens[i] - first where that is an entry of this rank, of `entries`; `entries` where another
// rank has it; -1 where tokens[i] is negative. inside[i], unless it is null: the same, but 0 for what is not
// of this rank.
void local_tokens(const std::int32_t* tokens, std::int32_t* local, std::int32_t* inside, std::size_t n,
                  std::int64_t first, int entries);

// y [rows, width]: sets row i to 0 where local[i] is not an entry of this rank.
template <class T>
void zero_rows(T* y, const std::int32_t* local, int rows, int width, int entries);

// largest[i] = the largest of the first `valid` of the `classes` logits of row i; the rest is padding. If
// valid is 0, the lowest number.
void largest_logit(const float* logits, float* largest, int rows, int classes, int valid);

// With x = logits - largest: exponentials = e^x, 0 in the padding; sums[i] = their sum over row i;
// target_logits[i] = x of the target, or 0 if targets[i] (as local_tokens has them) is not of this rank.
// exponentials may be logits.
void exp_logits(const float* logits, const float* largest, const std::int32_t* targets, float* exponentials,
                float* sums, float* target_logits, int rows, int classes, int valid);

// With sums and target_logits of all ranks: exponentials become probabilities, and *mean = the mean of
// log sum - target logit over the rows with a target (`counted`; 0: all rows have one).
void vocabulary_loss(float* exponentials, const float* sums, const float* target_logits,
                     const std::int32_t* targets, double* mean, int rows, int classes, int counted);

}  // namespace shardscope::trainer::kernels
