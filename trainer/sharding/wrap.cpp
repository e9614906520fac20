#include "trainer/sharding/wrap.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "trainer/model/mixture_of_experts.h"
#include "trainer/model/selection.h"

namespace shardscope::trainer::sharding {

namespace {

std::int64_t own_elements(const model::Module& module) {
    std::int64_t total = 0;
    for (const model::Parameter& parameter : module.parameters()) total += parameter.whole_elements;
    return total;
}

std::int64_t all_elements(const model::Module& module) {
    std::int64_t total = own_elements(module);
    for (const auto& child : module.children()) total += all_elements(*child);
    return total;
}

std::int64_t largest_below(const model::Module& root) {
    std::int64_t largest = 0;
    for (const auto& child : root.children()) largest = std::max(largest, all_elements(*child));
    return largest;
}

// Experts that the ranks of an expert group divide are a unit of their own, because it is shared with other
// ranks than the rest of a block.
bool are_divided(const model::Module& module) {
    const auto* experts = dynamic_cast<const model::Experts*>(&module);
    return experts != nullptr && experts->are_divided();
}

void wrap_in_place(std::unique_ptr<model::Module>& slot) {
    slot = std::make_unique<FullyShardedDataParallel>(std::move(slot));
}

class Wrapping {
  public:
    Wrapping(const model::Module& root, const job::Job& job) : wrap_(job.fsdp.wrap) {
        if (wrap_.kind == job::Wrap::Kind::modules)
            chosen_ = selected(root, wrap_.modules, where(job, "fsdp.wrap"), "fsdp.wrap");
        divides_experts_ = job.parallel.expert > 1;
        excluded_ = selected(root, job.fsdp.exclude, where(job, "fsdp.exclude"), "fsdp.exclude");
        if (std::any_of(excluded_.begin(), excluded_.end(),
                        [](const auto* own) { return are_divided(*own); })) {
            throw job::JobError(where(job, "fsdp.exclude") +
                                "fsdp.exclude: experts that an expert group divides are a unit of their own, "
                                "because other ranks hold them; exclude other modules, or set "
                                "parallel.expert to 1");
        }
    }

    // Wraps below `slot` (and, unless it is the root, also at `slot`); returns the number of elements that
    // units took.
    std::int64_t below(std::unique_ptr<model::Module>& slot, bool is_root) const {
        const bool by_size = wrap_.kind == job::Wrap::Kind::size;
        const std::int64_t all = all_elements(*slot);
        if (by_size && all < wrap_.threshold && !divides_experts_) return 0;
        std::int64_t taken = 0;
        for (auto& child : slot->children()) taken += below(child, false);
        if (are_divided(*slot)) {
            if (taken < all) wrap_in_place(slot);
            return all;
        }
        if (is_root || excluded_.contains(slot.get())) return taken;
        if (by_size ? all - taken < wrap_.threshold : !chosen_.contains(slot.get())) return taken;
        wrap_in_place(slot);
        return all;
    }

  private:
    const job::Wrap& wrap_;
    std::set<const model::Module*> chosen_, excluded_;
    bool divides_experts_ = false;
};

}  // namespace

std::unique_ptr<model::Module> apply_wrap(std::unique_ptr<model::Module> root, const job::Job& job) {
    const job::Wrap& wrap = job.fsdp.wrap;
    const Wrapping wrapping(*root, job);
    const std::int64_t wrapped =
        wrap.kind == job::Wrap::Kind::root && job.parallel.expert == 1 ? 0 : wrapping.below(root, true);
    if (wrap.kind == job::Wrap::Kind::size && wrapped == 0) {
        throw job::JobError(
            fmt::format("{}fsdp.wrap: no module inside the model has {} parameters of its own or its "
                        "children's, so nothing "
                        "would be wrapped; the largest has {}; use a smaller size, or root for one unit",
                        where(job, "fsdp.wrap"), wrap.threshold, largest_below(*root)));
    }
    wrap_in_place(root);
    return root;
}

namespace {

// The wrappers around a module, outermost first.
std::vector<int> wrappers_around(const model::ModuleTree& tree, int module) {
    std::vector<int> path;
    for (int id = module; id >= 0; id = tree.parents[static_cast<std::size_t>(id)]) {
        if (tree.modules[static_cast<std::size_t>(id)]->is_wrapper()) path.push_back(id);
    }
    std::reverse(path.begin(), path.end());
    return path;
}

int nearest_common_wrapper(const model::ModuleTree& tree, const std::vector<int>& users) {
    std::vector<int> common = wrappers_around(tree, users.front());
    for (const int user : users) {
        const std::vector<int> path = wrappers_around(tree, user);
        const auto end = std::mismatch(common.begin(), common.end(), path.begin(), path.end()).first;
        common.erase(end, common.end());
    }
    return common.back();  // the root surrounds all
}

}  // namespace

std::vector<WrappedModule> parameters_by_wrapper(const model::ModuleTree& tree) {
    using Group = std::pair<int, bool>;  // the stage, and whether another stage reads it, too
    std::map<int, std::map<Group, std::vector<const model::Parameter*>>> by_module;
    for (const model::Parameter* parameter : tree.held) {
        const std::vector<int>& users = tree.users[static_cast<std::size_t>(parameter->id)];
        const Group group = tree.stages.empty() ? Group{0, false}
                                                : Group{tree.stages[static_cast<std::size_t>(parameter->id)],
                                                        users.size() > 1};
        by_module[nearest_common_wrapper(tree, users)][group].push_back(parameter);
    }
    std::vector<WrappedModule> wrapped;
    for (model::Module* module : tree.modules) {
        auto* wrapper = dynamic_cast<FullyShardedDataParallel*>(module);
        if (wrapper == nullptr) continue;
        const std::string name = wrapper->path.empty() ? "root" : wrapper->path;
        const auto& groups = by_module[module->id];
        if (groups.empty()) wrapped.push_back({wrapper, {}, name});
        for (const auto& [group, parameters] : groups) {
            const auto& [stage, is_shared] = group;
            wrapped.push_back({wrapper, parameters,
                               is_shared           ? parameters.front()->path
                               : groups.size() > 1 ? fmt::format("{} of stage {}", name, stage)
                                                   : name});
        }
    }
    return wrapped;
}

int last_to_end(const model::Module& root) {
    int last = -1;
    const auto visit = [&](const auto& self, const model::Module& module) -> void {
        for (const auto& child : module.children()) self(self, *child);
        const auto* wrapper = dynamic_cast<const FullyShardedDataParallel*>(&module);
        if (wrapper != nullptr && !wrapper->units.empty() && !wrapper->is_root) last = wrapper->units.back();
    };
    visit(visit, root);
    return last;
}

}  // namespace shardscope::trainer::sharding
