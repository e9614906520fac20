#include "traces/query/as_database.h"

#include <array>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "traces/import/import.h"
#include "traces/store/sqlite/open.h"

namespace shardscope::traces::query {

namespace {

bool is_ours(const std::string& path) {
    store::Database database = store::open_trace(path);
    return schema_version(database) > 0;
}

}  // namespace

bool is_database(const std::string& path) {
    constexpr std::string_view kMagic("SQLite format 3\0", 16);
    std::array<char, 16> bytes{};
    std::ifstream file(path, std::ios::binary);
    return file.read(bytes.data(), bytes.size()) && std::string_view(bytes.data(), bytes.size()) == kMagic;
}

AsDatabase::AsDatabase(const AsDatabaseOptions& options, const merge::WorkOptions& work) {
    if (options.files.size() == 1 && is_database(options.files[0]) &&
        (!options.ours || is_ours(options.files[0]))) {
        path_ = options.files[0];
        return;
    }
    try {
        folder_.emplace("import");
    } catch (const std::system_error& error) {
        throw store::StoreError(fmt::format(
            "no temporary folder can be made ({}); set TMPDIR to a folder with room for the trace",
            error.code().message()));
    }
    path_ = folder_->path() + "/trace.sqlite";
    const importer::ImportToOptions to{
        .inputs = options.files, .output = path_, .partial = options.partial, .max_bytes = options.max_bytes};
    notes_ = import_files(to, work).notes;
}

}  // namespace shardscope::traces::query
