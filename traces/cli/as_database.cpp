#include "traces/cli/as_database.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "traces/store/open.h"

namespace shardscope::traces {

namespace fs = std::filesystem;

namespace {

bool is_ours(const std::string& path) {
    Database database = open_trace(path);
    return schema_version(database) > 0;
}

}  // namespace

bool is_database(const std::string& path) {
    constexpr std::string_view kMagic("SQLite format 3\0", 16);
    std::array<char, 16> bytes{};
    std::ifstream file(path, std::ios::binary);
    return file.read(bytes.data(), bytes.size()) && std::string_view(bytes.data(), bytes.size()) == kMagic;
}

AsDatabase::AsDatabase(const Inputs& inputs, const WorkOptions& work, bool ours) {
    if (inputs.files.size() == 1 && is_database(inputs.files[0]) && (!ours || is_ours(inputs.files[0]))) {
        path_ = inputs.files[0];
        return;
    }
    (void)work;
    throw StoreError(fmt::format("{} is no database; import it first", inputs.files[0]));
}

AsDatabase::~AsDatabase() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace shardscope::traces
