// The kernels of a mixture of experts on a CUDA device: trainer/kernels/experts.h, with sums in another fixed
// order. Counts are read on the device, so that the host waits for nothing.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

inline constexpr int kMostExperts = 1024;

void choose_experts(const DeviceContext& device, const float* logits, float* weights, std::int32_t* chosen,
                    float* probabilities, int tokens, int experts, int k);
void choose_experts_backward(const DeviceContext& device, const float* dweights, const std::int32_t* chosen,
                             const float* probabilities, const float* shares, float balance, float* dlogits,
                             int tokens, int experts, int k);
void route(const DeviceContext& device, const std::int32_t* chosen, std::int32_t* places,
           std::int32_t* counts, float* shares, int choices, int experts, int capacity);

// A block for each choice, or token.
template <class T>
void scatter_rows(const DeviceContext& device, const T* x, const T* kept, const float* weights,
                  const std::int32_t* places, T* rows, float* slopes, int choices, int k, int width);
template <class T>
void gather_rows(const DeviceContext& device, const T* rows, const float* weights, const std::int32_t* places,
                 T* y, int choices, int k, int width);

// rows: of the buffers; those beyond the counts' sum are left alone.
struct GroupedShape {
    int rows = 0, in = 0, out = 0, experts = 0, groups = 0;
};
template <class T>
void grouped_linear_forward(const DeviceContext& device, const T* x, const T* w, T* y,
                            const std::int32_t* counts, const GroupedShape& shape);
template <class T>
void grouped_linear_backward_input(const DeviceContext& device, const T* dy, const T* w, T* dx,
                                   const std::int32_t* counts, const GroupedShape& shape);
template <class T>
void grouped_linear_backward_weight(const DeviceContext& device, const T* dy, const T* x, T* dw,
                                    const std::int32_t* counts, const GroupedShape& shape);

}  // namespace shardscope::trainer::cuda
