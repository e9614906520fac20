// Linear layer, y = x wᵀ + b, and its three gradients. T is float, Bf16 or Fp16 (sums in fp32, rounded once),
// row-major; x [rows,in], y and dy [rows,out], w [out,in] as in PyTorch, b [out]. Outputs are overwritten and
// must not overlap inputs. Thread safe.
#pragma once

#include <type_traits>

namespace shardscope::trainer::kernels {

// b may be null.
template <class T>
void linear_forward(const T* x, const T* w, const std::type_identity_t<T>* b, T* y, int rows, int in,
                    int out);

// The same for rows so few that a matmul would spend its time on packing the weights, as when a text is
// continued: up to kFewRows rows of floats read each weight once. Sums are in another order, so bits differ.
inline constexpr int kFewRows = 4;
template <class T>
void linear_forward_of_few(const T* x, const T* w, const std::type_identity_t<T>* b, T* y, int rows, int in,
                           int out);

// dx = dy w
template <class T>
void linear_backward_input(const T* dy, const T* w, T* dx, int rows, int in, int out);

// dw = dyᵀ x
template <class T>
void linear_backward_weight(const T* dy, const T* x, T* dw, int rows, int in, int out);

// db[j] = sum of dy[i,j] over the rows
template <class T>
void linear_backward_bias(const T* dy, T* db, int rows, int out);

}  // namespace shardscope::trainer::kernels
