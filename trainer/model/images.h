// The layers of images, as torch.nn has them. Activations are [batch, side, side, channels] (NHWC;
// channels_last in PyTorch); images are square, and a layer knows the side of its own.
#pragma once

#include <cstdint>

#include "trainer/kernels/window.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// A convolution. Its weight [out, window row, window column, in] starts as normal(0, sqrt(2 / fan_out)),
// which is kaiming_normal_ with mode="fan_out" (He et al.: arXiv 1502.01852), its bias at 0.
class Conv2d final : public Module {
  public:
    Conv2d(std::string attribute, int side, int in, int out, const kernels::Window& window,
           bool bias = false);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

    int result_side() const { return window_.places(static_cast<int>(side_)); }

  private:
    std::array<std::int64_t, 6> dims(std::int64_t batch) const {
        return {batch, side_, side_, in_, out_, window_.packed()};
    }
    std::int64_t side_, in_, out_;
    kernels::Window window_;
    bool bias_;
};

// Batch norm with the statistics of the rank's own images, as BatchNorm2d between DistributedDataParallel's
// ranks. Its buffers are the running statistics, of which each batch is a tenth (momentum 0.1); the number of
// batches that PyTorch counts beside them, and reads only without a momentum, is omitted.
class BatchNorm2d final : public Module {
  public:
    // `synced`: with the statistics of all ranks' images, as SyncBatchNorm. Its forward gathers those of each
    // rank, and its backward sums what the input's gradient needs.
    BatchNorm2d(std::string attribute, int channels, bool synced = false);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    struct Backward {  // its results, of which any may be missing, and what it reads
        const plan::Tensor &dx, &dgamma, &dbeta, &dy, &x, &mean, &rstd;
    };
    plan::Tensor gathered_statistics(Graph& graph, const plan::Tensor& x) const;
    void synced_backward(Graph& graph, const Backward& of) const;

    std::int64_t channels_;
    bool synced_;
};

class MaxPool2d final : public Module {
  public:
    MaxPool2d(std::string attribute, int side, int channels, const kernels::Window& window);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    std::int64_t side_, channels_;
    kernels::Window window_;
};

// Means of each channel over `result` x `result` parts of the image, [batch, result, result, channels].
class AdaptiveAvgPool2d final : public Module {
  public:
    AdaptiveAvgPool2d(std::string attribute, int side, int channels, int result = 1)
        : Module("AdaptiveAvgPool2d", std::move(attribute)),
          side_(side),
          channels_(channels),
          result_(result) {}
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    std::int64_t side_, channels_, result_;
};

}  // namespace shardscope::trainer::model
