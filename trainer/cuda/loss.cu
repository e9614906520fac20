// See loss.h. Cross-entropy: one block per row. Each thread keeps the largest logit that it has seen and the
// sum of e^(logit - largest), which it rescales when the largest grows (Milakov, Gimelshein: "Online
// normalizer calculation for softmax", arXiv:1805.02867, 2018), so the logits are read once for both.
#include "trainer/cuda/loss.h"
#include "trainer/cuda/map.h"
#include "trainer/cuda/rows.h"
#include "trainer/cuda/sums.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kCount = kPackOf<float>;
constexpr float kLowest = -3.40282347e38f;  // initial maximum; -infinity minus itself would be NaN

unsigned threads_of_row(int classes) {
    return threads_for((static_cast<std::size_t>(classes) + kCount - 1) / kCount, kThreads);
}

__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(const float* logits, const std::int32_t* targets, float* probabilities,
                         double* losses, int classes, double smoothing, bool packed) {
    const std::size_t begin = std::size_t{blockIdx.x} * static_cast<std::size_t>(classes);
    const float* row = logits + begin;
    const int target = targets[blockIdx.x];           // negative: the row adds nothing
    double logit = target >= 0 ? row[target] : 0.0f;  // before probabilities may overwrite it
    if (smoothing > 0) {
        double all = 0.0;
        each_pack<0, kCount>(classes, [&](int, int first) {
            float in[kCount];
            load_part(row, first, classes, packed, in);
#pragma unroll
            for (int i = 0; i < kCount; ++i) all += static_cast<double>(in[i]);
        });
        logit = (1.0 - smoothing) * logit + smoothing * block_sum(all) / classes;
    }
    float largest = kLowest, sum = 0.0f;
    each_pack<0, kCount>(classes, [&](int, int first) {
        float in[kCount];
        load_part(row, first, classes, packed, in);
        float most = largest;
#pragma unroll
        for (int i = 0; i < kCount; ++i) most = first + i < classes ? fmaxf(most, in[i]) : most;
        float more = 0.0f;
#pragma unroll
        for (int i = 0; i < kCount; ++i) more += first + i < classes ? expf(in[i] - most) : 0.0f;
        sum = sum * expf(largest - most) + more;
        largest = most;
    });
    const float of_row = block_max(largest);
    sum = block_sum(sum * expf(largest - of_row));
    const float scale = 1.0f / sum;
    each_pack<0, kCount>(classes, [&](int, int first) {
        float in[kCount];
        load_part(row, first, classes, packed, in);
#pragma unroll
        for (int i = 0; i < kCount; ++i) in[i] = expf(in[i] - of_row) * scale;
        store_part(probabilities + begin, first, classes, packed, in);
    });
    if (threadIdx.x == 0) {
        const double loss = log(static_cast<double>(sum)) + static_cast<double>(of_row) - logit;
        losses[blockIdx.x] = target >= 0 ? loss : 0.0;
    }
}

__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward_kernel(const float* probabilities, const std::int32_t* targets, float* dlogits,
                                  int classes, float share, float of_each, float of_target, bool packed) {
    const std::size_t begin = std::size_t{blockIdx.x} * static_cast<std::size_t>(classes);
    const int target = targets[blockIdx.x];
    each_pack<0, kCount>(classes, [&](int, int first) {
        float p[kCount];
        load_part(probabilities + begin, first, classes, packed, p);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const float slope = (p[i] - (first + i == target ? of_target : of_each)) * share;
            p[i] = target >= 0 ? slope : 0.0f;
        }
        store_part(dlogits + begin, first, classes, packed, p);
    });
}

// The larger of two logits, of equal ones the first. A NaN never replaces another logit; as the first
// one it is never replaced.
struct Choice {
    float logit;
    int place;

    __device__ void meet(float other, int at) {
        if (!(other > logit || (other == logit && at < place))) return;
        logit = other;
        place = at;
    }
    __device__ void meet_lanes() {
#pragma unroll
        for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2) {
            const float other = __shfl_xor_sync(kAllLanes, logit, lanes);
            meet(other, __shfl_xor_sync(kAllLanes, place, lanes));
        }
    }
};

// right[row] = 1 if the largest logit is the target's, else 0.
__global__ void __launch_bounds__(kThreads)
    top_one_kernel(const float* logits, const std::int32_t* targets, double* right, int classes) {
    __shared__ float largest[kWarpLanes];
    __shared__ int places[kWarpLanes];
    const float* row = logits + std::size_t{blockIdx.x} * static_cast<std::size_t>(classes);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarpLanes, warp = thread / kWarpLanes;
    Choice choice{row[0], 0};
    for (int i = thread; i < classes; i += static_cast<int>(blockDim.x)) choice.meet(row[i], i);
    choice.meet_lanes();
    if (lane == 0) {
        largest[warp] = choice.logit;
        places[warp] = choice.place;
    }
    __syncthreads();
    if (warp != 0) return;
    const int from = lane < static_cast<int>(blockDim.x) / kWarpLanes ? lane : 0;
    choice = {largest[from], places[from]};
    choice.meet_lanes();
    if (thread == 0) right[blockIdx.x] = choice.place == targets[blockIdx.x] ? 1.0 : 0.0;
}

struct SquaredDistance {
    __device__ double operator()(float y, float target) const {
        const double distance = static_cast<double>(y) - static_cast<double>(target);
        return distance * distance;
    }
};
struct Distance {
    float factor;
    __device__ float operator()(float y, float target) const { return (y - target) * factor; }
};

}  // namespace

void cross_entropy_forward(const DeviceContext& device, const float* logits, const std::int32_t* targets,
                           float* probabilities, double* mean, int rows, int classes, int counted,
                           double smoothing) {
    auto* losses = device.workspace.take_of<double>(static_cast<std::size_t>(rows));
    const bool packed = classes % kCount == 0 && is_aligned(logits) && is_aligned(probabilities);
    launch(&cross_entropy_kernel, static_cast<unsigned>(rows), threads_of_row(classes), 0, device.stream,
           logits, targets, probabilities, losses, classes, smoothing, packed);
    sum_parts(device, losses, static_cast<std::size_t>(rows), counted > 0 ? counted : rows, mean);
}

void cross_entropy_backward(const DeviceContext& device, const float* probabilities,
                            const std::int32_t* targets, float* dlogits, int rows, int classes, int counted,
                            double smoothing, float loss_scale) {
    const auto of_each = static_cast<float>(smoothing / static_cast<double>(classes));
    const bool packed = classes % kCount == 0 && is_aligned(probabilities) && is_aligned(dlogits);
    launch(&cross_entropy_backward_kernel, static_cast<unsigned>(rows), threads_of_row(classes), 0,
           device.stream, probabilities, targets, dlogits, classes,
           loss_scale / static_cast<float>(counted > 0 ? counted : rows), of_each,
           static_cast<float>(1 - smoothing) + of_each, packed);
}

void top_one(const DeviceContext& device, const float* logits, const std::int32_t* targets, double* share,
             int rows, int classes) {
    auto* right = device.workspace.take_of<double>(static_cast<std::size_t>(rows));
    launch(&top_one_kernel, static_cast<unsigned>(rows), threads_of_row(classes), 0, device.stream, logits,
           targets, right, classes);
    sum_parts(device, right, static_cast<std::size_t>(rows), rows, share);
}

void mse_forward(const DeviceContext& device, const float* y, const float* target, double* mean,
                 std::size_t n) {
    sum(device, n, SquaredDistance{}, static_cast<double>(n), mean, y, target);
}

void mse_backward(const DeviceContext& device, const float* y, const float* target, float* dy, std::size_t n,
                  float loss_scale) {
    map(device, dy, n, Distance{static_cast<float>(2.0 / static_cast<double>(n)) * loss_scale}, y, target);
}

}  // namespace shardscope::trainer::cuda
