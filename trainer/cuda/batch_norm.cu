// See batch_norm.h.
#include "trainer/cuda/batch_norm.h"
#include "trainer/cuda/column_sums.h"

namespace shardscope::trainer::cuda {
namespace {

using by_column::Cut;
using by_column::Four;
using by_column::kPack;
using by_column::kThreads;
using by_column::load;
using by_column::load_columns;
using by_column::parts_of;
using by_column::Share;
using by_column::sum_columns;

struct Mean {
    float* mean;
    double share;
    __device__ void operator()(int column, const double (&sums)[1]) const {
        mean[column] = static_cast<float>(sums[0] * share);
    }
};

struct Squares {
    static constexpr int kSums = 1;
    const float *x, *mean;

    struct Own {
        const float* x;
        Four center;
        __device__ void add(int row, int column, const Cut& cut, float (&sums)[1][kPack]) const {
            Four in;
            load(x, row, column, cut, in);
#pragma unroll
            for (int i = 0; i < kPack; ++i) {
                const float d = in[i] - center[i];
                sums[0][i] += d * d;
            }
        }
    };
    __device__ Own of_columns(int column, const Cut& cut) const {
        Own own{x, {}};
        load_columns(mean, column, cut, own.center);
        return own;
    }
};
// Of the rank alone: the squares, and after those of all columns the number of rows.
struct Statistics {
    float* squares;
    int columns, rows;
    __device__ void operator()(int column, const double (&sums)[1]) const {
        squares[column] = static_cast<float>(sums[0]);
        if (column == 0) squares[columns] = static_cast<float>(rows);
    }
};

// What follows from the mean and the squares of `rows` rows: 1 / deviation and the running statistics.
struct Deviation {
    const float* mean;
    float* rstd;
    kernels::RunningStatistics running;
    double rows;
    float eps;

    __device__ void operator()(int column, const double (&sums)[1]) const {
        const double squares = static_cast<double>(static_cast<float>(sums[0]));
        const double of_sample = 1.0 / (rows > 2.0 ? rows - 1.0 : 1.0);
        const auto variance = static_cast<float>(squares * of_sample);
        running.mean[column] += running.momentum * (mean[column] - running.mean[column]);
        running.variance[column] += running.momentum * (variance - running.variance[column]);
        rstd[column] = static_cast<float>(1.0 / sqrt(squares * (1.0 / rows) + static_cast<double>(eps)));
    }
};

// The mean and the squares of the rows of all ranks from those of each (Chan, Golub, LeVeque: "Updating
// formulae ...", 1979).
__global__ void __launch_bounds__(kThreads) merge_statistics(const float* statistics, int ranks, int rows,
                                                             int columns, float* mean, Deviation deviation) {
    const int column = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
    if (column >= columns) return;
    const std::size_t of_rank = 2 * static_cast<std::size_t>(columns) + 1;
    double sum = 0.0;
    for (int r = 0; r < ranks; ++r) sum += statistics[r * of_rank + column];
    const double of_all = sum / ranks;
    double squares[1] = {};
    for (int r = 0; r < ranks; ++r) {
        const double distance = statistics[r * of_rank + column] - of_all;
        squares[0] += statistics[r * of_rank + columns + column] + distance * distance * rows;
    }
    mean[column] = static_cast<float>(of_all);
    deviation(column, squares);
}

// Of dy, and of dy xhat with xhat = (x - mean) rstd.
struct Gradients {
    static constexpr int kSums = 2;
    const float *dy, *x, *mean, *rstd;

    struct Own {
        const float *dy, *x;
        Four center, inverse;
        __device__ void add(int row, int column, const Cut& cut, float (&sums)[2][kPack]) const {
            Four gradient, in;
            load(dy, row, column, cut, gradient);
            load(x, row, column, cut, in);
#pragma unroll
            for (int i = 0; i < kPack; ++i) {
                sums[0][i] += gradient[i];
                sums[1][i] += gradient[i] * ((in[i] - center[i]) * inverse[i]);
            }
        }
    };
    __device__ Own of_columns(int column, const Cut& cut) const {
        Own own{dy, x, {}, {}};
        load_columns(mean, column, cut, own.center);
        load_columns(rstd, column, cut, own.inverse);
        return own;
    }
};
struct GradientSums {
    float *sums, *dgamma, *dbeta;
    int columns;
    __device__ void operator()(int column, const double (&of)[2]) const {
        const auto sum = static_cast<float>(of[0]), product = static_cast<float>(of[1]);
        sums[column] = sum;
        sums[columns + column] = product;
        if (dbeta) dbeta[column] = sum;
        if (dgamma) dgamma[column] = product;
    }
};

// --- element by element, with factors of each column -----------------------------------------------------

template <class Map>
__global__ void __launch_bounds__(kThreads) map_columns(Map map, float* y, Cut cut) {
    const Share share(cut);
    const auto own = map.of_columns(share.column, cut);
#pragma unroll 4
    for (int row = share.row; row < share.end; row += cut.down) {
        Four out;
        own.get(row, share.column, cut, out);
        store_part(y + static_cast<std::size_t>(row) * static_cast<std::size_t>(cut.columns), share.column,
                   cut.columns, cut.packed, out);
    }
}

// y = x factor + shift.
struct Scaled {
    const float* x;
    Four factor, shift;
    __device__ void get(int row, int column, const Cut& cut, Four& out) const {
        load(x, row, column, cut, out);
#pragma unroll
        for (int i = 0; i < kPack; ++i) out[i] = out[i] * factor[i] + shift[i];
    }
};
struct Normalize {
    const float *x, *mean, *rstd, *gamma, *beta;
    __device__ Scaled of_columns(int column, const Cut& cut) const {
        Scaled own{x, {}, {}};
        Four center, inverse, scale;
        load_columns(mean, column, cut, center);
        load_columns(rstd, column, cut, inverse);
        load_columns(gamma, column, cut, scale);
        load_columns(beta, column, cut, own.shift);
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
            own.factor[i] = scale[i] * inverse[i];
            own.shift[i] -= center[i] * own.factor[i];
        }
        return own;
    }
};
struct Evaluate {
    const float *x, *mean, *variance, *gamma, *beta;
    float eps;
    __device__ Scaled of_columns(int column, const Cut& cut) const {
        Scaled own{x, {}, {}};
        Four center, spread, scale;
        load_columns(mean, column, cut, center);
        load_columns(variance, column, cut, spread);
        load_columns(gamma, column, cut, scale);
        load_columns(beta, column, cut, own.shift);
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
            own.factor[i] = scale[i] / sqrtf(spread[i] + eps);
            own.shift[i] -= center[i] * own.factor[i];
        }
        return own;
    }
};

// dx = gamma rstd (dy - mean(dy) - xhat mean(dy xhat)), means over all rows, as dy factor + x slope + shift.
struct InputGradient {
    const float *dy, *x, *gamma, *mean, *rstd, *sums;  // those of dy, then those of dy xhat
    float share;                                       // 1 / all rows

    struct Own {
        const float *dy, *x;
        Four factor, slope, shift;
        __device__ void get(int row, int column, const Cut& cut, Four& out) const {
            Four in;
            load(dy, row, column, cut, out);
            load(x, row, column, cut, in);
#pragma unroll
            for (int i = 0; i < kPack; ++i) out[i] = out[i] * factor[i] + in[i] * slope[i] + shift[i];
        }
    };
    __device__ Own of_columns(int column, const Cut& cut) const {
        Own own{dy, x, {}, {}, {}};
        Four center, inverse, scale, sum, product;
        load_columns(mean, column, cut, center);
        load_columns(rstd, column, cut, inverse);
        load_columns(gamma, column, cut, scale);
        load_columns(sums, column, cut, sum);
        load_columns(sums + cut.columns, column, cut, product);
#pragma unroll
        for (int i = 0; i < kPack; ++i) {
            own.factor[i] = scale[i] * inverse[i];
            own.slope[i] = -own.factor[i] * inverse[i] * product[i] * share;
            own.shift[i] = -own.factor[i] * sum[i] * share - own.slope[i] * center[i];
        }
        return own;
    }
};

template <class Map>
void map_matrix(const DeviceContext& device, const Map& map, float* y, const Cut& cut) {
    launch(&map_columns<Map>, cut.blocks(), kThreads, 0, device.stream, map, y, cut);
}

void moments(const DeviceContext& device, const float* x, float* mean, const Cut& cut, float* parts) {
    sum_columns(device, by_column::Values<float>{x}, parts, cut, Mean{mean, 1.0 / cut.rows});
}

}  // namespace

void batch_norm_forward(const DeviceContext& device, const float* x, const float* gamma, const float* beta,
                        float* y, float* mean, float* rstd, const kernels::RunningStatistics& running,
                        int rows, int columns, float eps) {
    const Cut cut(rows, columns, is_aligned(x) && is_aligned(y));
    auto* parts = device.workspace.take_of<float>(parts_of(cut, 1));
    moments(device, x, mean, cut, parts);
    sum_columns(device, Squares{x, mean}, parts, cut,
                Deviation{mean, rstd, running, static_cast<double>(rows), eps});
    map_matrix(device, Normalize{x, mean, rstd, gamma, beta}, y, cut);
}

void batch_norm_evaluate(const DeviceContext& device, const float* x, const float* gamma, const float* beta,
                         const float* running_mean, const float* running_variance, float* y, int rows,
                         int columns, float eps) {
    map_matrix(device, Evaluate{x, running_mean, running_variance, gamma, beta, eps}, y,
               Cut(rows, columns, is_aligned(x) && is_aligned(y)));
}

void batch_norm_statistics(const DeviceContext& device, const float* x, float* statistics, int rows,
                           int columns) {
    const Cut cut(rows, columns, is_aligned(x));
    auto* parts = device.workspace.take_of<float>(parts_of(cut, 1));
    moments(device, x, statistics, cut, parts);
    sum_columns(device, Squares{x, statistics}, parts, cut, Statistics{statistics + columns, columns, rows});
}

void batch_norm_synced_forward(const DeviceContext& device, const float* x, const float* statistics,
                               int ranks, const float* gamma, const float* beta, float* y, float* mean,
                               float* rstd, const kernels::RunningStatistics& running, int rows, int columns,
                               float eps) {
    launch(&merge_statistics, blocks_for(static_cast<std::size_t>(columns), kThreads), kThreads, 0,
           device.stream, statistics, ranks, rows, columns, mean,
           Deviation{mean, rstd, running, static_cast<double>(rows) * ranks, eps});
    map_matrix(device, Normalize{x, mean, rstd, gamma, beta}, y,
               Cut(rows, columns, is_aligned(x) && is_aligned(y)));
}

void batch_norm_backward(const DeviceContext& device, const float* dy, const float* x, const float* gamma,
                         const float* mean, const float* rstd, float* dx, float* dgamma, float* dbeta,
                         int rows, int columns) {
    const Cut cut(rows, columns, is_aligned(dy) && is_aligned(x) && is_aligned(dx));
    const std::size_t n = parts_of(cut, Gradients::kSums);
    auto* parts = device.workspace.take_of<float>(n + 2 * static_cast<std::size_t>(columns));
    float* sums = parts + n;
    sum_columns(device, Gradients{dy, x, mean, rstd}, parts, cut, GradientSums{sums, dgamma, dbeta, columns});
    if (dx) {
        map_matrix(device, InputGradient{dy, x, gamma, mean, rstd, sums, 1.0f / static_cast<float>(rows)}, dx,
                   cut);
    }
}

void batch_norm_gradient_sums(const DeviceContext& device, const float* dy, const float* x, const float* mean,
                              const float* rstd, float* sums, float* dgamma, float* dbeta, int rows,
                              int columns) {
    const Cut cut(rows, columns, is_aligned(dy) && is_aligned(x));
    auto* parts = device.workspace.take_of<float>(parts_of(cut, Gradients::kSums));
    sum_columns(device, Gradients{dy, x, mean, rstd}, parts, cut, GradientSums{sums, dgamma, dbeta, columns});
}

void batch_norm_synced_backward(const DeviceContext& device, const float* dy, const float* x,
                                const float* gamma, const float* mean, const float* rstd, const float* sums,
                                float* dx, int rows, int columns, std::int64_t all_rows) {
    map_matrix(device, InputGradient{dy, x, gamma, mean, rstd, sums, 1.0f / static_cast<float>(all_rows)}, dx,
               Cut(rows, columns, is_aligned(dy) && is_aligned(x) && is_aligned(dx)));
}

}  // namespace shardscope::trainer::cuda
