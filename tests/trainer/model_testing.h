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

class PlainStore final : public model::ParameterStore {
  public:
    PlainStore(const model::ModuleTree& tree, plan::DType dtype) : dtype_(dtype) {
        for (const model::Parameter* parameter : tree.parameters) {
            buffers_.push_back({parameter->path, plan::MemoryCategory::parameters, plan::MemorySpace::device,
                                parameter->elements() * size_of(dtype), -1, -1});
        }
        first_buffer_ = static_cast<plan::BufferId>(buffers_.size());
        for (const model::ModuleBuffer* buffer : tree.buffers) {
            buffers_.push_back({buffer->path, plan::MemoryCategory::parameters, plan::MemorySpace::device,
                                buffer->elements * size_of(plan::DType::fp32), -1, -1});
        }
    }
    const std::vector<plan::Buffer>& buffers() const { return buffers_; }
    void begin(plan::PlanBuilder& builder) { builder_ = &builder; }

    plan::Arg parameter(const model::Parameter& parameter) override { return builder_->whole(parameter.id); }
    plan::Arg buffer(const model::ModuleBuffer& buffer) override {
        return builder_->whole(first_buffer_ + buffer.id);
    }
    plan::Tensor new_gradient(const model::Parameter& parameter) override {
        return builder_->new_tensor(parameter.path + ".grad", plan::MemoryCategory::unsharded_gradients,
                                    parameter.elements(), dtype_);
    }
    void gradient_ready(const model::Parameter& parameter, plan::Tensor gradient) override {
        ++ready_[parameter.path];
        auto [kept, first] = gradients_.try_emplace(parameter.id, gradient);
        if (first) return;
        const std::int64_t n = gradient.elements();
        builder_->kernel(plan::Kernel::accumulate, "accumulate", {kept->second, gradient}, {n})
            .kernel()
            .dtype = dtype_;
    }

    // How often each parameter's gradient became ready, by path; parameters that never did are absent.
    const std::map<std::string, int>& ready() const { return ready_; }
    std::map<int, plan::Tensor> take_gradients() { return std::move(gradients_); }

  private:
    plan::DType dtype_;
    plan::PlanBuilder* builder_ = nullptr;
    std::vector<plan::Buffer> buffers_;
    plan::BufferId first_buffer_ = 0;  // of modules
    std::map<int, plan::Tensor> gradients_;
    std::map<std::string, int> ready_;
};

struct Pass {
    plan::Plan plan;
    plan::BufferId input = -1, target = -1, output = -1, loss = -1;
    std::map<int, plan::BufferId> gradients;  // indexed by parameter id
    std::map<std::string, int> ready;
    plan::BufferId finite_flag = -1;

    std::vector<const plan::Op*> kernels(plan::Phase phase) const {
        std::vector<const plan::Op*> found;
        for (const plan::Op& op : plan.ops) {
            if (op.kind == plan::OpKind::kernel && op.phase == phase) found.push_back(&op);
        }
        return found;
    }
    std::vector<plan::Kernel> kinds(plan::Phase phase) const {
        std::vector<plan::Kernel> kinds;
        for (const plan::Op* op : kernels(phase)) kinds.push_back(op->kernel().kernel);
        return kinds;
    }
    int count(plan::Kernel kernel) const {
        return static_cast<int>(std::count_if(plan.ops.begin(), plan.ops.end(), [&](const plan::Op& op) {
            return op.kind == plan::OpKind::kernel && op.kernel().kernel == kernel;
        }));
    }
    std::vector<const plan::Op*> all(plan::Kernel kernel) const {
        std::vector<const plan::Op*> found;
        for (const plan::Op& op : plan.ops) {
            if (op.kind == plan::OpKind::kernel && op.kernel().kernel == kernel) found.push_back(&op);
        }
        return found;
    }
    // The peak bytes of activations.
    std::int64_t peak(plan::MemoryCategory category = plan::MemoryCategory::activations) const {
        std::int64_t live = 0, peak = 0;
        for (const plan::Op& op : plan.ops) {
            if (op.kind != plan::OpKind::allocate && op.kind != plan::OpKind::free) continue;
            const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
            if (buffer.category != category) continue;
            live += op.kind == plan::OpKind::allocate ? buffer.bytes : -buffer.bytes;
            peak = std::max(peak, live);
        }
        return peak;
    }
    // The number of kernels that read a buffer after it was freed, or before it was allocated.
    int dangling() const {
        std::vector<bool> live(plan.buffers.size());
        for (std::size_t i = 0; i < live.size(); ++i) {
            live[i] = plan.buffers[i].category == plan::MemoryCategory::parameters;
        }
        int wrong = 0;
        for (const plan::Op& op : plan.ops) {
            for (const plan::Arg& arg : op.args) {
                if (arg.buffer < 0) continue;
                const auto id = static_cast<std::size_t>(arg.buffer);
                if (op.kind == plan::OpKind::allocate)
                    live[id] = true;
                else if (!live[id])
                    ++wrong;
                if (op.kind == plan::OpKind::free) live[id] = false;
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
inline Pass write_pass(model::ModuleTree& tree, const job::Job& job, PassOptions options = {}) {
    const auto type = [](job::Precision precision) {
        return precision == job::Precision::bf16 ? plan::DType::bf16 : plan::DType::fp32;
    };
    const plan::DType dtype = type(job.precision.param);
    PlainStore store(tree, dtype);
    plan::PlanBuilder builder(plan::PlanKind::steady, store.buffers());
    store.begin(builder);
    Pass pass;
    {
        plan::Tape tape(builder);
        tape.set_recording(options.backward);
        model::Graph graph{{}, builder, tape, store};
        graph.dtype = dtype;
        graph.buffer_dtype = type(job.precision.buffer);
        graph.training = options.training;
        const model::BatchShape shape = model::batch_shape(job);
        const auto data = [&](const char* name, std::int64_t bytes) {
            return builder.new_tensor(name, plan::MemoryCategory::other, bytes / size_of(shape.dtype),
                                      shape.dtype);
        };
        plan::Tensor input = data("input", shape.input_bytes), target = data("target", shape.target_bytes),
                     flag;
        if (options.finite_flag) {
            flag = builder.new_tensor("finite flag", plan::MemoryCategory::other, 1, plan::DType::int32);
            graph.finite_flag = flag;
        }
        plan::Tensor output, loss_value;
        {
            const plan::PlanBuilder::Scope scope(builder, plan::Phase::forward, -1, -1);
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

inline model::ModuleTree tree_of(const job::Job& job) {
    return number_modules(model::make_model(job));
}

inline std::int64_t elements(const model::ModuleTree& tree) {
    std::int64_t sum = 0;
    for (const model::Parameter* parameter : tree.parameters) sum += parameter->elements();
    return sum;
}

inline job::Job small_gpt() {
    job::Job job;
    job.model.type = job::ModelType::gpt;
    job.model.layers = 2;
    job.model.heads = 2;
    job.model.width = 32;
    job.model.context = 16;
    job.data.type = job::DataType::text;
    job.data.batch = 2;
    return job;
}

inline job::Job small_llama() {
    job::Job job = small_gpt();
    job.model.type = job::ModelType::llama;
    job.model.heads = 4;
    job.model.kv_heads = 2;
    return job;
}

inline job::Job small_bert() {
    job::Job job = small_gpt();
    job.model.type = job::ModelType::bert;
    return job;
}

inline job::Job small_mlp() {
    job::Job job;
    job.model.layers = 4;
    job.model.width = 16;
    job.data.batch = 32;
    return job;
}

}  // namespace shardscope::trainer::testing
