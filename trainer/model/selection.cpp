#include "trainer/model/selection.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/joined.h"

namespace shardscope::trainer {

namespace {

void for_each(Module& module, const std::function<void(Module&)>& visit) {
    visit(module);
    for (const auto& child : module.children()) for_each(*child, visit);
}

// Checks that all classes exist, then calls `visit` for each module of them.
void for_each_of(Module& root, const ModuleClasses& classes, const std::string& where, std::string_view key,
                 const std::function<void(Module&)>& visit) {
    std::set<std::string> present;
    for_each(root, [&](Module& module) {
        if (!module.is_wrapper()) present.insert(module.class_name());
    });
    for (const std::string& name : classes.names) {
        if (present.contains(name)) continue;
        throw JobError(fmt::format("{}{}: the model has no module of class {}; its classes are {}", where,
                                   key, name, traces::joined(present, ", ")));
    }
    const auto chosen = [&](const Module& module) {
        return std::find(classes.names.begin(), classes.names.end(), module.class_name()) !=
               classes.names.end();
    };
    for_each(root, [&](Module& module) {
        if (chosen(module)) visit(module);
    });
}

}  // namespace

void freeze(Module& root, const ModuleClasses& classes, const std::string& where) {
    std::set<const Parameter*> frozen;
    std::set<std::string> without(classes.names.begin(), classes.names.end());
    for_each_of(root, classes, where, "train.freeze", [&](Module& chosen) {
        for_each(chosen, [&](Module& module) {
            for (const Parameter& parameter : module.parameters()) frozen.insert(&parameter);
            for (const Parameter* parameter : module.shared_parameters()) frozen.insert(parameter);
            if (!module.parameters().empty() || !module.shared_parameters().empty())
                without.erase(chosen.class_name());
        });
    });
    if (!without.empty()) {
        throw JobError(fmt::format("{}train.freeze: modules of class {} have no parameters; omit it", where,
                                   *without.begin()));
    }
    for_each(root, [&](Module& module) {
        for (Parameter& parameter : module.parameters()) {
            if (frozen.contains(&parameter)) parameter.trained = false;
        }
    });
    if (!trains(root)) {
        throw JobError(fmt::format("{}train.freeze: {} leaves no parameter to train; name fewer classes",
                                   where, to_text(classes)));
    }
}

void checkpoint_modules(Module& root, const ModuleClasses& classes, const std::string& where) {
    for_each_of(root, classes, where, "memory.activation_checkpointing",
                [](Module& module) { module.checkpointed = true; });
}

}  // namespace shardscope::trainer
