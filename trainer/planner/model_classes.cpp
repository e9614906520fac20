#include "trainer/planner/model_classes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "trainer/model/models.h"

namespace shardscope::trainer::planner {

namespace {

std::int64_t count_classes(const model::Module& module, Classes& classes) {
    std::int64_t elements = 0;
    for (const model::Parameter& parameter : module.parameters()) elements += parameter.whole_elements;
    for (const auto& child : module.children()) elements += count_classes(*child, classes);
    classes[module.class_name()].count(elements, !module.children().empty());
    return elements;
}

std::unique_ptr<model::Module> plain_model(const job::Job& job) {
    job::Job plain = job;
    plain.memory.activation_checkpointing.names.clear();
    plain.train.freeze.names.clear();
    return model::make_model(plain);
}

std::int64_t count_classes(const job::Job& job, Classes& classes) {
    return count_classes(*plain_model(job), classes);
}

// The path of the last module of the class; empty if there is none.
std::string last_of(const model::Module& module, const std::string& class_name, const std::string& path) {
    std::string last = module.class_name() == class_name ? path : "";
    for (const auto& child : module.children()) {
        const std::string& own = child->attribute();
        std::string inside =
            last_of(*child, class_name, path + (path.empty() || own.empty() ? "" : ".") + own);
        if (!inside.empty()) last = std::move(inside);
    }
    return last;
}

// Classes that repeat and contain at least half of the model; those with the largest modules first.
std::vector<std::pair<std::string, ClassFacts>> repeated_of(const Classes& classes, std::int64_t total) {
    std::vector<std::pair<std::string, ClassFacts>> repeated;
    for (const auto& entry : classes)
        if (entry.second.modules > 1 && entry.second.all * 2 >= total) repeated.push_back(entry);
    traces::schema::sort_rows(
        repeated, [](const auto& a, const auto& b) { return a.second.largest > b.second.largest; });
    return repeated;
}

}  // namespace

void ClassFacts::count(std::int64_t elements, bool has_children) {
    ++modules;
    largest = std::max(largest, elements);
    all += elements;
    leaf = leaf && !has_children;
}

std::vector<std::string> wraps_for(const job::Job& job) {
    Classes classes;
    const std::int64_t elements = count_classes(job, classes);
    return wraps_of(classes, elements);
}

std::vector<std::string> wraps_of(const Classes& classes, std::int64_t elements) {
    std::vector<std::string> wraps;
    const auto repeated = repeated_of(classes, elements);
    wraps.reserve(repeated.size() + 2);
    for (const auto& [class_name, facts] : repeated) wraps.push_back("module:" + class_name);
    if (!repeated.empty()) wraps.push_back(fmt::format("size:{}", repeated.front().second.largest));
    wraps.emplace_back("root");
    return wraps;
}

std::optional<Loop> loop_for(const job::Job& job) {
    Classes classes;
    const std::unique_ptr<model::Module> model = plain_model(job);
    const std::int64_t elements = count_classes(*model, classes);
    const auto repeated = repeated_of(classes, elements);
    if (repeated.empty()) return std::nullopt;
    const auto& [largest, facts] = repeated.front();
    return Loop{"module:" + largest, facts.modules >= 4 ? "every:2," + largest : "",
                fmt::format("path:{}=false", last_of(*model, largest, ""))};
}

std::vector<std::string> checkpointings_for(const job::Job& job) {
    Classes classes;
    const std::int64_t elements = count_classes(job, classes);
    std::vector<std::string> all = {"none"};
    for (const auto& [class_name, facts] : repeated_of(classes, elements)) {
        if (facts.leaf) continue;
        all.push_back("module:" + class_name);
        break;
    }
    return all;
}

}  // namespace shardscope::trainer::planner
