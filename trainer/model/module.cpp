#include "trainer/model/module.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace shardscope::trainer::model {

namespace {

// Pauses the tape until the end of the scope, like torch.no_grad.
class Paused {
  public:
    explicit Paused(plan::Tape& tape) : tape_(tape), recording_(tape.recording()) {
        tape.set_recording(false);
    }
    ~Paused() { tape_.set_recording(recording_); }
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

  private:
    plan::Tape& tape_;
    bool recording_;
};

// What a checkpointed module reads besides its input.
struct Kept {
    plan::Tensor shared;
    Routed routed;
};

Graph for_recomputation(const Graph& graph, plan::Tape& tape, const Kept& kept) {
    const GraphSettings& settings = graph;
    Graph again{settings, graph.builder, tape, graph.store};
    again.shared = kept.shared;
    again.routed = kept.routed;
    return again;
}

plan::Tape::Rehearsal rehearse(Graph& graph, Module& module, const plan::Tensor& input, const Kept& kept) {
    plan::Tape::Rehearsal rehearsal;
    plan::Tape tape(graph.builder);
    tape.rehearse(rehearsal);
    Graph again = for_recomputation(graph, tape, kept);
    plan::Tensor from = input;
    if (input.value >= 0) from.value = tape.new_value();
    graph.builder.mute(true);
    {
        const plan::PlanBuilder::Scope scope(graph.builder, plan::Phase::recompute, module.id,
                                             graph.builder.unit());
        module.forward(again, from);
    }
    graph.builder.mute(false);
    return rehearsal;
}

// A forward that is run again: it lives as long as its backward.
struct Recomputation {
    Recomputation(const Graph& first, const Kept& kept)
        : tape(first.builder, true), graph(for_recomputation(first, tape, kept)) {}
    plan::Tape tape;
    Graph graph;
};

// The backward of a checkpointed module: recomputes its forward on a tape of its own, then runs that tape's
// backward; of a split backward, the gradients of weights later. Returns the input's gradient if one is
// wanted.
plan::Tensor recompute(Graph& graph, Module& module, const plan::Tensor& input, const Kept& kept,
                       plan::Tensor output_gradient) {
    const plan::Tape::Rehearsal rehearsal = rehearse(graph, module, input, kept);
    for (auto hook = rehearsal.hooks.rbegin(); hook != rehearsal.hooks.rend(); ++hook) (*hook)();
    const auto again = std::make_shared<Recomputation>(graph, kept);
    plan::Tape& tape = again->tape;
    tape.stop_after(rehearsal.saves);
    plan::Tensor from = input, input_gradient;
    if (input.value >= 0) {
        from.value = tape.new_value();
        tape.node("", [&tape, &input_gradient, value = from.value] {  // recorded first, so it runs last
            input_gradient = tape.take_gradient(value);
        });
    }
    {
        const plan::PlanBuilder::Scope scope(graph.builder, plan::Phase::recompute, module.id,
                                             graph.builder.unit());
        const plan::PlanBuilder::Range range(graph.builder, "recompute");
        const plan::Tensor output = module.forward(again->graph, from);
        graph.builder.mute(false);
        tape.accumulate(output.value, std::move(output_gradient));
    }
    from = {};
    if (graph.tape.defers_weights()) {
        tape.backward_input();
        graph.tape.weight_work([again] { again->tape.weights(); });
    } else {
        tape.backward();
    }
    return input_gradient;
}

// torch.utils.checkpoint (Chen et al.: arXiv 1604.06174).
plan::Tensor call_checkpointed(Graph& graph, Module& module, const plan::Tensor& input) {
    plan::Tensor output;
    {
        const Paused paused(graph.tape);
        output = module.forward(graph, input);
    }
    output.value = graph.tape.new_value();
    graph.tape.node("CheckpointFunctionBackward",
                    [&graph, &module, input, kept = Kept{graph.shared, graph.routed}, value = output.value] {
                        graph.tape.accumulate(input.value, recompute(graph, module, input, kept,
                                                                     graph.tape.take_gradient(value)));
                    });
    return output;
}

}  // namespace

bool trains(const Module& module) {
    const auto trained = [](const Parameter* parameter) { return parameter->trained; };
    const std::vector<const Parameter*> shared = module.shared_parameters();
    return std::any_of(shared.begin(), shared.end(), trained) ||
           std::any_of(module.parameters().begin(), module.parameters().end(),
                       [](const Parameter& parameter) { return parameter.trained; }) ||
           std::any_of(module.children().begin(), module.children().end(),
                       [](const auto& child) { return trains(*child); });
}

const Module& unwrapped(const Module& module) {
    return module.is_wrapper() ? unwrapped(*module.children().front()) : module;
}

plan::Tensor call(Graph& graph, Module& module, const plan::Tensor& input) {
    const plan::PlanBuilder::Scope scope(graph.builder, graph.builder.phase(), module.id,
                                         graph.builder.unit());
    const plan::PlanBuilder::Range range(graph.builder, "nn.Module: " + module.name, module.id);
    if (module.checkpointed && graph.tape.recording() && (input.value >= 0 || trains(module)))
        return call_checkpointed(graph, module, input);
    return module.forward(graph, input);
}

namespace {

std::string join(const std::string& path, const std::string& attribute) {
    if (path.empty() || attribute.empty()) return path + attribute;
    return path + "." + attribute;
}

// `path` is the prefix of the parent's children; a wrapper passes on the prefix that it received.
void number(Module& module, int parent, const std::string& path, std::map<std::string, int>& counts,
            ModuleTree& tree) {
    module.id = static_cast<int>(tree.modules.size());
    module.name = module.class_name() + "_" + std::to_string(counts[module.class_name()]++);
    module.path = join(path, module.attribute());
    tree.modules.push_back(&module);
    tree.parents.push_back(parent);
    for (Parameter& parameter : module.parameters()) {
        parameter.id = static_cast<int>(tree.parameters.size());
        parameter.path = join(module.path, parameter.name);
        tree.parameters.push_back(&parameter);
        tree.owners.push_back(module.id);
    }
    for (ModuleBuffer& buffer : module.buffers()) {
        buffer.id = static_cast<int>(tree.buffers.size());
        buffer.module = module.id;
        buffer.path = join(module.path, buffer.name);
        tree.buffers.push_back(&buffer);
    }
    const std::string& inner = module.is_wrapper() ? path : module.path;
    for (const auto& child : module.children()) number(*child, module.id, inner, counts, tree);
}

}  // namespace

ModuleTree number_modules(std::unique_ptr<Module> root) {
    ModuleTree tree;
    std::map<std::string, int> counts;
    number(*root, -1, "", counts, tree);
    for (const int owner : tree.owners) tree.users.push_back({owner});
    for (const Module* module : tree.modules) {
        for (const Parameter* parameter : module->shared_parameters())
            tree.users[static_cast<std::size_t>(parameter->id)].push_back(module->id);
    }
    for (Parameter* parameter : tree.parameters)
        parameter->users = static_cast<int>(tree.users[static_cast<std::size_t>(parameter->id)].size());
    tree.held.assign(tree.parameters.begin(), tree.parameters.end());
    tree.root = std::move(root);
    return tree;
}

}  // namespace shardscope::trainer::model
