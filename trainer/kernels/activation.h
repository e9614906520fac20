// ReLU and GELU (the tanh form of GPT-2), forward and backward, element by element. fp32; n elements; y may
// be x, dx may be dy, otherwise no overlap. Thread safe.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// y = max(x, 0); a NaN stays NaN.
void relu_forward(const float* x, float* y, std::size_t n);

// dx = dy where y > 0, else 0. y is what relu_forward gave (its input serves as well: the sign is the same).
void relu_backward(const float* dy, const float* y, float* dx, std::size_t n);

// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
void gelu_forward(const float* x, float* y, std::size_t n);

// dx = dy * dy/dx at x, the input of gelu_forward.
void gelu_backward(const float* dy, const float* x, float* dx, std::size_t n);

}  // namespace shardscope::trainer::kernels
