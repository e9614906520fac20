#include "traces/report/kernel_label.h"

#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

// Where the last parenthesis of the name opens, if it closes at the name's end.
std::size_t parameters_start(std::string_view name) {
    if (!name.ends_with(')')) return name.npos;
    int depth = 0;
    for (std::size_t i = name.size(); i-- > 0;) {
        if (name[i] == ')') ++depth;
        if (name[i] == '(' && --depth == 0) return i;
    }
    return name.npos;
}

}  // namespace

std::string kernel_label(std::string_view name, std::size_t width) {
    if (const auto at = parameters_start(name); at != name.npos && at > 0) name = name.substr(0, at);
    if (name.starts_with("void ")) name.remove_prefix(5);
    return shortened(name, width);
}

}  // namespace shardscope::traces
