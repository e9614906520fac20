// How often something is done, as text and back: "100" (steps), "1 epoch", "2 epochs".
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::job {

Every parse_every(const std::string& text) {
    const std::string_view all = text;
    const std::size_t space = all.find(' ');
    const std::string_view word = space == all.npos ? "" : all.substr(space + 1);
    const auto count = traces::schema::number_of<std::int64_t>(all.substr(0, space));
    const bool epochs = word == "epoch" || word == "epochs";
    const bool steps = space == all.npos || word == "step" || word == "steps";
    if (count && *count >= (epochs ? 1 : 0) && *count <= kMostSteps && (epochs || steps))
        return {*count, epochs};
    throw JobError(fmt::format("\"{}\" is not a number of steps or epochs; use 0 to {}, or \"1 epoch\"", text,
                               kMostSteps));
}

std::string to_text(const Every& every) {
    if (!every.epochs) return fmt::format("{}", every.count);
    return fmt::format("{} epoch{}", every.count, every.count == 1 ? "" : "s");
}

}  // namespace shardscope::trainer::job
