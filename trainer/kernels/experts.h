// Arithmetic of a mixture of experts (trainer/model/mixture_of_experts.h): the choice of experts, the order
// of the rows that they get, and matmuls whose weight depends on the row. T is float, Bf16 or Fp16; sums are
// fp32 and in a fixed order. Thread safe.
//
// A *choice* is a pair (token, expert); token t has choices [t k, (t + 1) k). Rows lie one group after the
// other; counts[g] is the number of rows of group g, which is of expert g % experts. Only these rows are read
// and written, whatever the size of the buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardscope::trainer::kernels {

// probabilities = softmax of each token's logits; chosen = its k most probable experts, the most probable
// first, of equal ones that with the smaller number; weights = their probabilities, divided by their sum if k
// is above 1.
void choose_experts(const float* logits, float* weights, std::int32_t* chosen, float* probabilities,
                    int tokens, int experts, int k);

// dlogits of the sum of weights . dweights and balance * probabilities . shares; shares [experts] may be
// null.
void choose_experts_backward(const float* dweights, const std::int32_t* chosen, const float* probabilities,
                             const float* shares, float balance, float* dlogits, int tokens, int experts,
                             int k);

// places[c] = the row of choice c if rows are ordered by expert and then by choice, or -1 if `capacity`
// choices before it have the same expert (0: no limit). counts[e] = the rows of expert e; shares[e], unless
// it is null, counts those without a row, too.
void route(const std::int32_t* chosen, std::int32_t* places, std::int32_t* counts, float* shares,
           std::size_t choices, int experts, std::int32_t capacity);

// rows[places[c]] = x[c / k] * weights[c], for choices that have a row; without weights, x. slopes[c] =
// x[c / k] . kept[places[c]], 0 without a row; null: not wanted.
template <class T>
void scatter_rows(const T* x, const T* kept, const float* weights, const std::int32_t* places, T* rows,
                  float* slopes, int choices, int k, int width);

// y[t] = sum over the choices c of token t that have a row of rows[places[c]] * weights[c].
template <class T>
void gather_rows(const T* rows, const float* weights, const std::int32_t* places, T* y, int choices, int k,
                 int width);

// The three matmuls of linear.h with a weight [out, in] for each expert, one after the other.
template <class T>
void grouped_linear_forward(const T* x, const T* w, T* y, std::span<const std::int32_t> counts, int in,
                            int out, int experts);
template <class T>
void grouped_linear_backward_input(const T* dy, const T* w, T* dx, std::span<const std::int32_t> counts,
                                   int in, int out, int experts);
template <class T>
void grouped_linear_backward_weight(const T* dy, const T* x, T* dw, std::span<const std::int32_t> counts,
                                    int in, int out, int experts);

}  // namespace shardscope::trainer::kernels
