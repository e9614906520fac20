// Keys from the command line.
#include <fmt/core.h>

#include "trainer/job/loading.h"

namespace shardscope::trainer::job {

namespace {

// "--section.key": two words with a dot between, a form that no other option has.
bool looks_like_key(std::string_view argument) {
    if (!argument.starts_with("--")) return false;
    const std::string_view name = argument.substr(2, argument.find('=') - 2);
    const auto dot = name.find('.');
    return dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() &&
           name.find('/') == std::string_view::npos;
}

bool is_switch(std::string_view full_name) {
    const Key* key = find_key(full_name);
    return key != nullptr && key->type == ValueType::boolean;
}

}  // namespace

std::vector<Override> take_overrides(std::vector<std::string>& arguments) {
    std::vector<Override> overrides;
    std::vector<std::string> others;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (argument == "--") {  // options end here
            others.insert(others.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
            break;
        }
        if (!looks_like_key(argument)) {
            others.push_back(argument);
            continue;
        }
        const auto equals = argument.find('=');
        const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
        const bool has_next = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
        if (equals != std::string::npos) {
            overrides.push_back({name, argument.substr(equals + 1)});
        } else if (is_switch(name) && !(has_next && parse_value(ValueType::boolean, arguments[i + 1]))) {
            overrides.push_back({name, "true"});
        } else if (has_next) {
            overrides.push_back({name, arguments[++i]});
        } else {
            throw JobError(fmt::format("command line: --{} has no value; write --{}=VALUE", name, name));
        }
    }
    arguments = std::move(others);
    return overrides;
}

void set_key(Job& job, const Key& key, const Value& value, const std::string& where, Origins& origins) {
    const std::string wrong = problem(key, value);
    if (!wrong.empty()) throw JobError(fmt::format("{}: {}: {}", where, key.full_name(), wrong));
    try {
        key.set(job, value);
    } catch (const JobError& error) {
        throw JobError(fmt::format("{}: {}: {}", where, key.full_name(), error.what()));
    }
    origins[key.full_name()] = where;
}

void apply(Job& job, const Override& override, Origins& origins) {
    const std::string where = kCommandLine;
    const Key* key = find_key(override.key);
    if (key == nullptr)
        throw JobError(fmt::format("{}: --{}: {}", where, override.key, unknown_key(override.key)));
    const auto value = parse_value(key->type, override.value);
    if (!value) {
        throw JobError(fmt::format("{}: {}: \"{}\" is not {}; use {}", where, override.key, override.value,
                                   name(key->type), allowed(*key)));
    }
    set_key(job, *key, *value, where, origins);
}

}  // namespace shardscope::trainer::job
