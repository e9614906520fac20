// See memory_origin.h. Names: PyTorch's ranges and functions of FSDP1, FSDP2, c10d, autograd and optimizers.
#include "traces/store/columns/memory_origin.h"

#include <array>

namespace shardscope::traces::store {

namespace {

using enum schema::MemoryCategory;

constexpr std::array kAnnotationRules = std::to_array<OriginRule>({
    {"", "FSDP::all_gather", unsharded_parameters, "FSDP2 gathers a unit's parameters and copies them out"},
    {"", "_unshard", unsharded_parameters, "FSDP1 gathers a unit's flat parameter"},
    {"", "fsdp::all_gather", unsharded_parameters, "FSDP2's operators around the gather"},
    {"", "nccl:_all_gather", unsharded_parameters, "a gather that no range of FSDP names"},
    {"", "nccl:all_gather", unsharded_parameters, "a gather that no range of FSDP names"},
    {"", "FSDP::post_backward_accumulate", unsharded_gradients,
     "FSDP2 adds up gradients before they are reduced"},
    {"", "FSDP::post_backward_reduce", communication, "FSDP2's reduce-scatter and its buffers", gradients},
    {"", "reduce", communication, "buffers of reduce-scatter and all-reduce"},
    {"", "nccl:", communication, "any other collective"},
    {"", "c10d::", communication, "any other collective"},
    {"", "Optimizer.step", optimizer_state,
     "state is made in the first step; later steps free what they take"},
    {"", "enumerate(DataLoader)", activations, "input batches count as activations"},
    {"", "FSDP::inputs_to_device", activations, "input batches count as activations"},
});

constexpr std::array kFrameRules = std::to_array<OriginRule>({
    {"", "setWorkspaceForHandle", other, "cuBLAS's workspace: it stays, whichever call came first"},
    {"", "BlasLtWorkspace", other, "cuBLASLt's workspace"},
    {"_fsdp_collectives.py", "reduce", communication, "FSDP2's reduce-scatter and its buffers", gradients},
    {"_fsdp_collectives.py", "all_gather", unsharded_parameters, "FSDP2's gather and its buffers"},
    {"_fsdp_param.py", "all_gather_outputs", unsharded_parameters, "FSDP2's gathered parameters"},
    {"_fsdp_param.py", "unshard", unsharded_parameters, "FSDP2's gathered parameters"},
    {"_fsdp_param.py", "_init_sharded", parameters, "FSDP2's shards"},
    {"_flat_param.py", "unshard", unsharded_parameters, "FSDP1's gathered flat parameter"},
    {"_flat_param.py", "", parameters, "FSDP1's flat parameter and its shard"},
    {"_runtime_utils.py", "reduce", communication, "FSDP1's reduce-scatter and its buffers", gradients},
    {"torch/optim/", "", optimizer_state, "state is made in the first step; later steps free what they take"},
    {"torch/nn/init.py", "", parameters, "weights are made"},
    {"", "reset_parameters", parameters, "weights are made"},
    {"torch/nn/modules/module.py", "_apply", parameters, "Module.to, Module.to_empty, Module.cuda"},
    {"", "torch::autograd::AccumulateGrad", unsharded_gradients, "a weight's gradient is kept", gradients},
    {"", "torch::autograd::Engine", activations,
     "the backward pass: gradients of activations; those of weights live until the optimizer steps",
     gradients},
    {"torch/distributed/", "all_gather", unsharded_parameters, "a gather"},
    {"distributed_c10d.py", "", communication, "any other collective"},
    {"torch/utils/data/", "", activations, "input batches count as activations"},
    {"torch/nn/modules/", "forward", activations, "the forward pass of a module"},
    {"torch/nn/modules/module.py", "_call_impl", activations, "the forward pass of a module"},
});

// The two parts of "path/file.py:12 function"; a frame without a file is only a function's name.
struct Frame {
    std::string_view file, function;
};
Frame parts(std::string_view line) {
    const std::size_t extension = line.find(".py:");
    const std::size_t space = extension == std::string_view::npos ? extension : line.find(' ', extension);
    if (space == std::string_view::npos) return {{}, line};
    return {line.substr(0, space), line.substr(space + 1)};
}

bool contains(std::string_view text, std::string_view part) {
    return part.empty() || text.find(part) != std::string_view::npos;
}

}  // namespace

std::span<const OriginRule> annotation_rules() {
    return kAnnotationRules;
}

std::span<const OriginRule> frame_rules() {
    return kFrameRules;
}

const OriginRule* rule_of_origin(std::string_view annotation) {
    for (const OriginRule& rule : kAnnotationRules) {
        if (contains(annotation, rule.name)) return &rule;
    }
    return nullptr;
}

const OriginRule* rule_of_stack(std::string_view stack) {
    while (!stack.empty()) {
        const std::size_t end = stack.find('\n');
        const Frame frame = parts(stack.substr(0, end));
        for (const OriginRule& rule : kFrameRules) {
            if (contains(frame.file, rule.file) && contains(frame.function, rule.name)) return &rule;
        }
        stack.remove_prefix(end == std::string_view::npos ? stack.size() : end + 1);
    }
    return nullptr;
}

schema::MemoryCategory category_of_origin(std::string_view annotation) {
    const OriginRule* rule = rule_of_origin(annotation);
    return rule != nullptr ? rule->category : other;
}

}  // namespace shardscope::traces::store
