// Optimizer steps as PyTorch defines them, element by element, so that a shard can be stepped alone with the
// same bits. fp32; n elements; param and state are updated in place, grad is only read. Thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// torch.optim.SGD without dampening. With g = grad + weight_decay * param: the buffer becomes momentum *
// buffer + g (start it at 0), param -= lr * (nesterov ? g + momentum * buffer : buffer). buffer may be null:
// then momentum must be 0, and param -= lr * g.
void sgd(float* param, const float* grad, float* buffer, std::size_t n, double lr, double momentum,
         bool nesterov, double weight_decay);

// torch.optim.AdamW: param *= 1 - lr * weight_decay; m and v are the running means of grad and its square
// (start them at 0); param -= lr * mhat / (sqrt(vhat) + eps), with mhat = m / (1 - beta1^step), vhat = v / (1
// - beta2^step). step counts from 1.
void adamw(float* param, const float* grad, float* m, float* v, std::size_t n, double lr, double beta1,
           double beta2, double eps, double weight_decay, std::int64_t step);

}  // namespace shardscope::trainer::kernels
