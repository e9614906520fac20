// See gemm.h.
#include <stdexcept>

#include "trainer/cuda/gemm.h"
#include "trainer/cuda/matmul_library.h"

namespace shardscope::trainer::cuda {

namespace {

struct Sizes {
    std::int64_t rows = 0, in = 0, out = 0;
};

// A Linear's dims begin with these, a convolution's with batch, height, width, in, out.
Sizes sizes_of(const plan::KernelOp& own) {
    const auto& dims = own.dims;
    switch (own.kernel) {
        case plan::Kernel::convolution_forward:
        case plan::Kernel::convolution_backward_input:
        case plan::Kernel::convolution_backward_weight:
            return {dims[0] * dims[1] * dims[2], dims[3], dims[4]};
        default:
            return {dims[0], dims[1], dims[2]};
    }
}

// y = x wᵀ + b:  y [out,rows] = (w [in,out])ᵀ x [in,rows]. The input is the arg number `x`; the weight
// follows it, then the bias if there is one.
Matmul forward(const plan::Op& op, std::size_t x) {
    const auto [rows, in, out] = sizes_of(op.kernel());
    Matmul p;
    p.m = out, p.n = rows, p.k = in;
    p.a = x + 1, p.transpose_a = true, p.lda = in;
    p.b = x, p.ldb = in;
    p.ldc = out;
    const std::size_t own = op.args.size() - (op.kernel().checks_output ? 1 : 0);
    p.bias = own > x + 2 ? x + 2 : 0;
    return p;
}

}  // namespace

Matmul describe(const plan::Op& op) {
    const auto [rows, in, out] = sizes_of(op.kernel());
    Matmul p;
    switch (op.kernel().kernel) {
        case plan::Kernel::linear_forward:
        case plan::Kernel::convolution_forward:
            return forward(op, 1);
        case plan::Kernel::linear_relu_forward:
            p = forward(op, 1);
            p.activation = kernels::ActivationKind::relu;
            return p;
        case plan::Kernel::linear_gelu_forward:
            p = forward(op, 2);
            p.activation = kernels::ActivationKind::gelu;
            p.sum = op.args[1].buffer >= 0 ? 1 : 0;
            return p;
        case plan::Kernel::convolution_backward_input:
        case plan::Kernel::linear_backward_input:  // dx = dy w:  dx [in,rows] = w [in,out] dy [out,rows]
            p.m = in, p.n = rows, p.k = out;
            p.a = 2, p.lda = in;
            p.b = 1, p.ldb = out;
            p.ldc = in;
            return p;
        case plan::Kernel::convolution_backward_weight:
        case plan::Kernel::linear_backward_weight:  // dw = dyᵀ x:  dw [in,out] = x [in,rows] (dy [out,rows])ᵀ
            p.m = in, p.n = out, p.k = rows;
            p.a = 2, p.lda = in;
            p.b = 1, p.transpose_b = true, p.ldb = out;
            p.ldc = in;
            return p;
        default:
            throw std::logic_error("Gemm was given a kernel that is not a matmul");
    }
}

Gemm::Gemm(bool tf32) : library_(std::make_unique<MatmulLibrary>(tf32)) {}
Gemm::~Gemm() = default;

void Gemm::use_workspaces(std::byte* both, std::int64_t bytes) {
    workspaces_ = both;
    workspace_bytes_ = both ? bytes : 0;
}

void Gemm::launch(const plan::Op& op, const std::vector<std::byte*>& data, cudaStream_t stream) {
    const plan::KernelOp& own = op.kernel();
    MatmulCall call;
    call.matmul = describe(op);
    call.dtype = own.dtype;
    call.a = data[call.matmul.a];
    call.b = data[call.matmul.b];
    call.c = data[call.matmul.c];
    if (call.matmul.bias > 0) call.bias = data[call.matmul.bias];
    if (call.matmul.sum > 0) call.sum = data[call.matmul.sum];
    // One for the forward's and one for the backward's matmuls, which are on the compute stream; those of a
    // communication hook run beside them.
    if (workspace_bytes_ > 0 && op.stream == plan::Stream::compute) {
        const bool second = op.phase == plan::Phase::backward;
        call.workspace = workspaces_ + (second ? workspace_bytes_ : 0);
        call.workspace_bytes = workspace_bytes_;
    }
    library_->multiply(call, stream);
}

}  // namespace shardscope::trainer::cuda
