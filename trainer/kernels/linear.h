// Linear layer, y = x wᵀ + b, and its three gradients. fp32, row-major; x [rows,in], y and dy [rows,out],
// w [out,in] as PyTorch keeps it, b [out]. Outputs are overwritten and must not overlap inputs. Thread safe.
#pragma once

namespace shardscope::trainer::kernels {

// b may be null.
void linear_forward(const float* x, const float* w, const float* b, float* y, int rows, int in, int out);

// dx = dy w
void linear_backward_input(const float* dy, const float* w, float* dx, int rows, int in, int out);

// dw = dyᵀ x
void linear_backward_weight(const float* dy, const float* x, float* dw, int rows, int in, int out);

// db[j] = sum of dy[i,j] over the rows
void linear_backward_bias(const float* dy, float* db, int rows, int out);

}  // namespace shardscope::trainer::kernels
