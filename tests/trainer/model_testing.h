// Models without a parallel mode: a store that keeps each parameter in a buffer of its own, and the Plan of
// one forward and backward in the form that the tests of models read.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/model/models.h"
#include "trainer/plan/account.h"
#include "trainer/plan/builder.h"
#include "trainer/plan/tape.h"

namespace shardscope::trainer::testing {

class PlainStore final : public ParameterStore {
  public:
    PlainStore(const ModuleTree& tree, DType dtype) : dtype_(dtype) {
        for (const Parameter* parameter : tree.parameters) {
            buffers_.push_back({parameter->path, MemoryCategory::parameters, MemorySpace::device,
                                parameter->elements() * size_of(dtype), -1, -1});
        }
    }
    const std::vector<Buffer>& buffers() const { return buffers_; }
    void begin(PlanBuilder& builder) { builder_ = &builder; }

    Arg parameter(const Parameter& parameter) override { return builder_->whole(parameter.id); }
    Tensor new_gradient(const Parameter& parameter) override {
        return builder_->new_tensor(parameter.path + ".grad", MemoryCategory::unsharded_gradients,
                                    parameter.elements(), dtype_);
    }
    void gradient_ready(const Parameter& parameter, Tensor gradient) override {
        ++ready_[parameter.path];
        auto [kept, first] = gradients_.try_emplace(parameter.id, gradient);
        if (first) return;
        const std::int64_t n = gradient.elements();
        builder_->kernel(Kernel::accumulate, "accumulate", {kept->second, gradient}, {n}).kernel().dtype =
            dtype_;
    }

    // How often each parameter's gradient became ready, by path; parameters that never did are absent.
    const std::map<std::string, int>& ready() const { return ready_; }
    std::map<int, Tensor> take_gradients() { return std::move(gradients_); }

  private:
    DType dtype_;
    PlanBuilder* builder_ = nullptr;
    std::vector<Buffer> buffers_;
    std::map<int, Tensor> gradients_;
    std::map<std::string, int> ready_;
};

struct Pass {
    Plan plan;
    BufferId input = -1, target = -1, output = -1, loss = -1;
    std::map<int, BufferId> gradients;  // indexed by parameter id
    std::map<std::string, int> ready;
    BufferId finite_flag = -1;

    std::vector<const Op*> kernels(Phase phase) const {
        std::vector<const Op*> found;
        for (const Op& op : plan.ops) {
            if (op.kind == OpKind::kernel && op.phase == phase) found.push_back(&op);
        }
        return found;
    }
    std::vector<Kernel> kinds(Phase phase) const {
        std::vector<Kernel> kinds;
        for (const Op* op : kernels(phase)) kinds.push_back(op->kernel().kernel);
        return kinds;
    }
    int count(Kernel kernel) const {
        return static_cast<int>(std::count_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) {
            return op.kind == OpKind::kernel && op.kernel().kernel == kernel;
        }));
    }
    std::vector<const Op*> all(Kernel kernel) const {
        std::vector<const Op*> found;
        for (const Op& op : plan.ops) {
            if (op.kind == OpKind::kernel && op.kernel().kernel == kernel) found.push_back(&op);
        }
        return found;
    }
    // The peak bytes of activations.
    std::int64_t peak(MemoryCategory category = MemoryCategory::activations) const {
        std::int64_t live = 0, peak = 0;
        for (const Op& op : plan.ops) {
            if (op.kind != OpKind::allocate && op.kind != OpKind::free) continue;
            const Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
            if (buffer.category != category) continue;
            live += op.kind == OpKind::allocate ? buffer.bytes : -buffer.bytes;
            peak = std::max(peak, live);
        }
        return peak;
    }
    // The number of kernels that read a buffer after it was freed, or before it was allocated.
    int dangling() const {
        std::vector<bool> live(plan.buffers.size());
        for (std::size_t i = 0; i < live.size(); ++i) {
            live[i] = plan.buffers[i].category == MemoryCategory::parameters;
        }
        int wrong = 0;
        for (const Op& op : plan.ops) {
            for (const Arg& arg : op.args) {
                if (arg.buffer < 0) continue;
                const auto id = static_cast<std::size_t>(arg.buffer);
                if (op.kind == OpKind::allocate)
                    live[id] = true;
                else if (!live[id])
                    ++wrong;
                if (op.kind == OpKind::free) live[id] = false;
            }
        }
        return wrong;
    }
};

struct PassOptions {
    bool backward = true;
    bool training = true;
    bool finite_flag = false;
};

// Forward, loss and backward of the job's model on one rank.
inline Pass write_pass(ModuleTree& tree, const Job& job, PassOptions options = {}) {
    const auto type = [](Precision precision) {
        return precision == Precision::bf16 ? DType::bf16 : DType::fp32;
    };
    const DType dtype = type(job.precision.param);
    PlainStore store(tree, dtype);
    PlanBuilder builder(PlanKind::steady, store.buffers());
    store.begin(builder);
    Pass pass;
    {
        Tape tape(builder);
        tape.set_recording(options.backward);
        Graph graph{builder, tape, store, dtype, type(job.precision.buffer), options.training, {}};
        const BatchShape shape = batch_shape(job);
        const auto data = [&](const char* name, std::int64_t bytes) {
            return builder.new_tensor(name, MemoryCategory::other, bytes / size_of(shape.dtype), shape.dtype);
        };
        Tensor input = data("input", shape.input_bytes), target = data("target", shape.target_bytes), flag;
        if (options.finite_flag) {
            flag = builder.new_tensor("finite flag", MemoryCategory::other, 1, DType::int32);
            graph.finite_flag = flag;
        }
        Tensor output, loss_value;
        {
            const PlanBuilder::Scope scope(builder, Phase::forward, -1, -1);
            output = call(graph, *tree.root, input);
            loss_value = loss(graph, job, output, target);
        }
        pass.input = input.view.buffer;
        pass.target = target.view.buffer;
        pass.output = output.view.buffer;
        pass.loss = loss_value.view.buffer;
        pass.finite_flag = flag.view.buffer;
        output = {};
        tape.backward();
        for (const auto& [id, gradient] : store.take_gradients()) pass.gradients[id] = gradient.view.buffer;
        pass.ready = store.ready();
    }
    pass.plan = builder.take();
    return pass;
}

inline ModuleTree tree_of(const Job& job) {
    return number_modules(make_model(job));
}

inline std::int64_t elements(const ModuleTree& tree) {
    std::int64_t sum = 0;
    for (const Parameter* parameter : tree.parameters) sum += parameter->elements();
    return sum;
}

inline Job small_gpt() {
    Job job;
    job.model.type = ModelType::gpt;
    job.model.layers = 2;
    job.model.heads = 2;
    job.model.width = 32;
    job.model.context = 16;
    job.data.type = DataType::text;
    job.data.batch = 2;
    return job;
}

inline Job small_llama() {
    Job job = small_gpt();
    job.model.type = ModelType::llama;
    job.model.heads = 4;
    job.model.kv_heads = 2;
    return job;
}

inline Job small_bert() {
    Job job = small_gpt();
    job.model.type = ModelType::bert;
    return job;
}

inline Job small_mlp() {
    Job job;
    job.model.layers = 4;
    job.model.width = 16;
    job.data.batch = 32;
    return job;
}

}  // namespace shardscope::trainer::testing
