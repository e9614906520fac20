// The optimizers' loops; see optimizer.h.
#include "trainer/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

// gradient(i) is the g of sgd.
template <class Gradient>
SHARDSCOPE_INLINE void momentum_step(float* param, float* buffer, std::size_t n, float rate, float keep,
                                     bool nesterov, Gradient gradient) {
    if (!buffer) {
        for (std::size_t i = 0; i < n; ++i) param[i] -= rate * gradient(i);
    } else if (nesterov) {
        for (std::size_t i = 0; i < n; ++i) {
            const float g = gradient(i);
            buffer[i] = keep * buffer[i] + g;
            param[i] -= rate * (g + keep * buffer[i]);
        }
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            buffer[i] = keep * buffer[i] + gradient(i);
            param[i] -= rate * buffer[i];
        }
    }
}

// Factors that do not depend on the element, computed in double as in PyTorch.
struct AdamFactors {
    AdamFactors(const AdamOptions& options, std::int64_t step)
        : fresh1(static_cast<float>(1.0 - options.beta1)),
          fresh2(static_cast<float>(1.0 - options.beta2)),
          decay2(static_cast<float>(options.beta2)),
          correction1(1.0 - std::pow(options.beta1, static_cast<double>(step))),
          root2(
              static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, static_cast<double>(step))))),
          floor(static_cast<float>(options.eps)) {}

    // m / (sqrt(vhat) + eps), after m and v are updated with g.
    SHARDSCOPE_INLINE float direction(float g, float& m, float& v) const {
        const float first = m + fresh1 * (g - m);
        const float second = decay2 * v + fresh2 * (g * g);
        m = first;
        v = second;
        return first / (std::sqrt(second) * root2 + floor);
    }

    float fresh1, fresh2, decay2;
    double correction1;
    float root2, floor;
};

}  // namespace

SHARDSCOPE_VECTOR_CLONES
void sgd(float* param, const float* grad, float* buffer, std::size_t n, double lr, double momentum,
         bool nesterov, double weight_decay) {
    const float decay = static_cast<float>(weight_decay);
    momentum_step(param, buffer, n, static_cast<float>(lr), static_cast<float>(momentum), nesterov,
                  [=](std::size_t i) SHARDSCOPE_INLINE_LAMBDA { return grad[i] + decay * param[i]; });
}

SHARDSCOPE_VECTOR_CLONES
void adam(float* param, const float* grad, float* m, float* v, std::size_t n, const AdamOptions& options,
          std::int64_t step) {
    const AdamFactors factors(options, step);
    const float decay = static_cast<float>(options.weight_decay);
    const float step_size = static_cast<float>(options.lr / factors.correction1);
    for (std::size_t i = 0; i < n; ++i) {
        param[i] -= step_size * factors.direction(grad[i] + decay * param[i], m[i], v[i]);
    }
}

SHARDSCOPE_VECTOR_CLONES
void adamw(float* param, const float* grad, float* m, float* v, std::size_t n, const AdamOptions& options,
           std::int64_t step) {
    const AdamFactors factors(options, step);
    const float keep = static_cast<float>(1.0 - options.lr * options.weight_decay);
    const float step_size = static_cast<float>(options.lr / factors.correction1);
    for (std::size_t i = 0; i < n; ++i) {
        param[i] = param[i] * keep - step_size * factors.direction(grad[i], m[i], v[i]);
    }
}

SHARDSCOPE_VECTOR_CLONES
void lars(float* param, const float* grad, float* buffer, std::size_t n, double lr, double momentum,
          bool nesterov, double weight_decay, float rate) {
    const float decay = static_cast<float>(weight_decay);
    momentum_step(param, buffer, n, static_cast<float>(lr), static_cast<float>(momentum), nesterov,
                  [=](std::size_t i)
                      SHARDSCOPE_INLINE_LAMBDA { return rate * (grad[i] + decay * param[i]); });
}

float lars_rate(double param_square, double grad_square, double trust, double weight_decay) {
    if (param_square == 0.0 || grad_square == 0.0) return 1.0f;
    const double norm = std::sqrt(param_square);
    return static_cast<float>(trust * norm / (std::sqrt(grad_square) + weight_decay * norm));
}

SHARDSCOPE_VECTOR_CLONES
void lamb_update(float* grad, const float* param, float* m, float* v, std::size_t n,
                 const AdamOptions& options, std::int64_t step) {
    const AdamFactors factors(options, step);
    const float decay = static_cast<float>(options.weight_decay);
    const float share = static_cast<float>(1.0 / factors.correction1);
    for (std::size_t i = 0; i < n; ++i) {
        grad[i] = share * factors.direction(grad[i], m[i], v[i]) + decay * param[i];
    }
}

SHARDSCOPE_VECTOR_CLONES
void lamb(float* param, const float* update, std::size_t n, double lr, float ratio) {
    const float rate = static_cast<float>(lr * static_cast<double>(ratio));
    for (std::size_t i = 0; i < n; ++i) param[i] -= rate * update[i];
}

float lamb_ratio(double param_square, double update_square) {
    if (param_square == 0.0 || update_square == 0.0) return 1.0f;
    return static_cast<float>(std::sqrt(param_square / update_square));
}

float novograd_moment(float moment, double grad_square, double beta2, std::int64_t step) {
    if (step == 1) return static_cast<float>(grad_square);
    return static_cast<float>(beta2 * static_cast<double>(moment) + (1.0 - beta2) * grad_square);
}

SHARDSCOPE_VECTOR_CLONES
void novograd(float* param, const float* grad, float* m, float moment, std::size_t n,
              const AdamOptions& options) {
    const float scale = static_cast<float>(1.0 / (std::sqrt(static_cast<double>(moment)) + options.eps));
    const float keep = static_cast<float>(options.beta1), rate = static_cast<float>(options.lr);
    const float decay = static_cast<float>(options.weight_decay);
    for (std::size_t i = 0; i < n; ++i) {
        m[i] = keep * m[i] + (scale * grad[i] + decay * param[i]);
        param[i] -= rate * m[i];
    }
}

void onebit_freeze(float* v, std::size_t n) {
    constexpr double kLeast = 1e-10;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(v[i]);
    const auto least = static_cast<float>(kLeast * sum / static_cast<double>(n));
    for (std::size_t i = 0; i < n; ++i) v[i] = v[i] < least ? 0.0f : v[i];
}

SHARDSCOPE_VECTOR_CLONES
void onebit_momentum(float* m, const float* grad, const float* v, std::size_t n, double beta1, double share) {
    const auto keep = static_cast<float>(beta1), fresh = static_cast<float>((1.0 - beta1) * share);
    for (std::size_t i = 0; i < n; ++i) m[i] = v[i] == 0.0f ? 0.0f : keep * m[i] + fresh * grad[i];
}

SHARDSCOPE_VECTOR_CLONES
void onebit_adam(float* param, const float* m, const float* v, std::size_t n, const AdamOptions& options,
                 std::int64_t step, std::int64_t frozen) {
    const AdamFactors now(options, step), then(options, frozen);
    const auto keep = static_cast<float>(1.0 - options.lr * options.weight_decay);
    const auto step_size = static_cast<float>(options.lr / now.correction1);
    for (std::size_t i = 0; i < n; ++i)
        param[i] = param[i] * keep - step_size * (m[i] / (std::sqrt(v[i]) * then.root2 + then.floor));
}

float onebit_lamb_average(float average, float ratio) {
    constexpr float kKept = 0.9f;  // the paper's third beta
    return kKept * average + (1.0f - kKept) * ratio;
}

void onebit_lamb(float* param, const float* m, const float* last, const float* v, float* fresh, std::size_t n,
                 const AdamOptions& options, std::int64_t step, std::int64_t frozen, float average,
                 float& factor) {
    constexpr double kLeast = 0.5, kMost = 4, kChange = 0.1;
    const AdamFactors now(options, step), then(options, frozen);
    const auto keep = static_cast<float>(options.beta1), decay = static_cast<float>(options.weight_decay);
    const auto share = static_cast<float>(1.0 / now.correction1);
    const auto direction = [&](std::size_t i) {
        return share * m[i] / (std::sqrt(v[i]) * then.root2 + then.floor);
    };
    double largest = 0, direction_square = 0, update_square = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const float g = (m[i] - keep * last[i]) / now.fresh1;
        fresh[i] = now.decay2 * fresh[i] + now.fresh2 * (g * g);
        const float ratio =
            (std::sqrt(v[i]) * then.root2 + then.floor) / (std::sqrt(fresh[i]) * now.root2 + now.floor);
        largest = std::max(largest, static_cast<double>(ratio));
        const double along = direction(i);
        const double update = along + static_cast<double>(decay * param[i]);
        direction_square += along * along;
        update_square += update * update;
    }
    float rate = 1;
    if (average >= 0) {
        double change = largest;
        if (decay > 0 && update_square > 0) {
            // Only the part of the update that is not decay follows the variance.
            const double part = std::min(1.0, std::sqrt(direction_square / update_square));
            change = largest * part + 1.0 - part;
        }
        change = std::clamp(change, kLeast, kMost);
        change = std::clamp(change, factor * (1.0 - kChange), factor * (1.0 + kChange));
        factor = static_cast<float>(change);
        rate = average * factor;
    }
    const auto step_size = static_cast<float>(options.lr * static_cast<double>(rate));
    for (std::size_t i = 0; i < n; ++i) param[i] -= step_size * (direction(i) + decay * param[i]);
}

}  // namespace shardscope::trainer::kernels
