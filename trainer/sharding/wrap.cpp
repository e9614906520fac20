#include "trainer/sharding/wrap.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardscope::trainer {

namespace {

std::int64_t own_elements(const Module& module) {
    std::int64_t total = 0;
    for (const Parameter& parameter : module.parameters()) total += parameter.elements;
    return total;
}

std::int64_t all_elements(const Module& module) {
    std::int64_t total = own_elements(module);
    for (const auto& child : module.children()) total += all_elements(*child);
    return total;
}

void collect_classes(const Module& module, std::set<std::string>& classes) {
    classes.insert(module.class_name());
    for (const auto& child : module.children()) collect_classes(*child, classes);
}

void wrap_in_place(std::unique_ptr<Module>& slot) {
    slot = std::make_unique<FullyShardedDataParallel>(std::move(slot));
}

// Wraps below (and, unless it is the root, at) `slot`; returns the elements that units took.
std::int64_t wrap_below(std::unique_ptr<Module>& slot, const Wrap& wrap, bool is_root) {
    const std::int64_t all = all_elements(*slot);
    if (wrap.kind == Wrap::Kind::size && all < wrap.threshold) return 0;
    std::int64_t taken = 0;
    for (auto& child : slot->children()) taken += wrap_below(child, wrap, false);
    if (is_root) return taken;
    const bool chosen = wrap.kind == Wrap::Kind::size ? all - taken >= wrap.threshold
                                                      : std::find(wrap.names.begin(), wrap.names.end(),
                                                                  slot->class_name()) != wrap.names.end();
    if (!chosen) return taken;
    wrap_in_place(slot);
    return all;
}

}  // namespace

std::unique_ptr<Module> apply_wrap(std::unique_ptr<Module> root, const Job& job) {
    const Wrap& wrap = job.fsdp.wrap;
    if (wrap.kind == Wrap::Kind::module) {
        std::set<std::string> classes;
        collect_classes(*root, classes);
        for (const std::string& name : wrap.names) {
            if (!classes.contains(name)) {
                throw JobError(
                    fmt::format("{}fsdp.wrap: the model has no module of class {}; its classes are {}",
                                where(job, "fsdp.wrap"), name, fmt::join(classes, ", ")));
            }
        }
    }
    if (wrap.kind != Wrap::Kind::root) wrap_below(root, wrap, true);
    wrap_in_place(root);
    return root;
}

}  // namespace shardscope::trainer
