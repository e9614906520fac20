#include "traces/store/write/totals.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "traces/schema/stored_rows.h"
#include "traces/store/sqlite/row_insert.h"

namespace shardscope::traces::store {

namespace {

constexpr std::array<Totals::Source, 3> kSources = {{
    {"CUPTI_ACTIVITY_KIND_KERNEL", "deviceId", "globalPid", "shortName"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "", "globalTid", "nameId"},
    {"NVTX_EVENTS", "", "globalTid", "textId", "eventType IN (59, 60)"},
}};

}  // namespace

const Totals::Source* Totals::source(std::string_view table) {
    const auto* it = std::find_if(kSources.begin(), kSources.end(),
                                  [&](const Source& source) { return source.table == table; });
    return it != kSources.end() ? it : nullptr;
}

std::size_t Totals::Hash::operator()(const Key& key) const {
    // The numbers are small or differ in few bits: a multiplication spreads them.
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(key.source);
    for (const std::int64_t part : {key.device, key.pid, key.name}) {
        hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

void Totals::add(const Source& source, std::int64_t device, std::int64_t pid, std::int64_t name,
                 std::int64_t duration) {
    const Key key{&source, device, pid, name};
    if (last_ == nullptr || key != last_key_) {
        last_ = &sums_[key];  // its address stays valid when others are added
        last_key_ = key;
    }
    Sum& sum = *last_;
    sum.shortest = sum.count == 0 ? duration : std::min(sum.shortest, duration);
    sum.longest = sum.count == 0 ? duration : std::max(sum.longest, duration);
    // Only a damaged file can overflow the sum.
    sum.total = duration > std::numeric_limits<std::int64_t>::max() - sum.total
                    ? std::numeric_limits<std::int64_t>::max()
                    : sum.total + duration;
    ++sum.count;
}

void Totals::write(Database& database) const {
    std::vector<std::pair<Key, Sum>> rows(sums_.begin(), sums_.end());
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        const auto order = [](const std::pair<Key, Sum>& row) {
            return std::tuple(row.first.source, -row.second.total, row.first.device, row.first.pid,
                              row.first.name);
        };
        return order(a) < order(b);
    });
    database.execute("DELETE FROM SHARD_TOTALS");
    RowInsert<schema::TotalRow> to(database);
    for (const auto& [key, sum] : rows) {
        to.add({key.source->table, key.device, key.pid, key.name, sum.count, sum.total, sum.shortest,
                sum.longest});
    }
    to.flush();
}

}  // namespace shardscope::traces::store
