// SGD and AdamW; see optimizer.h.
#include "trainer/kernels/optimizer.h"

#include <cmath>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

SHARDSCOPE_VECTOR_CLONES
void sgd(float* param, const float* grad, float* buffer, std::size_t n, double lr, double momentum,
         bool nesterov, double weight_decay) {
    const float rate = static_cast<float>(lr);
    const float keep = static_cast<float>(momentum);
    const float decay = static_cast<float>(weight_decay);
    if (!buffer) {
        for (std::size_t i = 0; i < n; ++i) param[i] -= rate * (grad[i] + decay * param[i]);
    } else if (nesterov) {
        for (std::size_t i = 0; i < n; ++i) {
            const float g = grad[i] + decay * param[i];
            buffer[i] = keep * buffer[i] + g;
            param[i] -= rate * (g + keep * buffer[i]);
        }
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            buffer[i] = keep * buffer[i] + (grad[i] + decay * param[i]);
            param[i] -= rate * buffer[i];
        }
    }
}

SHARDSCOPE_VECTOR_CLONES
void adamw(float* param, const float* grad, float* m, float* v, std::size_t n, double lr, double beta1,
           double beta2, double eps, double weight_decay, std::int64_t step) {
    // What does not depend on the element is worked out in double, as PyTorch does.
    const double correction1 = 1.0 - std::pow(beta1, static_cast<double>(step));
    const double correction2 = 1.0 - std::pow(beta2, static_cast<double>(step));
    const float keep = static_cast<float>(1.0 - lr * weight_decay);
    const float fresh1 = static_cast<float>(1.0 - beta1);
    const float fresh2 = static_cast<float>(1.0 - beta2);
    const float decay2 = static_cast<float>(beta2);
    const float step_size = static_cast<float>(lr / correction1);
    const float root2 = static_cast<float>(1.0 / std::sqrt(correction2));
    const float floor = static_cast<float>(eps);
    for (std::size_t i = 0; i < n; ++i) {
        const float g = grad[i];
        const float first = m[i] + fresh1 * (g - m[i]);
        const float second = decay2 * v[i] + fresh2 * (g * g);
        m[i] = first;
        v[i] = second;
        param[i] = param[i] * keep - step_size * (first / (std::sqrt(second) * root2 + floor));
    }
}

}  // namespace shardscope::trainer::kernels
