// Optimizer steps as PyTorch defines them (LARS, LAMB and NovoGrad: their papers), element by element, so
// that stepping a shard alone gives the same bits. fp32; n elements; param and state are updated in place,
// grad is only read. State starts at 0; `step` counts from 1. Thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// torch.optim.SGD without dampening. With g = grad + weight_decay * param: the buffer becomes momentum *
// buffer + g (start it at 0), param -= lr * (nesterov ? g + momentum * buffer : buffer). buffer may be null:
// then momentum must be 0, and param -= lr * g.
void sgd(float* param, const float* grad, float* buffer, std::size_t n, double lr, double momentum,
         bool nesterov, double weight_decay);

struct AdamOptions {
    double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};

// torch.optim.Adam (Kingma, Ba, 2015): with g = grad + weight_decay * param, m and v are the running means of
// g and its square; param -= lr * mhat / (sqrt(vhat) + eps), with mhat = m / (1 - beta1^step), vhat = v / (1
// - beta2^step).
void adam(float* param, const float* grad, float* m, float* v, std::size_t n, const AdamOptions& options,
          std::int64_t step);

// torch.optim.AdamW (Loshchilov, Hutter, 2019): param *= 1 - lr * weight_decay instead, and g = grad.
void adamw(float* param, const float* grad, float* m, float* v, std::size_t n, const AdamOptions& options,
           std::int64_t step);

// LARS (You, Gitman, Ginsburg: "Large batch training of convolutional networks", 2017) in the form of SGD:
// with g = rate * (grad + weight_decay * param) in place of sgd's g; `rate` is lars_rate of the whole
// parameter.
void lars(float* param, const float* grad, float* buffer, std::size_t n, double lr, double momentum,
          bool nesterov, double weight_decay, float rate);

// trust * |param| / (|grad| + weight_decay * |param|), from the squares of the two norms; 1 if either is 0.
float lars_rate(double param_square, double grad_square, double trust, double weight_decay);

// LAMB (You et al.: "Large batch optimization for deep learning", 2020), first half: m and v as in AdamW;
// grad becomes the update mhat / (sqrt(vhat) + eps) + weight_decay * param. options.lr is not used.
void lamb_update(float* grad, const float* param, float* m, float* v, std::size_t n,
                 const AdamOptions& options, std::int64_t step);

// Second half: param -= lr * ratio * update; `ratio` is lamb_ratio of the whole parameter.
void lamb(float* param, const float* update, std::size_t n, double lr, float ratio);

// |param| / |update| from their squares; 1 if either is 0.
float lamb_ratio(double param_square, double update_square);

// NovoGrad (Ginsburg et al.: "Stochastic gradient methods with layer-wise adaptive moments for training of
// deep networks", 2019), first half: the second moment of a whole parameter is one number, |grad|^2 at the
// first step and then beta2 * moment + (1 - beta2) * |grad|^2.
float novograd_moment(float moment, double grad_square, double beta2, std::int64_t step);

// Second half: m = beta1 * m + (grad / (sqrt(moment) + eps) + weight_decay * param), param -= lr * m.
// options.beta2 is not used.
void novograd(float* param, const float* grad, float* m, float moment, std::size_t n,
              const AdamOptions& options);

// 1-bit Adam and 1-bit LAMB after their warm-up, in which v was frozen after `frozen` steps (Tang et al.:
// "1-bit Adam: communication efficient large-scale training with Adam's convergence speed", 2021; Li et al.:
// "1-bit LAMB", 2021). Corrections of m go on, that of v stays. A number whose v is 0 has no momentum and
// does not move.

// Freezes v of a whole parameter: what is below 1e-10 of its mean becomes 0. It had no gradient (a token that
// did not occur) or only rounding (the bias of keys, which a softmax ignores): a bit cannot say 0, and
// +-scale divided by the root of such a v would be a step without bound.
void onebit_freeze(float* v, std::size_t n);

// The momentum of this rank alone: m = beta1 * m + (1 - beta1) * share * grad.
void onebit_momentum(float* m, const float* grad, const float* v, std::size_t n, double beta1, double share);

// adamw's step with the momentum of all ranks.
void onebit_adam(float* param, const float* m, const float* v, std::size_t n, const AdamOptions& options,
                 std::int64_t step, std::int64_t frozen);

// The mean of LAMB's ratios during the warm-up.
float onebit_lamb_average(float average, float ratio);

// A whole parameter: the gradient that all ranks have had together follows from m and `last`, m of the step
// before, and goes on into `fresh`, a second moment that is not frozen. param -= lr * average * factor *
// (mhat / (sqrt(vhat) + eps) + weight_decay * param), where the factor is how much larger the frozen
// denominator may be than the fresh one; it changes by a tenth a step at most, between 1/2 and 4. `average`
// below 0: the parameter is not adapted.
void onebit_lamb(float* param, const float* m, const float* last, const float* v, float* fresh, std::size_t n,
                 const AdamOptions& options, std::int64_t step, std::int64_t frozen, float average,
                 float& factor);

}  // namespace shardscope::trainer::kernels
