#include "viewer/timeline/columns_keeper.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "traces/lanes/kept_tracks.h"
#include "traces/store/beside/kept_trace.h"
#include "traces/store/error.h"

namespace shardscope::viewer::timeline {

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
    writing_ = std::async(std::launch::async, [trace, tracks, &cancel = cancel_]() -> std::string {
        try {
            const std::int64_t bytes = traces::lanes::keep_beside(*trace, tracks->tracks, &cancel);
            return fmt::format("{} ({:.1f} MiB) is written: the trace opens faster from now on.",
                               traces::store::column_path(trace->path),
                               static_cast<double>(bytes) / (1 << 20));
        } catch (const traces::store::StoreError& error) {
            return error.what();
        }
    });
    return {};
}

}  // namespace shardscope::viewer::timeline
