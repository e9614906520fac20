// Launches the kernels of an attention operation; see attention.h.
#include <algorithm>
#include <initializer_list>
#include <stdexcept>

#include "trainer/cuda/attention.h"
#include "trainer/cuda/attention_plain.h"
#include "trainer/cuda/flash.h"

namespace shardscope::trainer::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 8;  // threads per row

// delta = sum over a head's features of dout * out, [B,H,T]: reads both tensors once, so it is bound by
// memory.
template <class T>
__global__ void __launch_bounds__(kThreads)
    attention_delta(const T* dout, const T* out, float* delta, AttentionSizes s) {
    const std::int64_t rows = static_cast<std::int64_t>(s.batch) * s.context * s.heads;
    const std::int64_t row =
        static_cast<std::int64_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
    const int lane = static_cast<int>(threadIdx.x % kLanes);
    float sum = 0.0f;
    if (row < rows) {  // rows of [B,T,H], in memory order
        const T *a = dout + row * s.d, *b = out + row * s.d;
        if (s.packed) {
            constexpr int kPack = kPackOf<T>;
            for (int e = lane * kPack; e < s.d; e += kLanes * kPack) {
                float x[kPack], y[kPack];
                load_floats(a + e, x);
                load_floats(b + e, y);
                for (int i = 0; i < kPack; ++i) sum = fmaf(x[i], y[i], sum);
            }
        } else {
            for (int e = lane; e < s.d; e += kLanes) sum = fmaf(to_float(a[e]), to_float(b[e]), sum);
        }
    }
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (row < rows && lane == 0) {
        const std::int64_t position = row / s.heads, head = row % s.heads;
        delta[(position / s.context * s.heads + head) * s.context + position % s.context] = sum;
    }
}

// Whether rows of heads in these tensors can be read in packs of 16 bytes.
template <class T>
bool packed(std::initializer_list<const T*> tensors, const AttentionSizes& s) {
    return s.d % kPackOf<T> == 0 && std::all_of(tensors.begin(), tensors.end(), is_aligned);
}

// On tensor cores; in fp32, which they do not have, the plain form that makes the probabilities again.
void launch_fused_forward(const float* qkv, float* out, float* lse, const AttentionSizes& s,
                          cudaStream_t stream) {
    launch_recomputed_forward(qkv, out, lse, s, stream);
}
template <class T>
void launch_fused_forward(const T* qkv, T* out, float* lse, AttentionSizes s, cudaStream_t stream) {
    s.packed = packed<T>({qkv, out}, s);
    launch_flash(FlashForward<T>{qkv, out, lse}, s, stream);
}

void launch_fused_backward(const float* dout, const float* qkv, const float* /*out*/, const float* lse,
                           float* dqkv, float* delta, const AttentionSizes& s, cudaStream_t stream) {
    launch_recomputed_backward(dout, qkv, lse, dqkv, delta, s, stream);
}
template <class T>
void launch_fused_backward(const T* dout, const T* qkv, const T* out, const float* lse, T* dqkv, float* delta,
                           AttentionSizes s, cudaStream_t stream) {
    s.packed = packed<T>({dqkv, dout, qkv, out}, s);
    const std::int64_t rows = std::int64_t{s.batch} * s.context * s.heads;
    constexpr std::int64_t kRows = kThreads / kLanes;
    launch(attention_delta<T>, dim3(static_cast<unsigned>((rows + kRows - 1) / kRows)), dim3(kThreads), 0,
           stream, dout, out, delta, s);
    launch_flash(FlashBackward<T>{qkv, dout, lse, delta, dqkv}, s, stream);
}

template <class T>
void launch_elements(const plan::Op& op, const std::vector<std::byte*>& data, cudaStream_t stream) {
    const AttentionSizes sizes = AttentionSizes::of(op.kernel());
    const auto t = [&](std::size_t arg) { return reinterpret_cast<T*>(data[arg]); };
    const auto in = [&](std::size_t arg) { return reinterpret_cast<const T*>(data[arg]); };
    const auto f = [&](std::size_t arg) { return reinterpret_cast<float*>(data[arg]); };
    const bool fused = op.kernel().kernel == plan::Kernel::fused_attention_forward ||
                       op.kernel().kernel == plan::Kernel::fused_attention_backward;
    if (fused && !sizes.causal) throw std::logic_error("fused attention is causal only");
    switch (op.kernel().kernel) {
        case plan::Kernel::attention_forward:
            return launch_plain_forward(in(2), t(0), t(1), sizes, stream);
        case plan::Kernel::attention_backward:
            return launch_plain_backward(in(2), in(3), in(4), t(0), f(1), sizes, stream);
        case plan::Kernel::fused_attention_forward:
            return launch_fused_forward(in(2), t(0), f(1), sizes, stream);
        case plan::Kernel::fused_attention_backward:
            return launch_fused_backward(in(2), in(3), in(4), f(5), t(0), f(1), sizes, stream);
        default:
            throw std::logic_error("launch_attention was given a kernel that is not attention");
    }
}

}  // namespace

void launch_attention(const plan::Op& op, const std::vector<std::byte*>& data, cudaStream_t stream) {
    with_type(op.kernel().dtype, [&]<class T>(T) { launch_elements<T>(op, data, stream); });
}

}  // namespace shardscope::trainer::cuda
