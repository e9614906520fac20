// See vocabulary.h. One block per row, but for local_tokens.
#include "trainer/cuda/blocks.h"
#include "trainer/cuda/sums.h"
#include "trainer/cuda/vocabulary.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;
constexpr float kLowest = -3.40282347e38f;

__global__ void __launch_bounds__(kThreads)
    local_tokens_kernel(const std::int32_t* tokens, std::int32_t* local, std::int32_t* inside, std::size_t n,
                        std::int64_t first, int entries) {
    const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= n) return;
    const std::int64_t place = tokens[i] - first;
    const bool own = tokens[i] >= 0 && place >= 0 && place < entries;
    local[i] = own ? static_cast<std::int32_t>(place) : tokens[i] < 0 ? -1 : entries;
    if (inside) inside[i] = own ? static_cast<std::int32_t>(place) : 0;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    zero_rows_kernel(T* y, const std::int32_t* local, int width, int entries) {
    const std::int32_t token = local[blockIdx.x];
    if (token >= 0 && token < entries) return;
    T* row = y + std::size_t{blockIdx.x} * static_cast<std::size_t>(width);
    for (int i = static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(blockDim.x))
        row[i] = rounded<T>(0.0f);
}

__global__ void __launch_bounds__(kThreads)
    largest_logit_kernel(const float* logits, float* largest, int classes, int valid) {
    const float* row = logits + std::size_t{blockIdx.x} * static_cast<std::size_t>(classes);
    float most = kLowest;
    for (int i = static_cast<int>(threadIdx.x); i < valid; i += static_cast<int>(blockDim.x))
        most = fmaxf(most, row[i]);
    most = block_max(most);
    if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

__global__ void __launch_bounds__(kThreads)
    exp_logits_kernel(const float* logits, const float* largest, const std::int32_t* targets,
                      float* exponentials, float* sums, float* target_logits, int classes, int valid) {
    const std::size_t begin = std::size_t{blockIdx.x} * static_cast<std::size_t>(classes);
    const float most = largest[blockIdx.x];
    const std::int32_t target = targets[blockIdx.x];
    // Read before exponentials may overwrite it.
    const float of_target = target >= 0 && target < valid ? logits[begin + target] - most : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < classes; i += static_cast<int>(blockDim.x)) {
        const float e = i < valid ? expf(logits[begin + i] - most) : 0.0f;
        exponentials[begin + i] = e;
        sum += e;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        target_logits[blockIdx.x] = of_target;
    }
}

__global__ void __launch_bounds__(kThreads)
    vocabulary_loss_kernel(float* exponentials, const float* sums, const float* target_logits,
                           const std::int32_t* targets, double* losses, int classes) {
    float* row = exponentials + std::size_t{blockIdx.x} * static_cast<std::size_t>(classes);
    const float sum = sums[blockIdx.x], scale = 1.0f / sum;
    for (int i = static_cast<int>(threadIdx.x); i < classes; i += static_cast<int>(blockDim.x))
        row[i] *= scale;
    if (threadIdx.x > 0) return;
    const double loss = log(static_cast<double>(sum)) - static_cast<double>(target_logits[blockIdx.x]);
    losses[blockIdx.x] = targets[blockIdx.x] >= 0 ? loss : 0.0;
}

unsigned threads_of(int items) {
    return threads_for(static_cast<std::size_t>(items), kThreads);
}

}  // namespace

void local_tokens(const DeviceContext& device, const std::int32_t* tokens, std::int32_t* local,
                  std::int32_t* inside, std::size_t n, std::int64_t first, int entries) {
    launch(&local_tokens_kernel, blocks_for(n, kThreads), kThreads, 0, device.stream, tokens, local, inside,
           n, first, entries);
}

template <class T>
void zero_rows(const DeviceContext& device, T* y, const std::int32_t* local, int rows, int width,
               int entries) {
    launch(&zero_rows_kernel<T>, static_cast<unsigned>(rows), threads_of(width), 0, device.stream, y, local,
           width, entries);
}
template void zero_rows(const DeviceContext&, float*, const std::int32_t*, int, int, int);
template void zero_rows(const DeviceContext&, Bf16*, const std::int32_t*, int, int, int);
template void zero_rows(const DeviceContext&, Fp16*, const std::int32_t*, int, int, int);

void largest_logit(const DeviceContext& device, const float* logits, float* largest, int rows, int classes,
                   int valid) {
    launch(&largest_logit_kernel, static_cast<unsigned>(rows), threads_of(classes), 0, device.stream, logits,
           largest, classes, valid);
}

void exp_logits(const DeviceContext& device, const float* logits, const float* largest,
                const std::int32_t* targets, float* exponentials, float* sums, float* target_logits, int rows,
                int classes, int valid) {
    launch(&exp_logits_kernel, static_cast<unsigned>(rows), threads_of(classes), 0, device.stream, logits,
           largest, targets, exponentials, sums, target_logits, classes, valid);
}

void vocabulary_loss(const DeviceContext& device, float* exponentials, const float* sums,
                     const float* target_logits, const std::int32_t* targets, double* mean, int rows,
                     int classes, int counted) {
    auto* losses = device.workspace.take_of<double>(static_cast<std::size_t>(rows));
    launch(&vocabulary_loss_kernel, static_cast<unsigned>(rows), threads_of(classes), 0, device.stream,
           exponentials, sums, target_logits, targets, losses, classes);
    sum_parts(device, losses, static_cast<std::size_t>(rows), counted > 0 ? counted : rows, mean);
}

}  // namespace shardscope::trainer::cuda
