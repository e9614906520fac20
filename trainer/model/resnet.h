// ResNet (He et al., "Deep residual learning for image recognition": arXiv 1512.03385) as torchvision has it,
// with its module names: a convolution of 7 x 7 and a max pool, four stages of residual blocks, the mean of
// each channel, and a Linear head. A block of resnet18 and resnet34 has two convolutions of 3 x 3, a
// bottleneck of the deeper ones three, of 1, 3 and 1, of which the middle one has the stride ("v1.5").
// Weights start as torchvision's.
#pragma once

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

struct ResNetShape {
    int depth = 50;  // 18, 34, 50, 101 or 152
    int width = 64;  // channels of the first stage
    int image = 224, channels = 3;
    int classes = 1000;
    bool sync_batch_norm = false;

    // The side of the images of the last stage.
    int last_side() const;
};

class ResNet final : public Module {
  public:
    explicit ResNet(const ResNetShape& shape);
    // fp32 images [batch, image, image, channels] to logits [batch, classes].
    plan::Tensor forward(Graph& graph, const plan::Tensor& images) override;
};

}  // namespace shardscope::trainer::model
