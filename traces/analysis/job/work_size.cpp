// See work_size.h.
#include "traces/analysis/job/work_size.h"

#include <algorithm>
#include <string_view>

#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// 0 if the key is missing or its value is not a number above 0.
std::int64_t number(const store::Trace& trace, std::string_view key) {
    return std::max<std::int64_t>(schema::number_of<std::int64_t>(trace.config_value(key)).value_or(0), 0);
}

}  // namespace

int ranks_of_job(const store::Trace& trace) {
    std::int64_t ranks =
        std::max<std::int64_t>(static_cast<std::int64_t>(trace.ranks.size()), number(trace, "run.ranks"));
    for (const std::int32_t size : trace.collectives.group_size) ranks = std::max<std::int64_t>(ranks, size);
    return static_cast<int>(std::min<std::int64_t>(ranks, 1 << 30));
}

WorkSize work_of_step(const store::Trace& trace) {
    WorkSize work;
    const std::int64_t batch = number(trace, "data.batch");
    if (batch == 0) return work;
    // Ranks along these axes compute the same samples together.
    double together = 1;
    for (const std::string_view axis : {"parallel.tensor", "parallel.context", "parallel.pipeline"})
        together *= static_cast<double>(std::max<std::int64_t>(number(trace, axis), 1));
    const std::int64_t accumulation = std::max<std::int64_t>(number(trace, "train.accumulation"), 1);
    work.samples = static_cast<double>(batch) * static_cast<double>(accumulation) *
                   static_cast<double>(ranks_of_job(trace)) / together;
    const std::string_view model = trace.config_value("model.type");
    if (model == "gpt" || model == "llama" || model == "bert")
        work.tokens = work.samples * static_cast<double>(number(trace, "model.context"));
    return work;
}

}  // namespace shardscope::traces::analysis
