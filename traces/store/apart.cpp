#include "traces/store/apart.h"

#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "traces/store/error.h"

namespace shardscope::traces::store {

bool same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    return std::filesystem::equivalent(a, b, error) && !error;
}

void check_apart(const std::vector<std::string>& inputs, const std::string& output) {
    for (const std::string& input : inputs) {
        for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
            if (!same_file(input + suffix, output)) continue;
            throw StoreError(fmt::format("{}{} is both read and written; choose another path for the output",
                                         input, suffix));
        }
    }
}

}  // namespace shardscope::traces::store
