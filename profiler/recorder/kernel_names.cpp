// Demangles by the C++ runtime; finds the base name by walking back over balanced brackets.
#include "profiler/recorder/kernel_names.h"

#include <cstddef>
#include <cstdlib>
#include <memory>

#include <cxxabi.h>

namespace shardscope::profiler {
namespace {

constexpr auto kNone = std::string_view::npos;

// Where the bracket opens that closes at `at`, with brackets of all kinds between; kNone if nowhere.
std::size_t opening(std::string_view text, std::size_t at) {
    int depth = 0;
    for (std::size_t i = at + 1; i-- > 0;) {
        const char c = text[i];
        // "->" and the names operator>, operator<< and the like are not brackets.
        if (c == '>' && i > 0 && text[i - 1] == '-') continue;
        if (c == ')' || c == '>' || c == '}' || c == ']') ++depth;
        if (c == '(' || c == '<' || c == '{' || c == '[') --depth;
        if (depth == 0) return i;
    }
    return kNone;
}

void drop_end(std::string_view& text, std::string_view end) {
    if (text.ends_with(end)) text.remove_suffix(end.size());
}

// Where the last part of a qualified name begins: after "::" or the blank after a return type.
std::size_t last_part(std::string_view text) {
    if (const std::size_t found = text.rfind("operator"); found != kNone) {
        const bool starts = found == 0 || text[found - 1] == ':' || text[found - 1] == ' ';
        const std::size_t after = found + std::string_view("operator").size();
        const bool ends = after == text.size() ||
                          (std::isalnum(static_cast<unsigned char>(text[after])) == 0 && text[after] != '_');
        if (starts && ends && text.find("::", after) == kNone) return found;
    }
    for (std::size_t i = text.size(); i-- > 0;) {
        const char c = text[i];
        if (c == ':' || c == ' ') return i + 1;
        if (c == ')' || c == '>' || c == '}' || c == ']') {
            const std::size_t begin = opening(text, i);
            if (begin == kNone) return 0;
            i = begin;
        }
    }
    return 0;
}

}  // namespace

std::string demangle(const std::string& symbol) {
    if (symbol.rfind("_Z", 0) != 0) return symbol;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

std::string_view base_name(std::string_view demangled) {
    std::string_view name = demangled;
    while (name.ends_with("]")) {  // " [clone .constprop.0]"
        const std::size_t begin = name.rfind(" [");
        if (begin == kNone) break;
        name = name.substr(0, begin);
    }
    for (const std::string_view qualifier : {" const", " volatile", " &", " &&"}) drop_end(name, qualifier);
    if (name.ends_with(")")) {
        const std::size_t begin = opening(name, name.size() - 1);
        if (begin == kNone) return demangled;
        // "operator()" alone is a name, not a signature; so is "(anonymous namespace)".
        if (begin != 0 && !(name.substr(0, begin).ends_with("operator") && begin + 2 == name.size())) {
            name = name.substr(0, begin);
        }
    }
    if (name.ends_with(">") && !name.ends_with("operator>") && !name.ends_with("operator>>") &&
        !name.ends_with("operator->")) {
        const std::size_t begin = opening(name, name.size() - 1);
        if (begin != kNone && begin != 0) name = name.substr(0, begin);
    }
    const std::string_view base = name.substr(last_part(name));
    return base.empty() ? demangled : base;
}

}  // namespace shardscope::profiler
