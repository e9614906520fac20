#include "trainer/model/resnet.h"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/kernels/activation_kinds.h"
#include "trainer/model/images.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

namespace {

using kernels::Window;

constexpr Window kOne{1, 1, 0}, kThree{3, 1, 1}, kStem{7, 2, 3}, kPool{3, 2, 1};
constexpr int kStages = 4;
constexpr int kExpansion = 4;  // channels of a bottleneck's result, by those inside

Window with_stride(Window window, int stride) {
    window.stride = stride;
    return window;
}

// The blocks of each stage.
std::array<int, kStages> blocks_of(int depth) {
    switch (depth) {
        case 18:
            return {2, 2, 2, 2};
        case 34:
        case 50:
            return {3, 4, 6, 3};
        case 101:
            return {3, 4, 23, 3};
        case 152:
            return {3, 8, 36, 3};
        default:
            throw std::logic_error("there is no ResNet of this depth");
    }
}

bool has_bottlenecks(int depth) {
    return depth >= 50;
}

struct BlockShape {
    int side = 0, in = 0, inside = 0, out = 0, stride = 1;
    bool synced = false;
};

// Two or three convolutions, each with a batch norm, and ReLU between them; the input, through a convolution
// if its shape is another, is added to the result.
class ResidualBlock final : public Module {
  public:
    ResidualBlock(std::string attribute, const BlockShape& shape, bool bottleneck)
        : Module(bottleneck ? "Bottleneck" : "BasicBlock", std::move(attribute)) {
        int side = shape.side, in = shape.in;
        const auto convolution = [&](int out, const Window& window) {
            const std::string number = std::to_string(++convolutions_);
            auto layer = std::make_unique<Conv2d>("conv" + number, side, in, out, window);
            side = layer->result_side();
            in = out;
            add_child(std::move(layer));
            add_child(std::make_unique<BatchNorm2d>("bn" + number, out, shape.synced));
        };
        if (bottleneck) {
            convolution(shape.inside, kOne);
            convolution(shape.inside, with_stride(kThree, shape.stride));
            convolution(shape.out, kOne);
        } else {
            convolution(shape.inside, with_stride(kThree, shape.stride));
            convolution(shape.out, kThree);
        }
        relu_ = children().size();
        add_child(std::make_unique<Activation>("relu", kernels::ActivationKind::relu, true));
        if (shape.stride == 1 && shape.in == shape.out) return;
        std::vector<std::unique_ptr<Module>> projection;
        projection.push_back(
            std::make_unique<Conv2d>("0", shape.side, shape.in, shape.out, with_stride(kOne, shape.stride)));
        projection.push_back(std::make_unique<BatchNorm2d>("1", shape.out, shape.synced));
        add_child(std::make_unique<Sequential>("downsample", std::move(projection)));
    }

    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override {
        plan::Tensor x = input;
        for (std::size_t i = 0; i < relu_; i += 2) {
            x = call(graph, child(i), x);
            x = call(graph, child(i + 1), x);
            if (i + 2 < relu_) x = call(graph, child(relu_), x);
        }
        const bool projects = children().size() > relu_ + 1;
        const plan::Tensor identity = projects ? call(graph, child(relu_ + 1), input) : input;
        return call(graph, child(relu_), add_in_place(graph, x, identity));
    }

  private:
    int convolutions_ = 0;
    std::size_t relu_ = 0;
};

}  // namespace

int ResNetShape::last_side() const {
    int side = kPool.places(kStem.places(image));
    for (int stage = 1; stage < kStages; ++stage) side = with_stride(kThree, 2).places(side);
    return side;
}

ResNet::ResNet(const ResNetShape& shape) : Module("ResNet", "") {
    const bool bottleneck = has_bottlenecks(shape.depth);
    auto stem = std::make_unique<Conv2d>("conv1", shape.image, shape.channels, shape.width, kStem);
    const int pooled = stem->result_side();
    add_child(std::move(stem));
    add_child(std::make_unique<BatchNorm2d>("bn1", shape.width, shape.sync_batch_norm));
    add_child(std::make_unique<Activation>("relu", kernels::ActivationKind::relu, true));
    add_child(std::make_unique<MaxPool2d>("maxpool", pooled, shape.width, kPool));
    BlockShape block{.side = kPool.places(pooled), .in = shape.width, .synced = shape.sync_batch_norm};
    const std::array<int, kStages> blocks = blocks_of(shape.depth);
    for (int stage = 0; stage < kStages; ++stage) {
        std::vector<std::unique_ptr<Module>> layer;
        block.inside = shape.width << stage;
        block.out = block.inside * (bottleneck ? kExpansion : 1);
        for (int i = 0; i < blocks[static_cast<std::size_t>(stage)]; ++i) {
            block.stride = stage > 0 && i == 0 ? 2 : 1;
            layer.push_back(std::make_unique<ResidualBlock>(std::to_string(i), block, bottleneck));
            block.side = with_stride(kThree, block.stride).places(block.side);
            block.in = block.out;
        }
        add_child(std::make_unique<Sequential>("layer" + std::to_string(stage + 1), std::move(layer)));
    }
    add_child(std::make_unique<AdaptiveAvgPool2d>("avgpool", block.side, block.out));
    add_child(std::make_unique<Linear>("fc", block.out, shape.classes));
}

plan::Tensor ResNet::forward(Graph& graph, const plan::Tensor& images) {
    return call_in_order(graph, *this, images);
}

}  // namespace shardscope::trainer::model
