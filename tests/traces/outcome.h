// A changed input, and the outcome of a call under test: the message with which it is refused, or the content
// of the file that it wrote.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "traces/store/error.h"

namespace shardscope::traces {

// "" if the call is not refused.
template <typename Call>
std::string refusal_of(Call call) {
    try {
        call();
        return "";
    } catch (const store::StoreError& error) {
        return error.what();
    }
}

// The text with the first `what` replaced.
inline std::string with(std::string_view text, std::string_view what, std::string_view by) {
    std::string changed(text);
    const std::size_t at = changed.find(what);
    EXPECT_NE(at, changed.npos) << what;
    return changed.replace(at, what.size(), by);
}

// "" if there is no such file.
inline std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace shardscope::traces
