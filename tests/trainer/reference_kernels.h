// The kernels again, in double and written as plainly as possible: the reference for trainer/kernels. Shapes
// and argument order are the same; results are returned. Speed does not matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::trainer::reference {

using Vector = std::vector<double>;
using Tokens = std::vector<std::int32_t>;

inline Vector linear_forward(const Vector& x, const Vector& w, const Vector& b, int rows, int in, int out) {
    Vector y(static_cast<std::size_t>(rows) * out);
    for (int i = 0; i < rows; ++i) {
        for (int o = 0; o < out; ++o) {
            double sum = b.empty() ? 0.0 : b[o];
            for (int j = 0; j < in; ++j) sum += x[i * in + j] * w[o * in + j];
            y[i * out + o] = sum;
        }
    }
    return y;
}

inline Vector linear_backward_input(const Vector& dy, const Vector& w, int rows, int in, int out) {
    Vector dx(static_cast<std::size_t>(rows) * in);
    for (int i = 0; i < rows; ++i) {
        for (int o = 0; o < out; ++o) {
            for (int j = 0; j < in; ++j) dx[i * in + j] += dy[i * out + o] * w[o * in + j];
        }
    }
    return dx;
}

inline Vector linear_backward_weight(const Vector& dy, const Vector& x, int rows, int in, int out) {
    Vector dw(static_cast<std::size_t>(out) * in);
    for (int i = 0; i < rows; ++i) {
        for (int o = 0; o < out; ++o) {
            for (int j = 0; j < in; ++j) dw[o * in + j] += dy[i * out + o] * x[i * in + j];
        }
    }
    return dw;
}

inline Vector linear_backward_bias(const Vector& dy, int rows, int out) {
    Vector db(out);
    for (int i = 0; i < rows; ++i) {
        for (int o = 0; o < out; ++o) db[o] += dy[i * out + o];
    }
    return db;
}

inline Vector relu_forward(Vector x) {
    for (double& value : x) value = std::max(value, 0.0);
    return x;
}

inline Vector relu_backward(Vector dy, const Vector& y) {
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = y[i] > 0.0 ? dy[i] : 0.0;
    return dy;
}

inline Vector squared_relu_forward(Vector x) {
    for (double& value : x) value = value > 0.0 ? value * value : 0.0;
    return x;
}

inline Vector squared_relu_backward(Vector dy, const Vector& x) {
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] *= x[i] > 0.0 ? 2.0 * x[i] : 0.0;
    return dy;
}

inline const double kRootTwoOverPi = std::sqrt(2.0 / std::acos(-1.0));

inline Vector gelu_forward(Vector x) {
    for (double& v : x) v = 0.5 * v * (1.0 + std::tanh(kRootTwoOverPi * (v + 0.044715 * v * v * v)));
    return x;
}

inline Vector gelu_backward(Vector dy, const Vector& x) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double v = x[i];
        const double tanh = std::tanh(kRootTwoOverPi * (v + 0.044715 * v * v * v));
        const double slope = kRootTwoOverPi * (1.0 + 3.0 * 0.044715 * v * v);
        dy[i] *= 0.5 * (1.0 + tanh) + 0.5 * v * (1.0 - tanh * tanh) * slope;
    }
    return dy;
}

inline Vector silu_mul_forward(const Vector& gate, const Vector& up) {
    Vector y(gate.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
    return y;
}

struct SiluMulGradients {
    Vector dgate, dup;
};

inline SiluMulGradients silu_mul_backward(const Vector& dy, const Vector& gate, const Vector& up) {
    SiluMulGradients result{dy, dy};
    for (std::size_t i = 0; i < dy.size(); ++i) {
        const double share = 1.0 / (1.0 + std::exp(-gate[i]));
        result.dgate[i] *= up[i] * (share + gate[i] * share * (1.0 - share));
        result.dup[i] *= gate[i] * share;
    }
    return result;
}

inline Vector rms_norm_forward(const Vector& x, const Vector& gamma, int rows, int cols, double eps) {
    Vector y(x.size());
    for (int i = 0; i < rows; ++i) {
        double square = 0.0;
        for (int j = 0; j < cols; ++j) square += x[i * cols + j] * x[i * cols + j] / cols;
        for (int j = 0; j < cols; ++j) y[i * cols + j] = x[i * cols + j] / std::sqrt(square + eps) * gamma[j];
    }
    return y;
}

struct RmsNormGradients {
    Vector dx, dgamma;
};

inline RmsNormGradients rms_norm_backward(const Vector& dy, const Vector& x, const Vector& gamma, int rows,
                                          int cols, double eps) {
    RmsNormGradients result{Vector(x.size()), Vector(cols)};
    for (int i = 0; i < rows; ++i) {
        double square = 0.0;
        for (int j = 0; j < cols; ++j) square += x[i * cols + j] * x[i * cols + j] / cols;
        const double rstd = 1.0 / std::sqrt(square + eps);
        double mean_gx = 0.0;
        for (int j = 0; j < cols; ++j) {
            mean_gx += dy[i * cols + j] * gamma[j] * x[i * cols + j] * rstd / cols;
            result.dgamma[j] += dy[i * cols + j] * x[i * cols + j] * rstd;
        }
        for (int j = 0; j < cols; ++j) {
            result.dx[i * cols + j] = rstd * (dy[i * cols + j] * gamma[j] - x[i * cols + j] * rstd * mean_gx);
        }
    }
    return result;
}

// Pair i of a head (elements i and i + d/2) is rotated by position * base^(-2 i / d) times `direction`.
inline Vector rotary(Vector x, int batch, int context, int rotated, int heads, int d, double base,
                     double direction) {
    for (int row = 0; row < batch * context; ++row) {
        for (int h = 0; h < rotated; ++h) {
            double* head = &x[(row * heads + h) * d];
            for (int i = 0; i < d / 2; ++i) {
                const double angle = direction * (row % context) * std::pow(base, -2.0 * i / d);
                const double first = head[i], second = head[i + d / 2];
                head[i] = first * std::cos(angle) - second * std::sin(angle);
                head[i + d / 2] = second * std::cos(angle) + first * std::sin(angle);
            }
        }
    }
    return x;
}

struct Moments {
    double mean, rstd;
};

inline Moments moments_of_row(const Vector& x, int row, int cols, double eps) {
    double mean = 0.0;
    for (int j = 0; j < cols; ++j) mean += x[row * cols + j] / cols;
    double variance = 0.0;
    for (int j = 0; j < cols; ++j) variance += (x[row * cols + j] - mean) * (x[row * cols + j] - mean) / cols;
    return {mean, 1.0 / std::sqrt(variance + eps)};
}

inline Vector layer_norm_forward(const Vector& x, const Vector& gamma, const Vector& beta, int rows, int cols,
                                 double eps) {
    Vector y(x.size());
    for (int i = 0; i < rows; ++i) {
        const Moments m = moments_of_row(x, i, cols, eps);
        for (int j = 0; j < cols; ++j)
            y[i * cols + j] = (x[i * cols + j] - m.mean) * m.rstd * gamma[j] + beta[j];
    }
    return y;
}

struct LayerNormGradients {
    Vector dx, dgamma, dbeta;
};

inline LayerNormGradients layer_norm_backward(const Vector& dy, const Vector& x, const Vector& gamma,
                                              int rows, int cols, double eps) {
    LayerNormGradients result{Vector(x.size()), Vector(cols), Vector(cols)};
    for (int i = 0; i < rows; ++i) {
        const Moments m = moments_of_row(x, i, cols, eps);
        double mean_g = 0.0;
        double mean_gx = 0.0;
        for (int j = 0; j < cols; ++j) {
            const double xhat = (x[i * cols + j] - m.mean) * m.rstd;
            const double g = dy[i * cols + j] * gamma[j];
            mean_g += g / cols;
            mean_gx += g * xhat / cols;
            result.dgamma[j] += dy[i * cols + j] * xhat;
            result.dbeta[j] += dy[i * cols + j];
        }
        for (int j = 0; j < cols; ++j) {
            const double xhat = (x[i * cols + j] - m.mean) * m.rstd;
            result.dx[i * cols + j] = m.rstd * (dy[i * cols + j] * gamma[j] - mean_g - xhat * mean_gx);
        }
    }
    return result;
}

// Softmax of the first `seen` entries of a row of `cols`; the others become 0.
inline void softmax(double* row, int seen, int cols) {
    const double largest = *std::max_element(row, row + seen);
    double sum = 0.0;
    for (int j = 0; j < seen; ++j) sum += std::exp(row[j] - largest);
    for (int j = 0; j < seen; ++j) row[j] = std::exp(row[j] - largest) / sum;
    std::fill(row + seen, row + cols, 0.0);
}

struct Attention {
    Vector out, probabilities;
};

// A row of qkv is q of all heads | k of the kv heads | v of the kv heads; kv_heads 0: as many as heads.
struct QkvPlaces {
    QkvPlaces(int width, int heads, int kv_heads)
        : d(width / heads),
          kv(kv_heads > 0 ? kv_heads : heads),
          group(heads / kv),
          keys(width),
          values(width + kv * d),
          row(width + 2 * kv * d) {}
    int d, kv, group, keys, values, row;
};

inline Attention attention_forward(const Vector& qkv, int batch, int context, int width, int heads,
                                   int kv_heads = 0, bool causal = true) {
    const QkvPlaces at(width, heads, kv_heads);
    const int d = at.d;
    Attention result{Vector(static_cast<std::size_t>(batch) * context * width),
                     Vector(static_cast<std::size_t>(batch) * heads * context * context)};
    for (int b = 0; b < batch; ++b) {
        for (int h = 0; h < heads; ++h) {
            for (int t = 0; t < context; ++t) {
                const double* q = &qkv[(b * context + t) * at.row + h * d];
                const int seen = causal ? t + 1 : context;
                double* p = &result.probabilities[((b * heads + h) * context + t) * context];
                for (int s = 0; s < seen; ++s) {
                    const double* k = &qkv[(b * context + s) * at.row + at.keys + h / at.group * d];
                    for (int e = 0; e < d; ++e) p[s] += q[e] * k[e] / std::sqrt(d);
                }
                softmax(p, seen, context);
                for (int s = 0; s < seen; ++s) {
                    const double* v = &qkv[(b * context + s) * at.row + at.values + h / at.group * d];
                    for (int e = 0; e < d; ++e)
                        result.out[(b * context + t) * width + h * d + e] += p[s] * v[e];
                }
            }
        }
    }
    return result;
}

inline Vector attention_backward(const Vector& dout, const Vector& qkv, const Vector& probabilities,
                                 int batch, int context, int width, int heads, int kv_heads = 0,
                                 bool causal = true) {
    const QkvPlaces at(width, heads, kv_heads);
    const int d = at.d;
    Vector dqkv(qkv.size());
    for (int b = 0; b < batch; ++b) {
        for (int h = 0; h < heads; ++h) {
            for (int t = 0; t < context; ++t) {
                const std::size_t query = static_cast<std::size_t>(b * context + t) * at.row + h * d;
                const double* go = &dout[(b * context + t) * width + h * d];
                const double* p = &probabilities[((b * heads + h) * context + t) * context];
                const int seen = causal ? t + 1 : context;
                Vector dp(seen);
                double sum = 0.0;
                for (int s = 0; s < seen; ++s) {
                    const std::size_t value =
                        static_cast<std::size_t>(b * context + s) * at.row + at.values + h / at.group * d;
                    for (int e = 0; e < d; ++e) {
                        dp[s] += go[e] * qkv[value + e];
                        dqkv[value + e] += p[s] * go[e];
                    }
                    sum += p[s] * dp[s];
                }
                for (int s = 0; s < seen; ++s) {
                    const std::size_t key =
                        static_cast<std::size_t>(b * context + s) * at.row + at.keys + h / at.group * d;
                    const double score = p[s] * (dp[s] - sum) / std::sqrt(d);
                    for (int e = 0; e < d; ++e) {
                        dqkv[query + e] += score * qkv[key + e];
                        dqkv[key + e] += score * qkv[query + e];
                    }
                }
            }
        }
    }
    return dqkv;
}

inline Vector embedding_forward(const Tokens& tokens, const Vector& table, int width) {
    Vector y;
    for (const std::int32_t token : tokens) {
        y.insert(y.end(), table.begin() + token * width, table.begin() + (token + 1) * width);
    }
    return y;
}

inline Vector embedding_backward(const Vector& dy, const Tokens& tokens, int entries, int width) {
    Vector dtable(static_cast<std::size_t>(entries) * width);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        for (int j = 0; j < width; ++j) dtable[tokens[i] * width + j] += dy[i * width + j];
    }
    return dtable;
}

struct CrossEntropy {
    double mean;
    Vector probabilities;
};

inline CrossEntropy cross_entropy_forward(const Vector& logits, const Tokens& targets, int rows,
                                          int classes) {
    CrossEntropy result{0.0, logits};
    for (int i = 0; i < rows; ++i) {
        softmax(&result.probabilities[i * classes], classes, classes);
        result.mean -= std::log(result.probabilities[i * classes + targets[i]]) / rows;
    }
    return result;
}

inline Vector cross_entropy_backward(Vector probabilities, const Tokens& targets, int rows, int classes) {
    for (int i = 0; i < rows; ++i) {
        probabilities[i * classes + targets[i]] -= 1.0;
        for (int j = 0; j < classes; ++j) probabilities[i * classes + j] /= rows;
    }
    return probabilities;
}

inline double mse_forward(const Vector& y, const Vector& target) {
    double sum = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += (y[i] - target[i]) * (y[i] - target[i]);
    return sum / static_cast<double>(y.size());
}

inline Vector mse_backward(Vector y, const Vector& target) {
    const double n = static_cast<double>(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2.0 * (y[i] - target[i]) / n;
    return y;
}

struct SgdOptions {
    double lr, momentum = 0.0;
    bool nesterov = false;
    double weight_decay = 0.0;
};

inline void sgd(Vector& param, const Vector& grad, Vector& buffer, const SgdOptions& o) {
    for (std::size_t i = 0; i < param.size(); ++i) {
        const double g = grad[i] + o.weight_decay * param[i];
        buffer[i] = o.momentum * buffer[i] + g;
        param[i] -= o.lr * (o.nesterov ? g + o.momentum * buffer[i] : buffer[i]);
    }
}

struct AdamOptions {
    double lr, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

// mhat / (sqrt(vhat) + eps) of one element, once m and v include its gradient.
inline double adam_direction(double grad, double& m, double& v, int step, const AdamOptions& o) {
    m = o.beta1 * m + (1.0 - o.beta1) * grad;
    v = o.beta2 * v + (1.0 - o.beta2) * grad * grad;
    const double mhat = m / (1.0 - std::pow(o.beta1, step));
    const double vhat = v / (1.0 - std::pow(o.beta2, step));
    return mhat / (std::sqrt(vhat) + o.eps);
}

inline void adamw(Vector& param, const Vector& grad, Vector& m, Vector& v, int step, const AdamOptions& o) {
    for (std::size_t i = 0; i < param.size(); ++i) {
        param[i] *= 1.0 - o.lr * o.weight_decay;
        param[i] -= o.lr * adam_direction(grad[i], m[i], v[i], step, o);
    }
}

inline void adam(Vector& param, const Vector& grad, Vector& m, Vector& v, int step, const AdamOptions& o) {
    for (std::size_t i = 0; i < param.size(); ++i) {
        param[i] -= o.lr * adam_direction(grad[i] + o.weight_decay * param[i], m[i], v[i], step, o);
    }
}

inline double norm(const Vector& x) {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
}

// A step of one complete parameter.
inline void lars(Vector& param, const Vector& grad, Vector& buffer, double trust, const SgdOptions& o) {
    const double rate = trust * norm(param) / (norm(grad) + o.weight_decay * norm(param));
    for (std::size_t i = 0; i < param.size(); ++i) {
        const double g = rate * (grad[i] + o.weight_decay * param[i]);
        buffer[i] = o.momentum * buffer[i] + g;
        param[i] -= o.lr * (o.nesterov ? g + o.momentum * buffer[i] : buffer[i]);
    }
}

inline void lamb(Vector& param, const Vector& grad, Vector& m, Vector& v, int step, const AdamOptions& o) {
    Vector update(param.size());
    for (std::size_t i = 0; i < param.size(); ++i) {
        update[i] = adam_direction(grad[i], m[i], v[i], step, o) + o.weight_decay * param[i];
    }
    const double ratio = norm(param) / norm(update);
    for (std::size_t i = 0; i < param.size(); ++i) param[i] -= o.lr * ratio * update[i];
}

inline void novograd(Vector& param, const Vector& grad, Vector& m, double& moment, int step,
                     const AdamOptions& o) {
    const double square = norm(grad) * norm(grad);
    moment = step == 1 ? square : o.beta2 * moment + (1.0 - o.beta2) * square;
    for (std::size_t i = 0; i < param.size(); ++i) {
        const double normalized = grad[i] / (std::sqrt(moment) + o.eps);
        m[i] = o.beta1 * m[i] + (normalized + o.weight_decay * param[i]);
        param[i] -= o.lr * m[i];
    }
}

}  // namespace shardscope::trainer::reference
