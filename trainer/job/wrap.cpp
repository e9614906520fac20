// Selections of modules, the wrap policy and the rules of single units, as text and back.
#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/schema/text.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::job {

namespace {

constexpr std::string_view kModule = "module:", kPath = "path:", kEvery = "every:", kSize = "size:";
constexpr std::string_view kSelections = "module:NAME[,NAME], path:PATTERN[,PATTERN] or every:K,NAME[,NAME]";

// Why a text is refused, or nothing.
using Problem = std::string;

bool is_class_name(std::string_view name) {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return false;
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

bool is_pattern(std::string_view pattern) {
    if (pattern.empty() || pattern.front() == '.' || pattern.back() == '.' ||
        pattern.find("..") != std::string_view::npos) {
        return false;
    }
    return std::all_of(pattern.begin(), pattern.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '*' ||
               c == '?';
    });
}

std::vector<std::string> split(std::string_view list, char separator) {
    std::vector<std::string> pieces;
    for (;;) {
        const auto end = list.find(separator);
        std::string_view piece = list.substr(0, end);
        while (piece.starts_with(' ')) piece.remove_prefix(1);
        while (piece.ends_with(' ')) piece.remove_suffix(1);
        pieces.emplace_back(piece);
        if (end == std::string_view::npos) return pieces;
        list.remove_prefix(end + 1);
    }
}

// Reads a selection that is not "none".
Problem read_selection(std::string_view text, ModuleSelection& into) {
    using Kind = ModuleSelection::Kind;
    const auto kind = text.starts_with(kModule) ? std::pair(Kind::module, kModule)
                      : text.starts_with(kPath) ? std::pair(Kind::path, kPath)
                                                : std::pair(Kind::every, kEvery);
    if (!text.starts_with(kind.second)) return " ";
    into.kind = kind.first;
    into.names = split(text.substr(kind.second.size()), ',');
    if (into.kind == Kind::every) {
        const auto every = traces::schema::number_of<int>(into.names.front());
        if (!every || *every < 1) return fmt::format(": \"{}\" is not a positive number", into.names.front());
        into.every = *every;
        into.names.erase(into.names.begin());
        if (into.names.empty()) return ": no class follows the number";
    }
    const bool paths = into.kind == Kind::path;
    for (const std::string& name : into.names) {
        if (paths ? is_pattern(name) : is_class_name(name)) continue;
        return fmt::format(": \"{}\" is not a {}", name, paths ? "pattern of a path" : "class name");
    }
    return {};
}

[[noreturn]] void refuse(const std::string& text, std::string_view what, std::string_view problem,
                         std::string_view use) {
    throw JobError(fmt::format("\"{}\" is not {}{}; use {}", text, what, problem == " " ? "" : problem, use));
}

}  // namespace

ModuleSelection parse_modules(const std::string& text) {
    ModuleSelection modules;
    if (text == "none") return modules;
    const Problem problem = read_selection(text, modules);
    if (!problem.empty())
        refuse(text, "a selection of modules", problem, fmt::format("none, {}", kSelections));
    return modules;
}

std::string to_text(const ModuleSelection& modules) {
    if (modules.names.empty()) return "none";
    const std::string names = traces::schema::joined(modules.names, ",");
    switch (modules.kind) {
        case ModuleSelection::Kind::path:
            return fmt::format("{}{}", kPath, names);
        case ModuleSelection::Kind::every:
            return fmt::format("{}{},{}", kEvery, modules.every, names);
        case ModuleSelection::Kind::module:
            break;
    }
    return fmt::format("{}{}", kModule, names);
}

Wrap parse_wrap(const std::string& text) {
    const auto refused = [&](std::string_view problem) {
        refuse(text, "a wrap policy", problem, fmt::format("root, size:N, {}", kSelections));
    };
    const std::string_view view = text;
    Wrap wrap;
    if (view == "root") return wrap;
    if (view.starts_with(kSize)) {
        const std::string_view digits = view.substr(kSize.size());
        wrap.kind = Wrap::Kind::size;
        wrap.threshold = traces::schema::number_of<std::int64_t>(digits).value_or(0);
        if (wrap.threshold < 1)
            refused(fmt::format(": \"{}\" is not a positive number of parameters", digits));
        return wrap;
    }
    wrap.kind = Wrap::Kind::modules;
    if (const Problem problem = read_selection(view, wrap.modules); !problem.empty()) refused(problem);
    return wrap;
}

std::string to_text(const Wrap& wrap) {
    switch (wrap.kind) {
        case Wrap::Kind::modules:
            return to_text(wrap.modules);
        case Wrap::Kind::size:
            return fmt::format("{}{}", kSize, wrap.threshold);
        case Wrap::Kind::root:
            break;
    }
    return "root";
}

UnitRules parse_unit_rules(const std::string& text) {
    UnitRules rules;
    if (text == "none") return rules;
    for (const std::string& piece : split(text, ' ')) {
        if (piece.empty()) continue;
        const auto equals = piece.rfind('=');
        const std::string value = equals == std::string::npos ? "" : piece.substr(equals + 1);
        UnitRule rule{{}, value == "true"};
        Problem problem = value == "true" || value == "false"
                              ? read_selection(std::string_view(piece).substr(0, equals), rule.units)
                              : fmt::format(": \"{}\" ends neither in =true nor in =false", piece);
        if (!problem.empty()) {
            refuse(text, "a list of units", problem,
                   fmt::format("none, or {}, followed by =true (freed after the forward) or =false (kept "
                               "until the backward)",
                               kSelections));
        }
        rules.push_back(std::move(rule));
    }
    return rules;
}

std::string to_text(const UnitRules& rules) {
    if (rules.empty()) return "none";
    std::string text;
    for (const UnitRule& rule : rules) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", to_text(rule.units),
                            rule.reshard_after_forward ? "true" : "false");
    }
    return text;
}

}  // namespace shardscope::trainer::job
