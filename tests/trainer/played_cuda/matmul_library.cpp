// The MatmulLibrary, simulated: matmuls of column-major matrices as cuBLAS defines them, C = op(A) op(B) +
// bias with sums in double and one rounding; an activation is applied to the sum before it is rounded.
#include "trainer/cuda/matmul_library.h"

#include "tests/trainer/played_cuda/runtime_api.h"
#include "trainer/cuda/types.h"
#include "trainer/kernels/activation.h"

namespace shardscope::trainer::cuda {

struct MatmulLibrary::State {};

MatmulLibrary::MatmulLibrary(bool) {}
MatmulLibrary::~MatmulLibrary() = default;

namespace {

float activated(kernels::ActivationKind activation, float sum) {
    if (activation == kernels::ActivationKind::relu) kernels::relu_forward(&sum, &sum, 1);
    if (activation == kernels::ActivationKind::gelu) kernels::gelu_forward(&sum, &sum, 1);
    return sum;
}

template <class T>
void column_major_product(const MatmulCall& call) {
    const Matmul& p = call.matmul;
    const auto* a = reinterpret_cast<const T*>(call.a);
    const auto* b = reinterpret_cast<const T*>(call.b);
    const auto* bias = reinterpret_cast<const T*>(call.bias);
    auto* c = reinterpret_cast<T*>(call.c);
    auto* sums = reinterpret_cast<T*>(call.sum);
    for (std::int64_t column = 0; column < p.n; ++column) {
        for (std::int64_t row = 0; row < p.m; ++row) {
            double sum = bias ? to_float(bias[row]) : 0.0;
            for (std::int64_t k = 0; k < p.k; ++k) {
                const T x = a[p.transpose_a ? k + row * p.lda : row + k * p.lda];
                const T y = b[p.transpose_b ? column + k * p.ldb : k + column * p.ldb];
                sum += static_cast<double>(to_float(x)) * static_cast<double>(to_float(y));
            }
            const std::int64_t at = row + column * p.ldc;
            if (sums) sums[at] = rounded<T>(static_cast<float>(sum));
            c[at] = rounded<T>(activated(p.activation, static_cast<float>(sum)));
        }
    }
}

}  // namespace

void MatmulLibrary::multiply(const MatmulCall& call, cudaStream_t stream) {
    played_cuda::enqueue(
        stream, [call] { with_type(call.dtype, [&]<class T>(T) { column_major_product<T>(call); }); });
}

}  // namespace shardscope::trainer::cuda
