// VGG (Simonyan, Zisserman, "Very deep convolutional networks for large-scale image recognition": arXiv
// 1409.1556) as torchvision has it, without batch norms, with its module names: 8 to 16 convolutions of 3 x 3
// in five stages, a max pool after each, and three Linear layers, which have nine tenths of the parameters.
// Their inputs are ordered row, column, channel. Weights start as torchvision's.
#pragma once

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

struct VggShape {
    int depth = 16;  // 11, 13, 16 or 19 layers with weights
    int width = 64;  // channels of the first stage
    int image = 224, channels = 3;
    int classes = 1000;
    double dropout = 0.5;
};

class Vgg final : public Module {
  public:
    explicit Vgg(const VggShape& shape);
    // fp32 images [batch, image, image, channels] to logits [batch, classes].
    plan::Tensor forward(Graph& graph, const plan::Tensor& images) override;
};

}  // namespace shardscope::trainer::model
