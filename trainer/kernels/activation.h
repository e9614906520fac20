// The activations of activations.def and gated SiLU, forward and backward, element by element. T is float,
// Bf16 or Fp16 (arithmetic in fp32); n elements; y may be an input and dx may be dy; no other overlap. Thread
// safe.
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// relu_forward, relu_backward and so on; `kept` is the forward's input or result, as the row says.
#define ACTIVATION(name, ...)                             \
    template <class T>                                    \
    void name##_forward(const T* x, T* y, std::size_t n); \
    template <class T>                                    \
    void name##_backward(const T* dy, const T* kept, T* dx, std::size_t n);
#include "trainer/kernels/activations.def"
#undef ACTIVATION

// y = gate * sigmoid(gate) * up: the gate inside SwiGLU. Shazeer: "GLU variants improve transformer", 2020.
template <class T>
void silu_mul_forward(const T* gate, const T* up, T* y, std::size_t n);

// dgate may be dy or gate, dup may be dy or up.
template <class T>
void silu_mul_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup, std::size_t n);

}  // namespace shardscope::trainer::kernels
