// ReLU, GELU (the tanh form of GPT-2) and gated SiLU, forward and backward, element by element. T is float or
// Bf16 (arithmetic in fp32); n elements; y may be an input and dx may be dy; no other overlap. Thread safe.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// y = max(x, 0); a NaN stays NaN.
template <class T>
void relu_forward(const T* x, T* y, std::size_t n);

// dx = dy where y > 0, else 0. y is the result of relu_forward (its input works as well: the sign is the
// same).
template <class T>
void relu_backward(const T* dy, const T* y, T* dx, std::size_t n);

// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Hendrycks, Gimpel: "Gaussian error linear units", 2016.
template <class T>
void gelu_forward(const T* x, T* y, std::size_t n);

// dx = dy * dy/dx at x, the input of gelu_forward.
template <class T>
void gelu_backward(const T* dy, const T* x, T* dx, std::size_t n);

// y = gate * sigmoid(gate) * up: the gate inside SwiGLU. Shazeer: "GLU variants improve transformer", 2020.
template <class T>
void silu_mul_forward(const T* gate, const T* up, T* y, std::size_t n);

// dgate may be dy or gate, dup may be dy or up.
template <class T>
void silu_mul_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup, std::size_t n);

}  // namespace shardscope::trainer::kernels
