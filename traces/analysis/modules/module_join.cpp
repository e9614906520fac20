// See module_join.h.
#include "traces/analysis/modules/module_join.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace shardscope::traces::analysis {
namespace {

struct Wrapper {
    std::string_view prefix;  // of the row's name
    std::string_view label;   // of the wrapper's own work
};
constexpr std::array kWrappers = {
    Wrapper{"FullyShardedDataParallel_", " [FSDP]"},
    Wrapper{"DistributedDataParallel_", " [DDP]"},
    Wrapper{"CheckpointWrapper_", " [checkpoint]"},
};

const Wrapper* wrapper_of(const ModuleNode& node) {
    if (node.children.empty()) return nullptr;
    const auto at = std::find_if(kWrappers.begin(), kWrappers.end(),
                                 [&](const Wrapper& w) { return node.name.starts_with(w.prefix); });
    return at != kWrappers.end() ? &*at : nullptr;
}

// "FSDPBlock_3" -> "Block" and "_3"; fully_shard prefixes the class's name with its own.
struct ModuleName {
    std::string_view class_name, number;
    bool renamed = false;
};

ModuleName parsed_name(std::string_view name) {
    constexpr std::string_view kRenamed = "FSDP";
    ModuleName result{.class_name = name, .number = {}};
    if (const auto mark = name.rfind('_'); mark != name.npos && mark + 1 < name.size() &&
                                           name.find_first_not_of("0123456789", mark + 1) == name.npos) {
        result.class_name = name.substr(0, mark);
        result.number = name.substr(mark);
    }
    if (result.class_name.starts_with(kRenamed) && result.class_name.size() > kRenamed.size() &&
        std::isupper(static_cast<unsigned char>(result.class_name[kRenamed.size()])) != 0) {
        result.class_name.remove_prefix(kRenamed.size());
        result.renamed = true;
    }
    return result;
}

// The names of a rank's modules in the model without FSDP2. Modules of a class are numbered in the order of
// their first call; if only some were renamed, each kind has its own numbers, and all are renumbered.
class OwnNames {
  public:
    explicit OwnNames(const RankModules& rank) {
        collect(rank.modules);
        std::unordered_map<std::string_view, int> next;
        for (const std::string_view name : order_) {
            const ModuleName own = parsed_name(name);
            const Uses& uses = classes_.at(own.class_name);
            if (uses.renamed && uses.plain && !own.number.empty()) {
                names_[name] = fmt::format("{}_{}", own.class_name, next[own.class_name]++);
            } else {
                names_[name] = fmt::format("{}{}", own.class_name, own.number);
            }
        }
    }

    const std::string& of(const ModuleNode& node) const { return names_.at(node.name); }

  private:
    struct Uses {
        bool plain = false, renamed = false;
    };

    void collect(const std::vector<ModuleNode>& nodes) {
        for (const ModuleNode& node : nodes) {
            if (wrapper_of(node) == nullptr && names_.try_emplace(node.name).second) {
                order_.push_back(node.name);
                const ModuleName own = parsed_name(node.name);
                Uses& uses = classes_[own.class_name];
                (own.renamed ? uses.renamed : uses.plain) = true;
            }
            collect(node.children);
        }
    }

    std::vector<std::string_view> order_;
    std::unordered_map<std::string_view, Uses> classes_;
    std::unordered_map<std::string_view, std::string> names_;
};

void join_rows(const std::vector<ModuleNode>& nodes, const OwnNames& names, const std::string& path,
               const std::string& joined, JoinedPaths& result) {
    for (const ModuleNode& node : nodes) {
        const std::string own = path.empty() ? node.name : path + "/" + node.name;
        const ModuleNode* wrapped = &node;
        while (wrapper_of(*wrapped) != nullptr) wrapped = &wrapped->children.front();
        const std::string& name = names.of(*wrapped);
        const std::string shown = joined.empty() ? name : joined + "/" + name;
        const Wrapper* wrapper = wrapper_of(node);
        result[own] = wrapper != nullptr ? shown + std::string(wrapper->label) : shown;
        join_rows(node.children, names, own, wrapper != nullptr ? joined : shown, result);
    }
}

}  // namespace

JoinedPaths joined_paths(const RankModules& rank) {
    JoinedPaths result;
    join_rows(rank.modules, OwnNames(rank), "", "", result);
    return result;
}

}  // namespace shardscope::traces::analysis
