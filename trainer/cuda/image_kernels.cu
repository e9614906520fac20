// See image_kernels.h. The order of args and dims is in trainer/plan/kernels.def.
#include "trainer/cuda/batch_norm.h"
#include "trainer/cuda/convolution.h"
#include "trainer/cuda/gemm.h"
#include "trainer/cuda/image_kernels.h"
#include "trainer/cuda/pool.h"

namespace shardscope::trainer::cuda {
namespace {

using device::KernelOperands;

void convolve(const KernelOperands& o, const kernels::ImageShape& image, const DeviceContext& device) {
    const kernels::ConvolutionShape shape{image, o.d(4), kernels::Window::unpacked(o.own.dims[5])};
    if (shape.window == kernels::Window{}) return device.gemm.launch(o.op, o.data, device.stream);
    switch (o.own.kernel) {
        case plan::Kernel::convolution_forward:
            return convolution_forward(device, o.f(1), o.f(2), o.count > 3 ? o.f(3) : nullptr, o.f(0), shape);
        case plan::Kernel::convolution_backward_input:
            return convolution_backward_input(device, o.f(1), o.f(2), o.f(0), shape);
        default:
            return convolution_backward_weight(device, o.f(1), o.f(2), o.f(0), shape);
    }
}

void pool(const KernelOperands& o, const kernels::ImageShape& image, const DeviceContext& device) {
    const auto window = [&o] { return kernels::Window::unpacked(o.own.dims[4]); };
    switch (o.own.kernel) {
        case plan::Kernel::max_pool_forward:
            return max_pool_forward(device, o.f(2), o.f(0), o.as<std::int32_t>(1), image, window());
        case plan::Kernel::max_pool_backward:
            return max_pool_backward(device, o.f(1), o.tokens(2), o.f(0), image, window());
        case plan::Kernel::adaptive_average_forward:
            return adaptive_average_forward(device, o.f(1), o.f(0), image, o.d(4));
        default:
            return adaptive_average_backward(device, o.f(1), o.f(0), image, o.d(4));
    }
}

}  // namespace

bool launch_image_kernel(const KernelOperands& o, const DeviceContext& device) {
    const auto image = [&o] { return kernels::ImageShape{o.d(0), o.d(1), o.d(2), o.d(3)}; };
    const auto running = [&o] {
        return kernels::RunningStatistics{o.f(3), o.f(4), static_cast<float>(o.own.scalars[0])};
    };
    switch (o.own.kernel) {
        case plan::Kernel::convolution_forward:
        case plan::Kernel::convolution_backward_input:
        case plan::Kernel::convolution_backward_weight:
            return convolve(o, image(), device), true;
        case plan::Kernel::max_pool_forward:
        case plan::Kernel::max_pool_backward:
        case plan::Kernel::adaptive_average_forward:
        case plan::Kernel::adaptive_average_backward:
            return pool(o, image(), device), true;
        case plan::Kernel::batch_norm_forward:
            return batch_norm_forward(device, o.f(5), o.f(6), o.f(7), o.f(0), o.f(1), o.f(2), running(),
                                      o.d(0), o.d(1), device::kNormEps),
                   true;
        case plan::Kernel::batch_norm_evaluate:
            return batch_norm_evaluate(device, o.f(3), o.f(4), o.f(5), o.f(1), o.f(2), o.f(0), o.d(0), o.d(1),
                                       device::kNormEps),
                   true;
        case plan::Kernel::batch_norm_backward:
            return batch_norm_backward(device, o.f(3), o.f(4), o.f(5), o.f(6), o.f(7), o.f(0), o.f(1), o.f(2),
                                       o.d(0), o.d(1)),
                   true;
        case plan::Kernel::batch_norm_statistics:
            return batch_norm_statistics(device, o.f(1), o.f(0), o.d(0), o.d(1)), true;
        case plan::Kernel::batch_norm_synced_forward:
            return batch_norm_synced_forward(device, o.f(5), o.f(8), o.d(2), o.f(6), o.f(7), o.f(0), o.f(1),
                                             o.f(2), running(), o.d(0), o.d(1), device::kNormEps),
                   true;
        case plan::Kernel::batch_norm_gradient_sums:
            return batch_norm_gradient_sums(device, o.f(3), o.f(4), o.f(5), o.f(6), o.f(0), o.f(1), o.f(2),
                                            o.d(0), o.d(1)),
                   true;
        case plan::Kernel::batch_norm_synced_backward:
            return batch_norm_synced_backward(device, o.f(1), o.f(2), o.f(3), o.f(4), o.f(5), o.f(6), o.f(0),
                                              o.d(0), o.d(1), o.own.dims[0] * o.own.dims[2]),
                   true;
        default:
            return false;
    }
}

}  // namespace shardscope::trainer::cuda
