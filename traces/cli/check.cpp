// The check verb: what is wrong with a trace, and finishing one whose run was killed.
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/core.h>

#include "traces/analysis/facts/info.h"
#include "traces/cli/analyse.h"
#include "traces/cli/long_work.h"
#include "traces/cli/verb.h"
#include "traces/import/open.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/integrity.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/wal_damage.h"
#include "traces/store/write/finalize.h"

namespace shardscope::traces::cli {

namespace {

// Returns false if it was cancelled.
bool finish_file(const std::string& file) {
    const LongWork work("finalizing");
    const store::FinalizeOptions options{.cancel = work.options().cancel,
                                         .progress = work.options().progress};
    return finalize_trace(file, options).outcome != store::FinalizeResult::Outcome::cancelled;
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
}

// Files with another beginning are traces of other tools. An empty or unreadable file counts as a database
// here, so that opening it reports what is wrong.
bool begins_as_database(const std::string& file) {
    constexpr std::string_view kMagic("SQLite format 3\0", 16);
    std::ifstream stream(file, std::ios::binary);
    std::string head(kMagic.size(), '\0');
    stream.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(stream.gcount()));
    return kMagic.starts_with(head);
}

int check_file(const std::string& file, bool finalize, report::Format format) {
    if (finalize && is_folder(file))
        throw UsageError(fmt::format("{} is a folder; give the trace to finalize", file));
    if (finalize && !store::opening_note(file).empty()) {
        throw store::StoreError(fmt::format(
            "{0} cannot be finalized: its folder cannot be written; copy {0} and {0}-wal to one that can",
            file));
    }
    check_input_or_folder(file);
    const bool database = !is_folder(file) && begins_as_database(file);
    if (finalize && !database) {
        throw UsageError(
            fmt::format("{} is not a database, which --finalize needs; omit the option, or import it", file));
    }
    std::vector<std::string> faults, notes;
    if (std::string damage = store::damage_of_wal(file); !damage.empty()) faults.push_back(std::move(damage));
    if (finalize && !finish_file(file)) {
        fmt::print(stderr, "shardscope-trace: {}: finalizing was stopped; the file is unchanged\n", file);
        return kFailed;
    }
    try {
        if (database) {
            if (std::string damage = store::damage_of(file); !damage.empty())
                faults.push_back(std::move(damage));
        }
        const auto trace = importer::open_any({file});
        for (std::string& fault : analysis::check_trace(*trace)) faults.push_back(std::move(fault));
        notes = analysis::check_notes(*trace);
    } catch (const store::StoreError& error) {
        if (faults.empty()) faults.emplace_back(error.what());
    }
    print(render_check(file, faults, notes, format));
    return faults.empty() ? kDone : kFailed;
}

}  // namespace

Work check_verb(Options& options) {
    options.files("FILE", "The trace", 1, 1);
    const bool& finalize =
        options.flag("--finalize",
                     "First finalize a file whose run did not end: sort, index and compact it. Until this is "
                     "done the file is unchanged, even if Ctrl-C stops it");
    return [&](const Inputs& inputs) { return check_file(inputs.files[0], finalize, inputs.format); };
}

}  // namespace shardscope::traces::cli
