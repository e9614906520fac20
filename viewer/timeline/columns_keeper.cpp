#include "viewer/timeline/columns_keeper.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "traces/lanes/kept_tracks.h"
#include "traces/store/beside/kept_trace.h"

namespace shardscope::viewer::timeline {
namespace {

// Writes the file; what there is to say about it.
std::string written(const model::TracePtr& trace, const std::shared_ptr<const traces::lanes::Tracks>& tracks,
                    const std::atomic<bool>* cancel) {
    try {
        const std::int64_t bytes = traces::lanes::keep_beside(*trace, tracks->tracks, cancel);
        return fmt::format("{} ({:.1f} MiB) is written: the trace opens faster from now on.",
                           traces::store::column_path(trace->path), static_cast<double>(bytes) / (1 << 20));
    } catch (const std::exception& error) {
        const std::string reason = error.what();
        return fmt::format("The columns of {} are not kept ({}): it opens as slowly as before.", trace->path,
                           reason.substr(0, reason.find(';')));
    }
}

}  // namespace

std::string ColumnsKeeper::keep(const model::TracePtr& trace,
                                const std::shared_ptr<const traces::lanes::Tracks>& tracks) {
    if (busy()) {
        if (writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
        return writing_.get();
    }
    std::erase_if(seen_, [](const auto& seen) { return seen.expired(); });
    if (std::ranges::any_of(seen_, [&](const auto& seen) { return seen.lock() == trace; })) return {};
    seen_.push_back(trace);
    if (trace->beside != nullptr || trace->events() < large_ || !traces::store::can_be_kept(*trace))
        return {};
    // A folder that this user may not write is no surprise.
    const std::string folder = std::filesystem::path(trace->path).parent_path().string();
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) return {};
    try {
        writing_ = std::async(std::launch::async, written, trace, tracks, &cancel_);
    } catch (const std::system_error&) {  // there are too many threads already: the next time
    }
    return {};
}

}  // namespace shardscope::viewer::timeline
