// The wrap policy, and lists of module classes, as text and back.
#include <cctype>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/schema/text.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

namespace {

constexpr std::string_view kModule = "module:";

[[noreturn]] void refuse(const std::string& text, std::string_view why) {
    throw JobError(
        fmt::format("\"{}\" is not a wrap policy{}; use root, module:NAME[,NAME] or size:N", text, why));
}

[[noreturn]] void refuse_classes(const std::string& text, std::string_view why) {
    throw JobError(
        fmt::format("\"{}\" is not a list of module classes{}; use none or module:NAME[,NAME]", text, why));
}

bool is_class_name(std::string_view name) {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return false;
    for (const char c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
    }
    return true;
}

template <class Refuse>
std::vector<std::string> class_names(const std::string& text, std::string_view list, Refuse refuse) {
    std::vector<std::string> names;
    for (;;) {
        const auto comma = list.find(',');
        std::string_view name = list.substr(0, comma);
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        if (!is_class_name(name)) refuse(text, fmt::format(": \"{}\" is not a class name", name));
        names.emplace_back(name);
        if (comma == std::string_view::npos) return names;
        list.remove_prefix(comma + 1);
    }
}

}  // namespace

ModuleClasses parse_module_classes(const std::string& text) {
    const std::string_view view = text;
    if (view == "none") return {};
    if (!view.starts_with(kModule)) refuse_classes(text, "");
    return {class_names(text, view.substr(kModule.size()), refuse_classes)};
}

std::string to_text(const ModuleClasses& classes) {
    return classes.names.empty() ? "none" : fmt::format("module:{}", traces::joined(classes.names, ","));
}

Wrap parse_wrap(const std::string& text) {
    constexpr std::string_view kSize = "size:";
    const std::string_view view = text;
    if (view == "root") return {};
    if (view.starts_with(kModule)) {
        return {.kind = Wrap::Kind::module, .names = class_names(text, view.substr(kModule.size()), refuse)};
    }
    if (view.starts_with(kSize)) {
        const std::string_view digits = view.substr(kSize.size());
        Wrap wrap{.kind = Wrap::Kind::size, .threshold = traces::number_of<std::int64_t>(digits).value_or(0)};
        if (wrap.threshold < 1) {
            refuse(text, fmt::format(": \"{}\" is not a positive number of parameters", digits));
        }
        return wrap;
    }
    refuse(text, "");
}

std::string to_text(const Wrap& wrap) {
    switch (wrap.kind) {
        case Wrap::Kind::module:
            return fmt::format("module:{}", traces::joined(wrap.names, ","));
        case Wrap::Kind::size:
            return fmt::format("size:{}", wrap.threshold);
        case Wrap::Kind::root:
            break;
    }
    return "root";
}

}  // namespace shardscope::trainer
