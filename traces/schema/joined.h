#pragma once

#include <iterator>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace shardscope::traces::schema {

// The words (or numbers) of a list, separated. fmt::join would do, but its header adds one to two seconds
// to the compilation of a source.
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

}  // namespace shardscope::traces::schema
