// The checkpoints that stay, as text and back: "all", "best" and "last:3".
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::job {

KeptCheckpoints parse_kept(const std::string& text) {
    constexpr std::string_view kLast = "last:";
    if (text == "all") return {};
    if (text == "best") return {.best = true};
    if (text.starts_with(kLast)) {
        const auto count =
            traces::schema::number_of<std::int64_t>(std::string_view(text).substr(kLast.size()));
        if (count && *count >= 1 && *count <= 1'000'000'000) return {.last = *count};
    }
    throw JobError(fmt::format(
        "\"{}\" does not say which checkpoints to keep; use all, best or last:N, such as last:2", text));
}

std::string to_text(const KeptCheckpoints& kept) {
    if (kept.best) return "best";
    return kept.last > 0 ? fmt::format("last:{}", kept.last) : "all";
}

}  // namespace shardscope::trainer::job
