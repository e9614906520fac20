// See operator_names.h.
#include "traces/analysis/modules/operator_names.h"

#include <algorithm>

namespace shardscope::traces {
namespace {

// The list at the start of `text`, to its closing bracket; empty if there is none or it is not closed.
std::string_view leading_list(std::string_view text) {
    if (!text.starts_with('[')) return {};
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') ++i;
            if (c == '"') quoted = false;
            continue;
        }
        if (c == '"') quoted = true;
        if (c == '[') ++depth;
        if (c == ']' && --depth == 0) return text.substr(0, i + 1);
    }
    return {};
}

// The text after `key`, without leading blanks; empty if the key is absent.
std::string_view behind(std::string_view text, std::string_view key) {
    const auto at = text.find(key);
    if (at == text.npos) return {};
    text.remove_prefix(at + key.size());
    const auto value = text.find_first_not_of(" \t\n\r");
    return value == text.npos ? std::string_view() : text.substr(value);
}

}  // namespace

OperatorText operator_text(std::string_view range) {
    const auto end = std::min({range.find(", seq = "), range.find(", op_id = "), range.find(", sizes = ")});
    if (end == range.npos) return {.name = range, .shapes = {}};
    return {.name = range.substr(0, end), .shapes = leading_list(behind(range.substr(end), ", sizes ="))};
}

std::string_view input_shapes(std::string_view detail) {
    // Capitalization differs between versions of the format.
    for (const std::string_view key : {R"("Input Dims":)", R"("Input dims":)"}) {
        if (const std::string_view list = leading_list(behind(detail, key)); !list.empty()) return list;
    }
    return {};
}

}  // namespace shardscope::traces
