// The kernels once more, in double and as plainly as they can be written: what trainer/kernels is held
// against. Same shapes and argument order; results are returned. No attention is paid to speed.
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

inline Attention attention_forward(const Vector& qkv, int batch, int context, int width, int heads) {
    const int d = width / heads;
    Attention result{Vector(static_cast<std::size_t>(batch) * context * width),
                     Vector(static_cast<std::size_t>(batch) * heads * context * context)};
    for (int b = 0; b < batch; ++b) {
        for (int h = 0; h < heads; ++h) {
            for (int t = 0; t < context; ++t) {
                const double* q = &qkv[(b * context + t) * 3 * width + h * d];
                double* p = &result.probabilities[((b * heads + h) * context + t) * context];
                for (int s = 0; s <= t; ++s) {
                    const double* k = &qkv[(b * context + s) * 3 * width + width + h * d];
                    for (int e = 0; e < d; ++e) p[s] += q[e] * k[e] / std::sqrt(d);
                }
                softmax(p, t + 1, context);
                for (int s = 0; s <= t; ++s) {
                    const double* v = &qkv[(b * context + s) * 3 * width + 2 * width + h * d];
                    for (int e = 0; e < d; ++e)
                        result.out[(b * context + t) * width + h * d + e] += p[s] * v[e];
                }
            }
        }
    }
    return result;
}

inline Vector attention_backward(const Vector& dout, const Vector& qkv, const Vector& probabilities,
                                 int batch, int context, int width, int heads) {
    const int d = width / heads;
    Vector dqkv(qkv.size());
    for (int b = 0; b < batch; ++b) {
        for (int h = 0; h < heads; ++h) {
            for (int t = 0; t < context; ++t) {
                const std::size_t query = static_cast<std::size_t>(b * context + t) * 3 * width + h * d;
                const double* go = &dout[(b * context + t) * width + h * d];
                const double* p = &probabilities[((b * heads + h) * context + t) * context];
                Vector dp(t + 1);
                double sum = 0.0;
                for (int s = 0; s <= t; ++s) {
                    const std::size_t value =
                        static_cast<std::size_t>(b * context + s) * 3 * width + 2 * width + h * d;
                    for (int e = 0; e < d; ++e) {
                        dp[s] += go[e] * qkv[value + e];
                        dqkv[value + e] += p[s] * go[e];
                    }
                    sum += p[s] * dp[s];
                }
                for (int s = 0; s <= t; ++s) {
                    const std::size_t key =
                        static_cast<std::size_t>(b * context + s) * 3 * width + width + h * d;
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

struct AdamwOptions {
    double lr, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
};

inline void adamw(Vector& param, const Vector& grad, Vector& m, Vector& v, int step, const AdamwOptions& o) {
    for (std::size_t i = 0; i < param.size(); ++i) {
        param[i] *= 1.0 - o.lr * o.weight_decay;
        m[i] = o.beta1 * m[i] + (1.0 - o.beta1) * grad[i];
        v[i] = o.beta2 * v[i] + (1.0 - o.beta2) * grad[i] * grad[i];
        const double mhat = m[i] / (1.0 - std::pow(o.beta1, step));
        const double vhat = v[i] / (1.0 - std::pow(o.beta2, step));
        param[i] -= o.lr * mhat / (std::sqrt(vhat) + o.eps);
    }
}

}  // namespace shardscope::trainer::reference
