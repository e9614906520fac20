#include "traces/query/as_database.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <stdlib.h>

#include "traces/import/import.h"
#include "traces/store/open.h"

namespace shardscope::traces {

namespace fs = std::filesystem;

namespace {

std::string temporary_folder() {
    std::error_code error;
    std::string folder = (fs::temp_directory_path(error) / "shardscope-import-XXXXXX").string();
    if (error || ::mkdtemp(folder.data()) == nullptr) {
        throw StoreError(fmt::format(
            "no temporary folder can be made ({}); set TMPDIR to a folder with room for the trace",
            error ? error.message() : std::strerror(errno)));
    }
    return folder;
}

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

AsDatabase::AsDatabase(const AsDatabaseOptions& options, const WorkOptions& work) {
    if (options.files.size() == 1 && is_database(options.files[0]) &&
        (!options.ours || is_ours(options.files[0]))) {
        path_ = options.files[0];
        return;
    }
    folder_ = temporary_folder();
    path_ = folder_ + "/trace.sqlite";
    try {
        const ImportToOptions to{.inputs = options.files,
                                 .output = path_,
                                 .partial = options.partial,
                                 .max_bytes = options.max_bytes};
        notes_ = import_files(to, work).notes;
    } catch (...) {
        remove();
        throw;
    }
}

AsDatabase::~AsDatabase() {
    remove();
}

void AsDatabase::remove() noexcept {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace shardscope::traces
