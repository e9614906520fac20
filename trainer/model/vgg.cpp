#include "trainer/model/vgg.h"

#include <algorithm>
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

constexpr Window kWindow{3, 1, 1}, kHalve{2, 2, 0};
constexpr int kVggStages = 5;
constexpr int kMostWidening = 8;  // channels of the last stages, by those of the first
constexpr int kPooled = 7;        // pixels of a side that the Linear layers see
constexpr int kHidden = 64;       // their features, by the channels of the first stage
constexpr float kLinearStd = 0.01F;

// The convolutions of each stage.
std::array<int, kVggStages> convolutions_of(int depth) {
    switch (depth) {
        case 11:
            return {1, 1, 2, 2, 2};
        case 13:
            return {2, 2, 2, 2, 2};
        case 16:
            return {2, 2, 3, 3, 3};
        case 19:
            return {2, 2, 4, 4, 4};
        default:
            throw std::logic_error("there is no VGG of this depth");
    }
}

// Modules that are named by their place.
class Numbered {
  public:
    template <class T, class... Args>
    T& add(Args&&... args) {
        auto module = std::make_unique<T>(std::to_string(modules_.size()), std::forward<Args>(args)...);
        T& added = *module;
        modules_.push_back(std::move(module));
        return added;
    }
    std::unique_ptr<Sequential> as(std::string attribute) {
        return std::make_unique<Sequential>(std::move(attribute), std::move(modules_));
    }

  private:
    std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace

Vgg::Vgg(const VggShape& shape) : Module("VGG", "") {
    constexpr kernels::ActivationKind kRelu = kernels::ActivationKind::relu;
    Numbered features, classifier;
    int side = shape.image, in = shape.channels;
    const std::array<int, kVggStages> convolutions = convolutions_of(shape.depth);
    for (int stage = 0; stage < kVggStages; ++stage) {
        const int out = shape.width * std::min(1 << stage, kMostWidening);
        for (int i = 0; i < convolutions[static_cast<std::size_t>(stage)]; ++i) {
            features.add<Conv2d>(side, in, out, kWindow, true);
            features.add<Activation>(kRelu, true);
            in = out;
        }
        features.add<MaxPool2d>(side, in, kHalve);
        side = kHalve.places(side);
    }
    int inputs = in * kPooled * kPooled;
    const int hidden = shape.width * kHidden;
    for (int layer = 0; layer < 2; ++layer) {
        Linear& linear = classifier.add<Linear>(inputs, hidden, true, kLinearStd);
        if (layer == 0) linear.parameters().front().pixels = std::int64_t{kPooled} * kPooled;
        classifier.add<Activation>(kRelu, true);
        classifier.add<Dropout>(shape.dropout);
        inputs = hidden;
    }
    classifier.add<Linear>(inputs, shape.classes, true, kLinearStd);
    add_child(features.as("features"));
    add_child(std::make_unique<AdaptiveAvgPool2d>("avgpool", side, in, kPooled));
    add_child(classifier.as("classifier"));
}

plan::Tensor Vgg::forward(Graph& graph, const plan::Tensor& images) {
    return call_in_order(graph, *this, images);
}

}  // namespace shardscope::trainer::model
