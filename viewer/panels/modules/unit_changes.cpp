// See unit_changes.h.
#include "viewer/panels/modules/unit_changes.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "viewer/model/trials.h"

namespace shardscope::viewer::panels {
namespace {

using traces::schema::ModuleRow;
using traces::store::Trace;

const ModuleRow* module_of(const Trace& trace, int id) {
    const auto found = std::find_if(trace.modules.begin(), trace.modules.end(),
                                    [id](const ModuleRow& m) { return m.id == id; });
    return found == trace.modules.end() ? nullptr : &*found;
}

constexpr std::string_view kWrapper = "FullyShardedDataParallel";

// Whether it or a module inside it has parameters.
bool has_parameters(const Trace& trace, const ModuleRow& module) {
    if (module.parameters > 0) return true;
    return std::any_of(trace.modules.begin(), trace.modules.end(), [&](const ModuleRow& other) {
        return other.parent == module.id && has_parameters(trace, other);
    });
}

// The modules that are units, by path; without the root, which is one in any case.
std::set<std::string> unit_paths(const Trace& trace) {
    std::set<std::string> paths;
    for (const traces::schema::UnitRow& unit : trace.units) {
        const ModuleRow* module = module_of(trace, unit.module);
        if (module != nullptr && !module->path.empty()) paths.insert(module->path);
    }
    return paths;
}

std::string wrap_of(const std::set<std::string>& paths) {
    if (paths.empty()) return "fsdp.wrap = root";
    std::string wrap;
    for (const std::string& path : paths) wrap += (wrap.empty() ? "path:" : ",") + path;
    // Other keys that choose units would change the list.
    return model::changes_text({{"fsdp.wrap", wrap}, {"fsdp.exclude", "none"}});
}

}  // namespace

std::vector<UnitChange> unit_changes(const Trace& trace, int id, std::string_view name, std::string& why) {
    const std::string_view mode = trace.config_value("parallel.mode");
    if (!mode.empty() && mode != "fsdp") {
        why = "The run is not sharded by FSDP: it has no units.";
        return {};
    }
    const ModuleRow* module = module_of(trace, id);
    // PyTorch's profiler names modules by class and number only.
    const bool paths = std::any_of(trace.modules.begin(), trace.modules.end(),
                                   [](const ModuleRow& other) { return !other.path.empty(); });
    if (module == nullptr || !paths) {
        const auto class_name = std::string(name.substr(0, name.rfind('_')));
        if (class_name.empty() || class_name == kWrapper) {
            why = "The trace does not say where this module is, so no other unit can be tried.";
            return {};
        }
        return {{"class_unit", fmt::format("What if the units were every {}", class_name),
                 fmt::format("fsdp.wrap = module:{}", class_name)}};
    }
    if (module->path.empty()) {
        why = "This is the root, or contains all units, so it is a unit in any case.";
        return {};
    }
    if (!has_parameters(trace, *module)) {
        why = fmt::format("{} has no parameters to shard.", module->name);
        return {};
    }
    const std::set<std::string> now = unit_paths(trace);
    std::vector<UnitChange> changes;
    std::set<std::string> wanted = now;
    if (now.contains(module->path)) {
        wanted.erase(module->path);
        changes.push_back(
            {"merge", fmt::format("What if {} were merged into its parent", module->path), wrap_of(wanted)});
    } else {
        wanted.insert(module->path);
        changes.push_back({"unit", fmt::format("What if {} were a unit", module->path), wrap_of(wanted)});
    }
    if (module->class_name == kWrapper) return changes;
    std::set<std::string> all = now, none = now;
    int count = 0, units = 0;
    for (const ModuleRow& other : trace.modules) {
        if (other.class_name != module->class_name || other.path.empty()) continue;
        ++count;
        units += now.contains(other.path) ? 1 : 0;
        all.insert(other.path);
        none.erase(other.path);
    }
    if (count > 1 && units < count)
        changes.push_back(
            {"class_unit", fmt::format("What if every {} were a unit", module->class_name), wrap_of(all)});
    if (units > 1)
        changes.push_back(
            {"class_merge", fmt::format("What if no {} were a unit", module->class_name), wrap_of(none)});
    return changes;
}

}  // namespace shardscope::viewer::panels
