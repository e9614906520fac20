#include "trainer/checkpoint/keep.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "trainer/checkpoint/files.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char* kBest = "best";

}  // namespace

CheckpointKeeper::CheckpointKeeper(fs::path save, job::KeptCheckpoints keep, bool continues)
    : save_(std::move(save)), keep_(keep) {
    std::error_code error;
    if (!keep_.best || !continues || !fs::is_regular_file(save_ / kBest, error)) return;
    const std::string text = read_file(save_ / kBest);
    const std::size_t space = text.find(' ');
    if (space == text.npos) return;
    const auto step = step_of_folder(std::string_view(text).substr(0, space));
    std::string_view loss = std::string_view(text).substr(space + 1);
    if (loss.ends_with('\n')) loss.remove_suffix(1);
    const auto value = traces::schema::number_of<double>(loss);
    // Its folder may have been removed by hand.
    if (step && value && fs::is_directory(save_ / step_folder_name(*step), error))
        best_ = Validated{*step, *value};
}

void CheckpointKeeper::validated(std::int64_t steps_done, double loss) {
    const std::lock_guard lock(mutex_);
    latest_ = Validated{steps_done, loss};
}

std::optional<std::int64_t> CheckpointKeeper::best() const {
    const std::lock_guard lock(mutex_);
    return best_ ? std::optional(best_->step) : std::nullopt;
}

void CheckpointKeeper::saved(std::int64_t steps_done) {
    const std::lock_guard lock(mutex_);
    if (keep_.all()) return;
    if (keep_.best && latest_ && latest_->step == steps_done && !std::isnan(latest_->loss) &&
        (!best_ || best_->step == steps_done || latest_->loss < best_->loss)) {
        best_ = latest_;
        replace_file(save_ / kBest, fmt::format("{} {}\n", step_folder_name(best_->step), best_->loss));
    }
    std::vector<std::int64_t> earlier;
    for (const std::int64_t step : saved_steps(save_)) {
        if (step <= steps_done) earlier.push_back(step);
    }
    std::sort(earlier.begin(), earlier.end(), std::greater<>());
    const auto newest = static_cast<std::size_t>(keep_.best ? 1 : keep_.last);
    for (std::size_t i = newest; i < earlier.size(); ++i) {
        if (!best_ || earlier[i] != best_->step) remove_step(save_, earlier[i]);
    }
}

}  // namespace shardscope::trainer::checkpoint
