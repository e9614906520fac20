#include "trainer/plan/tape.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace shardscope::trainer::plan {

void Tape::node(std::string name, std::function<void()> run, bool saves) {
    if (!recording_) return;
    saves = saves && !name.empty();
    if (rehearsal_) {
        if (saves) *rehearsal_ = {rehearsal_->saves + 1, {}};
        return;
    }
    nodes_.push_back({std::move(name), builder_.module(), builder_.unit(), std::move(run)});
    if (saves && saves_left_ > 0 && --saves_left_ == 0) builder_.mute(true);
}

void Tape::hook(std::function<void()> run) {
    if (!recording_) return;
    if (!rehearsal_) {
        if (!builder_.muted()) node("", std::move(run), false);
        return;
    }
    rehearsal_->hooks.push_back(
        [builder = &builder_, module = builder_.module(), unit = builder_.unit(), run = std::move(run)] {
            const PlanBuilder::Scope scope(*builder, Phase::backward, module, unit);
            run();
        });
}

void Tape::accumulate(int value, Tensor gradient) {
    if (value < 0) return;
    hand_on([this, value, gradient = std::move(gradient)]() mutable { add(value, std::move(gradient)); });
}

void Tape::hand_on(std::function<void()> result) {
    if (running_) {
        results_.push_back(std::move(result));
    } else {
        result();
    }
}

void Tape::add(int value, Tensor gradient) {
    auto [it, first] = gradients_.try_emplace(value, gradient);
    if (first) return;
    Tensor& sum = it->second;
    const std::int64_t n = sum.elements();
    if (sum.storage.use_count() == 1) {
        builder_.kernel(Kernel::accumulate, "elementwise_add", {sum, gradient}, {n}, n).kernel().dtype =
            sum.dtype;
        return;
    }
    Tensor fresh = builder_.new_tensor("gradient sum", MemoryCategory::activations, n, sum.dtype);
    builder_.kernel(Kernel::add, "elementwise_add", {fresh, sum, gradient}, {n}, n).kernel().dtype =
        sum.dtype;
    sum = std::move(fresh);
}

Tensor Tape::take_gradient(int value) {
    auto it = gradients_.find(value);
    if (it == gradients_.end()) throw std::logic_error("the backward uses a value that has no gradient");
    Tensor gradient = std::move(it->second);
    gradients_.erase(it);
    return gradient;
}

void Tape::weight_work(std::function<void()> run) {
    if (!defers_weights_) return run();
    weights_.push_back({running_name_, builder_.module(), builder_.unit(), std::move(run)});
}

void Tape::backward_input() {
    defers_weights_ = true;
    backward();
    defers_weights_ = false;
}

void Tape::weights() {
    std::reverse(weights_.begin(), weights_.end());
    nodes_ = std::move(weights_);
    backward();
}

void Tape::backward() {
    while (!nodes_.empty()) {
        Node node = std::move(nodes_.back());
        nodes_.pop_back();
        const PlanBuilder::Scope scope(builder_, Phase::backward, node.module, node.unit);
        if (node.name.empty()) {
            running_name_.clear();
            node.run();
        } else {
            const PlanBuilder::Range range(builder_, "autograd::engine::evaluate_function: " + node.name,
                                           node.module);
            const PlanBuilder::Range inner(builder_, node.name);
            running_ = true;
            if (defers_weights_) running_name_ = node.name;
            node.run();
            running_ = false;
            node.run = nullptr;  // frees the saved tensors inside the node's range
            for (std::function<void()>& result : results_) std::exchange(result, nullptr)();
            results_.clear();
        }
    }
    gradients_.clear();
}

}  // namespace shardscope::trainer::plan
