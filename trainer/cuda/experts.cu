// See experts.h.
#include <stdexcept>

#include "trainer/cuda/blocks.h"
#include "trainer/cuda/experts.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 16;  // rows and columns of a block's part of a matmul, one element per thread

// A thread for each token.
__global__ void __launch_bounds__(kThreads)
    choose_experts_kernel(const float* logits, float* weights, std::int32_t* chosen, float* probabilities,
                          int tokens, int experts, int k) {
    const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
    if (t >= tokens) return;
    const float* row = logits + std::int64_t{t} * experts;
    float* p = probabilities + std::int64_t{t} * experts;
    std::int32_t* own = chosen + std::int64_t{t} * k;
    float most = row[0], sum = 0.0f;
    for (int e = 1; e < experts; ++e) most = fmaxf(most, row[e]);
    for (int e = 0; e < experts; ++e) {
        p[e] = expf(row[e] - most);
        sum += p[e];
    }
    for (int e = 0; e < experts; ++e) p[e] /= sum;
    float all = 0.0f;
    for (int j = 0; j < k; ++j) {
        int best = -1;
        for (int e = 0; e < experts; ++e) {
            bool taken = false;
            for (int i = 0; i < j; ++i) taken = taken || own[i] == e;
            if (!taken && (best < 0 || p[e] > p[best])) best = e;
        }
        own[j] = best;
        all += p[best];
    }
    for (int j = 0; j < k; ++j) weights[std::int64_t{t} * k + j] = k > 1 ? p[own[j]] / all : p[own[j]];
}

__global__ void __launch_bounds__(kThreads)
    choose_experts_backward_kernel(const float* dweights, const std::int32_t* chosen,
                                   const float* probabilities, const float* shares, float balance,
                                   float* dlogits, int tokens, int experts, int k) {
    const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
    if (t >= tokens) return;
    const float *p = probabilities + std::int64_t{t} * experts, *dw = dweights + std::int64_t{t} * k;
    const std::int32_t* own = chosen + std::int64_t{t} * k;
    float* d = dlogits + std::int64_t{t} * experts;
    float sum = k > 1 ? 0.0f : 1.0f, mean = 0.0f;
    if (k > 1) {
        for (int j = 0; j < k; ++j) sum += p[own[j]];
        for (int j = 0; j < k; ++j) mean += p[own[j]] / sum * dw[j];
    }
    for (int e = 0; e < experts; ++e) d[e] = shares ? balance * shares[e] : 0.0f;
    for (int j = 0; j < k; ++j) d[own[j]] += (dw[j] - mean) / sum;
    float dot = 0.0f;
    for (int e = 0; e < experts; ++e) dot += p[e] * d[e];
    for (int e = 0; e < experts; ++e) d[e] = p[e] * (d[e] - dot);
}

// One block; a thread for each expert reads all choices, as the places depend on those before.
__global__ void __launch_bounds__(kMostExperts)
    route_kernel(const std::int32_t* chosen, std::int32_t* places, std::int32_t* counts, float* shares,
                 int choices, int experts, int capacity) {
    __shared__ std::int32_t kept[kMostExperts];
    const int e = static_cast<int>(threadIdx.x);
    if (e < experts) {
        int wanted = 0;
        for (int c = 0; c < choices; ++c) wanted += chosen[c] == e ? 1 : 0;
        kept[e] = capacity > 0 && wanted > capacity ? capacity : wanted;
        counts[e] = kept[e];
        if (shares) shares[e] = static_cast<float>(wanted);
    }
    __syncthreads();
    if (e >= experts) return;
    int row = 0;
    for (int i = 0; i < e; ++i) row += kept[i];
    const int end = row + kept[e];
    for (int c = 0; c < choices; ++c) {
        if (chosen[c] == e) places[c] = row < end ? row++ : -1;
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    scatter_rows_kernel(const T* x, const T* kept, const float* weights, const std::int32_t* places, T* rows,
                        float* slopes, int k, int width) {
    const auto c = static_cast<int>(blockIdx.x);
    const std::int32_t place = places[c];
    if (place < 0) {
        if (slopes && threadIdx.x == 0) slopes[c] = 0.0f;
        return;
    }
    const T* from = x + std::int64_t{c / k} * width;
    const std::int64_t to = std::int64_t{place} * width;
    const float weight = weights ? weights[c] : 1.0f;
    float sum = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(blockDim.x)) {
        const float value = to_float(from[i]);
        if (slopes) sum += value * to_float(kept[to + i]);
        rows[to + i] = rounded<T>(value * weight);
    }
    if (!slopes) return;
    sum = block_sum(sum);
    if (threadIdx.x == 0) slopes[c] = sum;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    gather_rows_kernel(const T* rows, const float* weights, const std::int32_t* places, T* y, int k,
                       int width) {
    const std::int64_t t = blockIdx.x;
    for (int i = static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(blockDim.x)) {
        float sum = 0.0f;
        for (std::int64_t c = t * k; c < (t + 1) * k; ++c) {
            if (places[c] < 0) continue;
            sum += to_float(rows[std::int64_t{places[c]} * width + i]) * (weights ? weights[c] : 1.0f);
        }
        y[t * width + i] = rounded<T>(sum);
    }
}

// --- matmuls, in tiles -----------------------------------------------------------------------------------

// Adds a [m, k] b [k, n] of one tile: get_a(row, at) and get_b(at, column) are 0 outside.
template <class A, class B>
__device__ float tile_sum(float sum, int k, const A& get_a, const B& get_b) {
    __shared__ float a[kTile][kTile + 1], b[kTile][kTile + 1];
    const int row = static_cast<int>(threadIdx.x) / kTile, column = static_cast<int>(threadIdx.x) % kTile;
    for (int first = 0; first < k; first += kTile) {
        __syncthreads();  // the previous tiles have been read
        a[row][column] = first + column < k ? get_a(row, first + column) : 0.0f;
        b[row][column] = first + row < k ? get_b(first + row, column) : 0.0f;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += a[row][i] * b[i][column];
    }
    return sum;
}

// The group of the block's tile of rows, and its rows from there on; an empty one behind the last.
struct RowTile {
    int group = 0, first = 0, rows = 0;
};
__device__ inline RowTile row_tile(const std::int32_t* counts, int groups, int tile) {
    RowTile found;
    for (; found.group < groups; ++found.group) {
        const int rows = counts[found.group], tiles = (rows + kTile - 1) / kTile;
        if (tile < tiles) return {found.group, found.first + tile * kTile, rows - tile * kTile};
        tile -= tiles;
        found.first += rows;
    }
    return found;
}

// y [rows, columns] = x [rows, k] times the expert's weight, [columns, k] or (kTransposed) [k, columns].
template <bool kTransposed, class T>
__global__ void __launch_bounds__(kThreads)
    grouped_rows_kernel(const T* x, const T* w, T* y, const std::int32_t* counts, int groups, int experts,
                        int k, int columns) {
    const RowTile tile = row_tile(counts, groups, static_cast<int>(blockIdx.x));
    if (tile.rows <= 0) return;
    const int first_column = static_cast<int>(blockIdx.y) * kTile;
    const T* weight = w + std::int64_t{tile.group % experts} * k * columns;
    const float sum = tile_sum(
        0.0f, k,
        [&](int row, int at) {
            return row < tile.rows ? to_float(x[std::int64_t{tile.first + row} * k + at]) : 0.0f;
        },
        [&](int at, int column) {
            const std::int64_t c = first_column + column;
            if (c >= columns) return 0.0f;
            return to_float(kTransposed ? weight[std::int64_t{at} * columns + c] : weight[c * k + at]);
        });
    const int row = static_cast<int>(threadIdx.x) / kTile;
    const int column = first_column + static_cast<int>(threadIdx.x) % kTile;
    if (row < tile.rows && column < columns)
        y[std::int64_t{tile.first + row} * columns + column] = rounded<T>(sum);
}

// dw [out, in] of expert blockIdx.z.
template <class T>
__global__ void __launch_bounds__(kThreads)
    grouped_weight_kernel(const T* dy, const T* x, T* dw, const std::int32_t* counts, int groups, int experts,
                          int in, int out) {
    const auto expert = static_cast<int>(blockIdx.z);
    const int o = static_cast<int>(blockIdx.y) * kTile, i = static_cast<int>(blockIdx.x) * kTile;
    float sum = 0.0f;
    std::int64_t first = 0;
    for (int g = 0; g < groups; ++g) {
        if (g % experts == expert) {
            sum = tile_sum(
                sum, counts[g],
                [&](int row, int at) {
                    return o + row < out ? to_float(dy[(first + at) * out + o + row]) : 0.0f;
                },
                [&](int at, int column) {
                    return i + column < in ? to_float(x[(first + at) * in + i + column]) : 0.0f;
                });
        }
        first += counts[g];
    }
    const int row = o + static_cast<int>(threadIdx.x) / kTile,
              column = i + static_cast<int>(threadIdx.x) % kTile;
    if (row < out && column < in) dw[(std::int64_t{expert} * out + row) * in + column] = rounded<T>(sum);
}

unsigned tiles_of(int n) {
    return blocks_for(static_cast<std::size_t>(n), kTile);
}

// Each group may end with a tile that is not full.
dim3 row_grid(const GroupedShape& s, int columns) {
    return dim3(tiles_of(s.rows) + static_cast<unsigned>(s.groups), tiles_of(columns));
}

unsigned threads_of(int items) {
    return threads_for(static_cast<std::size_t>(items), kThreads);
}

}  // namespace

void choose_experts(const DeviceContext& device, const float* logits, float* weights, std::int32_t* chosen,
                    float* probabilities, int tokens, int experts, int k) {
    launch(&choose_experts_kernel, blocks_for(static_cast<std::size_t>(tokens), kThreads), kThreads, 0,
           device.stream, logits, weights, chosen, probabilities, tokens, experts, k);
}

void choose_experts_backward(const DeviceContext& device, const float* dweights, const std::int32_t* chosen,
                             const float* probabilities, const float* shares, float balance, float* dlogits,
                             int tokens, int experts, int k) {
    launch(&choose_experts_backward_kernel, blocks_for(static_cast<std::size_t>(tokens), kThreads), kThreads,
           0, device.stream, dweights, chosen, probabilities, shares, balance, dlogits, tokens, experts, k);
}

void route(const DeviceContext& device, const std::int32_t* chosen, std::int32_t* places,
           std::int32_t* counts, float* shares, int choices, int experts, int capacity) {
    if (experts > kMostExperts) throw std::logic_error("a Plan has more experts than a block has threads");
    launch(&route_kernel, 1, threads_for(static_cast<std::size_t>(experts), kMostExperts), 0, device.stream,
           chosen, places, counts, shares, choices, experts, capacity);
}

template <class T>
void scatter_rows(const DeviceContext& device, const T* x, const T* kept, const float* weights,
                  const std::int32_t* places, T* rows, float* slopes, int choices, int k, int width) {
    launch(&scatter_rows_kernel<T>, static_cast<unsigned>(choices), threads_of(width), 0, device.stream, x,
           kept, weights, places, rows, slopes, k, width);
}

template <class T>
void gather_rows(const DeviceContext& device, const T* rows, const float* weights, const std::int32_t* places,
                 T* y, int choices, int k, int width) {
    launch(&gather_rows_kernel<T>, static_cast<unsigned>(choices / k), threads_of(width), 0, device.stream,
           rows, weights, places, y, k, width);
}

template <class T>
void grouped_linear_forward(const DeviceContext& device, const T* x, const T* w, T* y,
                            const std::int32_t* counts, const GroupedShape& s) {
    launch(&grouped_rows_kernel<false, T>, row_grid(s, s.out), kThreads, 0, device.stream, x, w, y, counts,
           s.groups, s.experts, s.in, s.out);
}

template <class T>
void grouped_linear_backward_input(const DeviceContext& device, const T* dy, const T* w, T* dx,
                                   const std::int32_t* counts, const GroupedShape& s) {
    launch(&grouped_rows_kernel<true, T>, row_grid(s, s.in), kThreads, 0, device.stream, dy, w, dx, counts,
           s.groups, s.experts, s.out, s.in);
}

template <class T>
void grouped_linear_backward_weight(const DeviceContext& device, const T* dy, const T* x, T* dw,
                                    const std::int32_t* counts, const GroupedShape& s) {
    launch(&grouped_weight_kernel<T>, dim3(tiles_of(s.in), tiles_of(s.out), static_cast<unsigned>(s.experts)),
           kThreads, 0, device.stream, dy, x, dw, counts, s.groups, s.experts, s.in, s.out);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                           \
    template void scatter_rows(const DeviceContext&, const T*, const T*, const float*, const std::int32_t*, \
                               T*, float*, int, int, int);                                                  \
    template void gather_rows(const DeviceContext&, const T*, const float*, const std::int32_t*, T*, int,   \
                              int, int);                                                                    \
    template void grouped_linear_forward(const DeviceContext&, const T*, const T*, T*, const std::int32_t*, \
                                         const GroupedShape&);                                              \
    template void grouped_linear_backward_input(const DeviceContext&, const T*, const T*, T*,               \
                                                const std::int32_t*, const GroupedShape&);                  \
    template void grouped_linear_backward_weight(const DeviceContext&, const T*, const T*, T*,              \
                                                 const std::int32_t*, const GroupedShape&);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
