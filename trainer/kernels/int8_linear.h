// A Linear whose weight is held in int8, with a scale for each of its rows (symmetric, vector-wise: Dettmers
// et al., "LLM.int8()", arXiv 2208.07339; the activations stay fp32):
//
//     scale[j] = max over i of |w[j,i]| / 127        q[j,i] = w[j,i] / scale[j], rounded to nearest even
//     y[r,j]   = scale[j] * sum over i of x[r,i] q[j,i] + bias[j]
//
// So a weight is off by at most scale/2, and an output by scale/2 * sum |x|. Row-major; x [rows,in], y
// [rows,out], w and q [out,in], scales and bias [out]. Thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// False if a weight is not finite; q and scales are then undefined. A row of zeros has the scale 0.
bool quantize_rows(const float* w, std::int8_t* q, float* scales, std::size_t rows, std::size_t in);

// Weights are converted in registers for as many rows as linear_forward_of_few takes, else some rows of them
// at a time. y is overwritten; bias may be null.
void int8_linear_forward(const float* x, const std::int8_t* q, const float* scales, const float* bias,
                         float* y, int rows, int in, int out);

}  // namespace shardscope::trainer::kernels
