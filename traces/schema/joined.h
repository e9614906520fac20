#pragma once

#include <iterator>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace shardscope::traces {

// The words (or numbers) of a list, with a separator between each two. fmt::join would do, but its header
// costs a source one to two seconds.
template <class List>
std::string joined(const List& words, std::string_view separator) {
    std::string text;
    bool first = true;
    for (const auto& word : words) {
        if (!first) text += separator;
        first = false;
        fmt::format_to(std::back_inserter(text), "{}", word);
    }
    return text;
}

}  // namespace shardscope::traces
