// The outcome of a call under test: the message with which it is refused, or the content of the file that it
// wrote.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

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

// "" if there is no such file.
inline std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace shardscope::traces
