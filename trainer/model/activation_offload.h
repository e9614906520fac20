// memory.offload = "activations": what the layers of a model save for their backward is in pinned host memory
// until then, as with torch.autograd.graph.save_on_cpu. A layer's tensors are copied on the post_backward
// stream once the next layer begins, and back, on the pre_unshard stream, while the backward of the layer
// after it runs. What the last layer saves, and what is outside of layers, stays: the backward begins with
// it. So do tensors that are smaller than kSmallestOffload, and parameters.
//
// The device has, of what L layers save, at most that of two in a forward and of three in a backward: the
// host waits, since it would else allocate for a layer what another has not left yet.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

inline constexpr std::int64_t kSmallestOffload = std::int64_t{64} << 10;  // bytes

// Of one forward and its backward.
class ActivationOffload {
  public:
    ActivationOffload(plan::PlanBuilder& builder, plan::Tape& tape) : builder_(builder), tape_(tape) {}
    ~ActivationOffload() { builder_.end_watch(made_); }
    ActivationOffload(const ActivationOffload&) = delete;  // nodes of the tape refer to it
    ActivationOffload& operator=(const ActivationOffload&) = delete;

    // Around the call of each layer.
    void begin_layer(const Module& layer, const plan::Tensor& input);
    void end_layer();
    // Whether something was copied.
    bool copies() const { return copies_; }

  private:
    struct Saved {
        std::weak_ptr<plan::Storage> storage;
        plan::Tensor on_host;
    };
    struct Layer {
        int module = -1;
        std::vector<Saved> saved;    // what is on the host
        plan::EventId copied = -1;   // to the host
        plan::EventId fetched = -1;  // and back
        plan::EventId reached = -1;  // the backward of the layer after it has ended
    };
    void copy_out(Layer& layer, const plan::Tensor& input);
    void fetch(Layer& layer);
    void begin_backward(std::size_t index);

    plan::PlanBuilder& builder_;
    plan::Tape& tape_;
    std::vector<Layer> layers_;                       // in the order of the forward
    std::vector<std::weak_ptr<plan::Storage>> made_;  // since the first layer began, and not copied
    bool copies_ = false;
};

}  // namespace shardscope::trainer::model
