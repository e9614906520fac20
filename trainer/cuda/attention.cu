// Launches the kernels of an attention operation; see attention.h.
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

template <class T>
struct Launcher {
    const Op& op;
    const std::vector<std::byte*>& data;
    cudaStream_t stream;
    AttentionSizes sizes = AttentionSizes::of(op);

    T* t(std::size_t arg) const { return reinterpret_cast<T*>(data[arg]); }
    float* f(std::size_t arg) const { return reinterpret_cast<float*>(data[arg]); }

    // Whether rows of heads in these tensors can be read in packs of 16 bytes.
    bool packed(std::initializer_list<const void*> tensors) const {
        for (const void* tensor : tensors) {
            if (!is_aligned(tensor)) return false;
        }
        return sizes.d % kPackOf<T> == 0;
    }

    void check_causal() const {
        if (!sizes.causal) throw std::logic_error("fused attention is causal only");
    }
    void fused_forward() {
        check_causal();
        sizes.packed = packed({t(0), t(2)});
        launch_flash(FlashForward<T>{t(2), t(0), f(1)}, sizes, stream);
    }
    void fused_backward() {
        check_causal();
        sizes.packed = packed({t(0), t(2), t(3), t(4)});
        const std::int64_t rows = std::int64_t{sizes.batch} * sizes.context * sizes.heads;
        constexpr std::int64_t kRows = kThreads / kLanes;
        launch(attention_delta<T>, dim3(static_cast<unsigned>((rows + kRows - 1) / kRows)), dim3(kThreads), 0,
               stream, t(2), t(4), f(1), sizes);
        launch_flash(FlashBackward<T>{t(3), t(2), f(5), f(1), t(0)}, sizes, stream);
    }

    void run() {
        switch (op.kernel) {
            case Kernel::attention_forward:
                return launch_plain_forward<T>(t(2), t(0), t(1), sizes, stream);
            case Kernel::attention_backward:
                return launch_plain_backward<T>(t(2), t(3), t(4), t(0), f(1), sizes, stream);
            case Kernel::fused_attention_forward:
                return fused_forward();
            case Kernel::fused_attention_backward:
                return fused_backward();
            default:
                throw std::logic_error("launch_attention was given a kernel that is not attention");
        }
    }
};

}  // namespace

void launch_attention(const Op& op, const std::vector<std::byte*>& data, cudaStream_t stream) {
    if (op.dtype == DType::bf16) {
        Launcher<Bf16>{op, data, stream}.run();
    } else {
        Launcher<float>{op, data, stream}.run();
    }
}

}  // namespace shardscope::trainer::cuda
