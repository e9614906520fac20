// Autograd at planning time: the forward pass of a model records nodes on a tape; the backward pass runs them
// in reverse and so writes the backward half of the Plan. A node's closure holds the tensors that PyTorch's
// node would save, and is destroyed right after it ran, which frees them before its results are handed on, as
// in PyTorch's engine.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/plan/builder.h"

namespace shardscope::trainer::plan {

class Tape {
  public:
    // `recomputed`: of a forward that is run again in the backward. What its nodes saved is free as soon as
    // their own kernels have been enqueued, before a gradient is summed to the shape of a parameter that was
    // broadcast.
    explicit Tape(PlanBuilder& builder, bool recomputed = false)
        : builder_(builder), recomputed_(recomputed) {}
    bool recomputed() const { return recomputed_; }

    // A new identity for a tensor whose gradient will be needed.
    int new_value() { return next_value_++; }

    // `name`: PyTorch's node ("AddmmBackward0"), shown as autograd's range; empty: `run` makes its own
    // ranges. The backward runs in the module and unit that are current now. Nothing is recorded while the
    // tape is paused (torch.no_grad). `saves`: whether PyTorch's node saves tensors; one
    // without a name saves none.
    void node(std::string name, std::function<void()> run, bool saves = true);
    // A hook on the output of a module (a unit's pre-backward hook).
    void hook(std::function<void()> run);

    // --- of a forward that is recomputed (torch.utils.checkpoint) ---
    // PyTorch recomputes when the first saved tensor is needed, and only until all are there again. A
    // rehearsal, whose nodes are forgotten, shows how many nodes save, and the hooks that run before the
    // first of them.
    struct Rehearsal {
        int saves = 0;
        std::vector<std::function<void()>>
            hooks;  // after the last node that saves, in the order of the forward
    };
    void rehearse(Rehearsal& into) { rehearsal_ = &into; }
    // Mutes the builder when this many nodes have saved.
    void stop_after(int saves) { saves_left_ = saves; }
    // Called before the kernel of a node that saves nothing but its inputs, which PyTorch saves before the
    // kernel runs.
    void saves_inputs() {
        if (saves_left_ == 1) builder_.mute(true);
    }

    bool recording() const { return recording_; }
    void set_recording(bool recording) { recording_ = recording; }

    // Gradients of values; values below 0 have none. The first one accumulated becomes the gradient; a later
    // one is added to it, in place if it has no other owner, as in PyTorch. take_gradient returns the
    // gradient and removes it from the tape. What a running node accumulates is a result.
    void accumulate(int value, Tensor gradient);
    Tensor take_gradient(int value);

    // Called when the running node's saved tensors are free; immediately if none is running.
    void hand_on(std::function<void()> result);

    // Work that only the gradients of parameters need: done at once, or kept for weights().
    void weight_work(std::function<void()> run);
    bool defers_weights() const { return defers_weights_; }

    // Runs all nodes in reverse order.
    void backward();
    // The same in two parts, for a pipeline: the gradient of the input (I), later those of the parameters
    // (W). What the second part needs is kept until then, also if the forward was recomputed.
    void backward_input();
    void weights();

  private:
    struct Node {
        std::string name;
        int module = -1, unit = -1;
        std::function<void()> run;
    };
    void add(int value, Tensor gradient);

    PlanBuilder& builder_;
    std::vector<Node> nodes_;
    std::vector<std::function<void()>> results_;  // of the running node
    std::string running_name_;
    std::vector<Node> weights_;  // in the order in which they will run
    std::unordered_map<int, Tensor> gradients_;
    int next_value_ = 0;
    const bool recomputed_;
    Rehearsal* rehearsal_ = nullptr;
    int saves_left_ = 0;  // 0: no limit
    bool recording_ = true, running_ = false, defers_weights_ = false;
};

}  // namespace shardscope::trainer::plan
