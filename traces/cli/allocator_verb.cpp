// shardscope-trace allocator: what PyTorch's caching allocator reserves, and would reserve with other
// settings.
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/memory/allocator_report.h"
#include "traces/analysis/memory/allocator_settings.h"
#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"

namespace shardscope::traces::cli {
namespace {

void check_settings(const std::vector<std::string>& all) {
    for (const std::string& text : all) {
        try {
            analysis::parse_allocator_settings(text);
        } catch (const std::invalid_argument& error) {
            throw UsageError(fmt::format("--conf {}: {}", text, error.what()));
        }
    }
}

}  // namespace

Work allocator_verb(Options& options) {
    const std::vector<std::string>& settings = options.repeated_text(
        "--conf", "SETTINGS",
        "Settings to try instead of a common choice, as in PYTORCH_CUDA_ALLOC_CONF: "
        "\"expandable_segments:True,max_split_size_mb:128\"; empty_cache:True empties the cache after each "
        "step. May be repeated");
    const double& limit_mb =
        options.number("--limit", 0, "MiB",
                       "The most that the allocator may reserve (as the recording shows, "
                       "if it ran out of memory; else any amount)");
    return [&](const Inputs& inputs) {
        constexpr double kMostMb = 1 << 24;
        check_settings(settings);
        if (limit_mb != 0 && !(limit_mb >= 1 && limit_mb <= kMostMb)) {
            throw UsageError(
                fmt::format("--limit {}: it must be from 1 to {:.0f} MiB, or 0 for what the recording shows",
                            limit_mb, kMostMb));
        }
        const analysis::AllocatorChoices choices{settings, std::llround(limit_mb * (1 << 20))};
        return analyse(inputs, [&](const store::Trace& t, const analysis::Selection& s) {
            return allocator_report(t, s, choices);
        });
    };
}

}  // namespace shardscope::traces::cli
