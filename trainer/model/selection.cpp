#include "trainer/model/selection.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "traces/schema/joined.h"

namespace shardscope::trainer::model {

namespace {

constexpr std::size_t kShownPaths = 8;

// Whether the path matches: * and ? stand for characters of one part, ** for any characters.
bool matches(std::string_view path, std::string_view pattern) {
    std::vector<bool> reached(path.size() + 1,
                              false);  // whether the pattern so far matches this many characters
    reached[0] = true;
    while (!pattern.empty()) {
        const bool star = pattern.front() == '*', any = pattern.starts_with("**");
        if (star) {
            for (std::size_t i = 0; i < path.size(); ++i)
                if (reached[i] && (any || path[i] != '.')) reached[i + 1] = true;
        } else {
            const auto fits = [&](char c) {
                return pattern.front() == '?' ? c != '.' : c == pattern.front();
            };
            for (std::size_t i = path.size(); i > 0; --i) reached[i] = reached[i - 1] && fits(path[i - 1]);
            reached[0] = false;
        }
        pattern.remove_prefix(any ? 2 : 1);
    }
    return reached.back();
}

// Calls visit(module, path, number among those of its class) for each module that is not a wrapper.
class Walk {
  public:
    using Visit = std::function<void(const Module&, const std::string&, int)>;
    explicit Walk(Visit visit) : visit_(std::move(visit)) {}

    void operator()(const Module& module, const std::string& prefix = {}) {
        std::string path = prefix;
        if (!module.is_wrapper()) {
            const std::string& own = module.attribute();
            path += (path.empty() || own.empty() ? "" : ".") + own;
            visit_(module, path, counts_[module.class_name()]++);
        }
        for (const auto& child : module.children()) (*this)(*child, path);
    }

  private:
    Visit visit_;
    std::map<std::string, int> counts_;
};

[[noreturn]] void refuse_name(const Module& root, const job::ModuleSelection& modules,
                              const std::string& name, const std::string& where, std::string_view key) {
    const bool by_path = modules.kind == job::ModuleSelection::Kind::path;
    std::set<std::string> classes;
    std::vector<std::string> paths;
    std::size_t more = 0;
    Walk walk([&](const Module& module, const std::string& path, int) {
        classes.insert(module.class_name());
        if (path.empty()) return;
        if (paths.size() < kShownPaths)
            paths.push_back(path);
        else
            ++more;
    });
    walk(root);
    throw job::JobError(by_path ? fmt::format("{}{}: no module has a path like {}; paths are {}{}", where,
                                              key, name, traces::schema::joined(paths, ", "),
                                              more > 0 ? fmt::format(" and {} more", more) : "")
                                : fmt::format("{}{}: the model has no module of class {}; its classes are {}",
                                              where, key, name, traces::schema::joined(classes, ", ")));
}

void for_each(Module& module, const std::function<void(Module&)>& visit) {
    visit(module);
    for (const auto& child : module.children()) for_each(*child, visit);
}

}  // namespace

std::set<const Module*> selected(const Module& root, const job::ModuleSelection& modules,
                                 const std::string& where, std::string_view key) {
    std::set<const Module*> chosen;
    std::vector<bool> found(modules.names.size(), false);
    Walk walk([&](const Module& module, const std::string& path, int number) {
        for (std::size_t i = 0; i < modules.names.size(); ++i) {
            const bool named = modules.kind == job::ModuleSelection::Kind::path
                                   ? matches(path, modules.names[i])
                                   : module.class_name() == modules.names[i];
            if (!named) continue;
            found[i] = true;
            if (number % modules.every == 0) chosen.insert(&module);
        }
    });
    walk(root);
    for (std::size_t i = 0; i < found.size(); ++i)
        if (!found[i]) refuse_name(root, modules, modules.names[i], where, key);
    return chosen;
}

void freeze(Module& root, const job::ModuleSelection& modules, const std::string& where) {
    std::set<const Parameter*> frozen;
    for (const std::string& name : modules.names) {  // one by one: they may overlap
        job::ModuleSelection single = modules;
        single.names = {name};
        const auto chosen = selected(root, single, where, "train.freeze");
        bool has_parameters = false;
        for_each(root, [&](Module& outer) {
            if (!chosen.contains(&outer)) return;
            for_each(outer, [&](Module& module) {
                for (const Parameter& parameter : module.parameters()) frozen.insert(&parameter);
                for (const Parameter* parameter : module.shared_parameters()) frozen.insert(parameter);
                has_parameters =
                    has_parameters || !module.parameters().empty() || !module.shared_parameters().empty();
            });
        });
        if (has_parameters) continue;
        throw job::JobError(fmt::format("{}train.freeze: modules of {} {} have no parameters; omit it", where,
                                        modules.kind == job::ModuleSelection::Kind::path ? "path" : "class",
                                        name));
    }
    for_each(root, [&](Module& module) {
        for (Parameter& parameter : module.parameters()) {
            if (frozen.contains(&parameter)) parameter.trained = false;
        }
    });
    if (!trains(root)) {
        throw job::JobError(fmt::format("{}train.freeze: {} leaves no parameter to train; name fewer modules",
                                        where, to_text(modules)));
    }
}

void checkpoint_modules(Module& root, const job::ModuleSelection& modules, const std::string& where) {
    const auto chosen = selected(root, modules, where, "memory.activation_checkpointing");
    for_each(root, [&](Module& module) {
        if (chosen.contains(&module)) module.checkpointed = true;
    });
}

}  // namespace shardscope::trainer::model
