#include "trainer/model/module.h"

#include <map>
#include <utility>

namespace shardscope::trainer {

Tensor call(Graph& graph, Module& module, const Tensor& input) {
    const PlanBuilder::Scope scope(graph.builder, graph.builder.phase(), module.id, graph.builder.unit());
    const PlanBuilder::Range range(graph.builder, "nn.Module: " + module.name, module.id);
    return module.forward(graph, input);
}

namespace {

std::string join(const std::string& path, const std::string& attribute) {
    if (path.empty() || attribute.empty()) return path + attribute;
    return path + "." + attribute;
}

// `path` is the path of the parent's contents: a wrapper passes on its own.
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
    const std::string& inner = module.is_wrapper() ? path : module.path;
    for (const auto& child : module.children()) number(*child, module.id, inner, counts, tree);
}

}  // namespace

ModuleTree number_modules(std::unique_ptr<Module> root) {
    ModuleTree tree;
    std::map<std::string, int> counts;
    number(*root, -1, "", counts, tree);
    tree.root = std::move(root);
    return tree;
}

}  // namespace shardscope::trainer
