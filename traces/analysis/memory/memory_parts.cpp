// The parts of a peak as rows, and their fields; see memory.h.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/memory/memory.h"

namespace shardscope::traces::analysis {
namespace {

using P = MemoryPart;

store::Cell difference(const P& part) {
    return part.predicted ? store::Cell(part.bytes - *part.predicted) : store::Cell();
}

}  // namespace

Fields<MemoryPart> memory_part_fields() {
    static constexpr Field<P> kFields[] = {
        {{"name", "", Unit::text, "The part.", everywhere, -1, false, false, true}, value_of<&P::name>},
        {{"bytes", "Bytes", Unit::count, "Its bytes at the peak."}, value_of<&P::bytes>},
        {{"mb", "MiB", Unit::bytes, "Its bytes at the peak.", in_table}, value_of<&P::bytes>},
        {{"share", "Share", Unit::percent, "Its share of the peak.", in_table},
         [](const P& part) {
             return store::Cell(part.peak > 0
                                    ? 100.0 * static_cast<double>(part.bytes) / static_cast<double>(part.peak)
                                    : 0.0);
         }},
        {{"predicted_bytes", "Predicted", Unit::count, "What the memory account predicts for it."},
         value_of<&P::predicted>},
        {{"predicted_mb", "Predicted MiB", Unit::bytes, "What the memory account predicts for it.", in_table},
         value_of<&P::predicted>},
        {{"difference_bytes", "Difference", Unit::count, "Measured - predicted.", everywhere, -1, false,
          true},
         difference},
        {{"difference_mb", "Difference", Unit::bytes, "Measured - predicted.", in_table, -1, false, true},
         difference},
        {{"difference_percent", "", Unit::percent, "The difference in percent of the prediction.",
          in_programs},
         [](const P& part) {
             return part.predicted.value_or(0) != 0
                        ? store::Cell(difference_percent(part.bytes, *part.predicted))
                        : store::Cell();
         }},
        {{"difference_percent", "Difference", Unit::percent, "The difference in percent of the prediction.",
          in_table, -1, false, true},
         [](const P& part) {
             if (!part.predicted || (*part.predicted == 0 && part.bytes != 0)) return store::Cell();
             return store::Cell(difference_percent(part.bytes, *part.predicted));
         }},
    };
    return kFields;
}

std::vector<MemoryPart> category_parts(const RankMemory& rank) {
    std::vector<P> parts;
    for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
        parts.push_back({std::string(schema::kMemoryCategoryNames[c]), rank.at_peak[c], rank.peak_bytes});
        if (rank.is_predicted()) parts.back().predicted = rank.predicted_at_peak[c];
    }
    return parts;
}

std::vector<MemoryPart> holder_parts(const std::vector<MemoryHolder>& holders, std::int64_t peak,
                                     std::size_t most) {
    std::vector<P> parts;
    parts.reserve(holders.size());
    for (const MemoryHolder& holder : holders)
        parts.push_back({holder.name, holder.bytes, peak, holder.predicted});
    if (parts.size() <= most + 1) return parts;
    const std::vector<P> rest(parts.begin() + static_cast<std::ptrdiff_t>(most), parts.end());
    parts.resize(most);
    parts.push_back(sum_of(rest, fmt::format("… {} more", rest.size())));
    return parts;
}

std::vector<MemoryHolder> holders_at_peak(const std::vector<MemoryHolder>& holders) {
    std::vector<MemoryHolder> there;
    std::copy_if(holders.begin(), holders.end(), std::back_inserter(there),
                 [](const MemoryHolder& holder) { return holder.bytes != 0; });
    return there;
}

MemoryPart sum_of(const std::vector<MemoryPart>& parts, std::string name) {
    P sum{std::move(name)};
    for (const P& part : parts) {
        sum.bytes += part.bytes;
        sum.peak = part.peak;
        if (part.predicted) sum.predicted = sum.predicted.value_or(0) + *part.predicted;
    }
    return sum;
}

}  // namespace shardscope::traces::analysis
