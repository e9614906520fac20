// See identity.h.
#include "viewer/model/identity.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string_view>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::viewer::model {
namespace {

class Hash {
  public:
    void add(std::int64_t number) {
        // The multiplication and the shift of SplitMix64 (Steele, Lea and Flood 2014).
        value_ = (value_ ^ static_cast<std::uint64_t>(number)) * 0xBF58476D1CE4E5B9;
        value_ ^= value_ >> 31;
    }
    void add(std::string_view text) { add(std::bit_cast<std::int64_t>(traces::schema::hash_of(text))); }
    std::string text() const { return fmt::format("{:016x}", value_); }

  private:
    std::uint64_t value_ = 0x9E3779B97F4A7C15;
};

// The number of rows, and the first, the last and evenly spaced rows between them.
template <class Row>
void add_sample(Hash& hash, std::size_t rows, const Row& add_row) {
    constexpr std::size_t kMost = 1024;
    hash.add(static_cast<std::int64_t>(rows));
    const std::size_t sampled = std::min(rows, kMost);
    for (std::size_t i = 0; i < sampled; ++i) add_row(sampled == rows ? i : i * (rows - 1) / (sampled - 1));
}

}  // namespace

TraceIdentity identity_of(const traces::store::Trace& trace) {
    Hash run;
    run.add(trace.start_utc_ns);
    for (const traces::store::Rank& rank : trace.ranks) {
        run.add(rank.number);
        run.add(rank.host);
        run.add(rank.global_pid);
    }
    Hash content;
    const auto add_named = [&](const auto& rows, const auto& start) {
        add_sample(content, rows.size(), [&](std::size_t i) {
            content.add(start[i]);
            content.add(trace.strings[rows.name[i]]);
        });
    };
    const auto add_ends = [&](const auto& rows) {
        add_named(rows, rows.start);
        add_sample(content, rows.size(), [&](std::size_t i) { content.add(rows.end[i]); });
    };
    content.add(run.text());
    content.add(static_cast<std::int64_t>(trace.plan.size()));
    add_ends(trace.device);
    add_ends(trace.ranges);
    add_ends(trace.runtime);
    add_named(trace.marks, trace.marks.time);
    add_named(trace.counters, trace.counters.time);
    add_named(trace.memory, trace.memory.time);
    add_sample(content, trace.memory.size(), [&](std::size_t i) { content.add(trace.memory.bytes[i]); });
    const auto events = static_cast<std::int64_t>(trace.events());
    // A trace without a start says too little of its run: another one could say the same.
    return {trace.start_utc_ns == 0 ? content.text() : run.text(), content.text(), events};
}

}  // namespace shardscope::viewer::model
