// What the memory of a rank's device is used for at one moment: allocated + cached + NCCL + context + other =
// used. Definition: docs/allocator.md. Sizes in bytes; none: unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct DeviceAccount {
    std::string moment;  // "peak of reserved"
    std::int64_t time = 0;
    std::optional<std::int64_t> allocated, cached;
    std::optional<std::int64_t> nccl;     // what creating communicators added to the used bytes
    std::optional<std::int64_t> context;  // used before the allocator had anything
    std::optional<std::int64_t> other;    // the rest; with what of the above is unknown
    std::optional<std::int64_t> used, free, total;

    // Sets `other` to what is left of `used`.
    void close();
};

Fields<DeviceAccount> device_account_fields();

// Used bytes, NCCL, context and total at `time`, as far as counters of the device show them.
DeviceAccount device_account(const store::Trace& trace, store::RankIndex rank, std::string moment,
                             std::int64_t time);

}  // namespace shardscope::traces::analysis
