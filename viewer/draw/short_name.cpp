// See short_name.h. Brackets are matched without a grammar of C++: a '<' or '(' counts if a name precedes it,
// and a name whose brackets do not close is not shortened.
#include "viewer/draw/short_name.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include <cxxabi.h>

namespace shardscope::viewer::draw {
namespace {

constexpr std::size_t kLongest = 16 << 10;

bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '~';
}

// Compilers' names for an unnamed namespace carry no information.
std::string without_anonymous(std::string_view name) {
    static constexpr std::array<std::string_view, 3> kAnonymous = {
        "(anonymous namespace)::", "<unnamed>::", "{anonymous}::"};
    std::string out;
    out.reserve(name.size());
    for (std::size_t i = 0; i < name.size();) {
        std::size_t skip = 0;
        for (const std::string_view word : kAnonymous)
            if (name.substr(i).starts_with(word)) skip = word.size();
        if (skip == 0) out += name[i++];
        i += skip;
    }
    return out;
}

// The symbols of "operator<", "operator()", "operator->", which are not brackets.
std::size_t operator_symbols(std::string_view name, std::size_t at) {
    static constexpr std::string_view kWord = "operator";
    if (at < kWord.size() || name[at - 1] != 'r' || name.substr(at - kWord.size(), kWord.size()) != kWord)
        return 0;
    if (at > kWord.size() && in_word(name[at - kWord.size() - 1])) return 0;
    const std::string_view rest = name.substr(at);
    if (rest.starts_with("()")) return 2;
    std::size_t count = 0;
    while (count < rest.size() && count < 3 &&
           std::string_view("<>=-+*/%!&|^~").find(rest[count]) != std::string_view::npos) {
        ++count;
    }
    // "operator<<int>" is '<' with an argument.
    return rest.starts_with("<<") && rest.find('>') != std::string_view::npos ? 1 : count;
}

// The nesting of each character: the number of template argument lists around it, and whether it is in
// parameters. Brackets belong to their contents.
struct Places {
    std::vector<int> depth;
    std::vector<bool> parameter;  // a function's parameters, but not of a function type in template arguments
    bool arguments = false, parameters = false;
};

bool find_places(std::string_view name, Places& places) {
    std::string open;
    int depth = 0;
    places.depth.resize(name.size());
    places.parameter.resize(name.size());
    for (std::size_t i = 0; i < name.size(); ++i) {
        for (std::size_t n = operator_symbols(name, i); n > 0 && i < name.size(); --n, ++i) {
            places.depth[i] = depth;
            places.parameter[i] = open.starts_with('(');
        }
        if (i >= name.size()) break;
        const char c = name[i], before = i > 0 ? name[i - 1] : ' ';
        if (c == '(' || (c == '<' && in_word(before))) {
            if (c == '<') places.arguments = true;
            if (c == '(' && (in_word(before) || before == '>')) places.parameters = true;
            open += c;
            depth += c == '<' ? 1 : 0;
        }
        places.depth[i] = depth;
        places.parameter[i] = open.starts_with('(');
        if (c == ')' || (c == '>' && before != '-' && open.ends_with('<'))) {
            if (open.empty() || open.back() != (c == ')' ? '(' : '<')) return false;
            open.pop_back();
            depth -= c == '>' ? 1 : 0;
        }
    }
    return open.empty();
}

std::string without_parameters(std::string_view name, const Places& places) {
    std::string out;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (!places.parameter[i]) out += name[i];
    }
    if (out.starts_with("void ")) out.erase(0, 5);
    for (const std::string_view end : {" [clone .kd]", " const"})
        if (out.ends_with(end)) out.erase(out.size() - end.size());
    return out;
}

// The position after the bracket that closes the one at `at`; the end if none does.
std::size_t behind_group(std::string_view name, std::size_t at) {
    const char opens = name[at], closes = opens == '(' ? ')' : '}';
    int depth = 0;
    for (; at < name.size(); ++at) {
        depth += name[at] == opens ? 1 : name[at] == closes ? -1 : 0;
        if (depth == 0) return at + 1;
    }
    return at;
}

// Some compilers write the type of a constant: "<(int)4, (bool)1>".
std::size_t cast_bytes(std::string_view text) {
    for (const std::string_view cast : {"(int)", "(bool)", "(unsigned int)", "(long)", "(unsigned long)"})
        if (text.starts_with(cast)) return cast.size();
    return 0;
}

// "cos_kernel(Tensor&)::{lambda(float)#2}::operator()() const" belongs to cos_kernel.
std::string without_lambdas(std::string_view name) {
    static constexpr std::string_view kCall = "::operator()", kConst = " const";
    std::string out;
    for (std::size_t i = 0; i < name.size();) {
        const std::string_view rest = name.substr(i);
        std::size_t next = i;
        if (rest.starts_with("::{")) {
            next = behind_group(name, i + 2);
        } else if (rest.starts_with(kCall)) {
            next = i + kCall.size();
            if (name.substr(next).starts_with('(')) next = behind_group(name, next);
        } else if (i > 0 && (name[i - 1] == '<' || name[i - 1] == ' ')) {
            next = i + cast_bytes(rest);
        } else if (rest.starts_with('(') && i > 0 && (in_word(name[i - 1]) || name[i - 1] == '>')) {
            next = behind_group(name, i);
        }
        if (next == i) {
            out += name[i++];
            continue;
        }
        i = next;
        if (name.substr(i).starts_with(kConst)) i += kConst.size();
    }
    return out;
}

std::string without_namespaces(std::string_view name) {
    std::string out;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (!name.substr(i).starts_with("::")) {
            out += name[i];
            continue;
        }
        const bool keep = !out.empty() && (out.back() == '>' || out.back() == '}');
        if (keep || name.substr(i + 2).starts_with("operator")) {
            out += "::";
        } else {
            while (!out.empty() && in_word(out.back())) out.pop_back();
        }
        ++i;
    }
    return out;
}

// The stretches nested in at least `levels` template argument lists: each from its '<' to its '>'.
std::vector<std::pair<std::size_t, std::size_t>> arguments(const Places& places, int levels) {
    std::vector<std::pair<std::size_t, std::size_t>> stretches;  // first, and one past the last
    for (std::size_t i = 0; i < places.depth.size(); ++i) {
        if (places.depth[i] < levels) continue;
        if (i == 0 || places.depth[i - 1] < levels) stretches.emplace_back(i, i);
        stretches.back().second = i + 1;
    }
    return stretches;
}

std::string without_deep_arguments(std::string_view name, int levels) {
    Places places;
    if (!find_places(name, places)) return std::string(name);
    std::string out;
    std::size_t done = 0;
    for (const auto& [from, to] : arguments(places, levels)) {
        out += name.substr(done, from + 1 - done);
        out += to - from > 5 ? "..." : name.substr(from + 1, to - from - 2);
        done = to - 1;
    }
    out += name.substr(done);
    return out;
}

void split_arguments(const std::string& name, ShortName& into) {
    Places places;
    if (!find_places(name, places)) return;
    std::size_t longest = 0;
    for (const auto& [from, to] : arguments(places, 1)) {
        if (to - from <= longest) continue;
        longest = to - from;
        into.head = name.substr(0, from + 1);
        into.inner = name.substr(from + 1, to - from - 2);
        into.tail = name.substr(to - 1);
    }
}

}  // namespace

std::string readable_name(std::string_view name) {
    if (!name.starts_with("_Z") || name.size() > kLongest) return std::string(name);
    const std::string symbol(name.substr(0, name.find('.')));
    int status = -1;
    const std::unique_ptr<char, decltype(&std::free)> source(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && source ? std::string(source.get()) : std::string(name);
}

ShortName short_name(std::string_view name) {
    ShortName result;
    if (name.size() > kLongest || name.find_first_of("<(") == std::string_view::npos) return result;
    const std::string plain = without_anonymous(name);
    Places places;
    if (!find_places(plain, places)) return result;
    const bool qualified = plain.find("::") != std::string::npos;
    // Parentheses alone may hold anything; with a pointer in them they hold parameters.
    const bool pointer = plain.find("*,") != std::string::npos || plain.ends_with("*)");
    if (!places.arguments && !(places.parameters && (qualified || pointer))) return result;
    const auto add = [&](std::string form) {
        const std::size_t before = result.forms.empty() ? name.size() : result.forms.back().size();
        if (!form.empty() && form.size() < before) result.forms.push_back(std::move(form));
    };
    std::string form = without_parameters(plain, places);
    add(form);
    form = without_lambdas(form);
    add(form);
    form = without_namespaces(form);
    add(form);
    for (const int levels : {3, 2}) {
        form = without_deep_arguments(form, levels);
        add(form);
    }
    if (!result.forms.empty()) split_arguments(result.forms.back(), result);
    return result;
}

}  // namespace shardscope::viewer::draw
