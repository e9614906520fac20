#include "traces/store/columns/correlation_index.h"

#include <algorithm>

namespace shardscope::traces::store {

namespace {
// The most entries per row that a table over the ids' range may have; beyond that, sorting is better.
constexpr std::uint64_t kPlacesPerRow = 8, kPlacesAnyway = 4096;
}  // namespace

CorrelationIndex::CorrelationIndex(std::span<const std::int64_t> correlation,
                                   std::span<const std::uint32_t> owner,
                                   std::span<const std::int64_t> owner_process)
    : correlation_(correlation), next_(correlation.size(), -1) {
    std::vector<std::size_t> table_of;  // by owner
    table_of.reserve(owner_process.size());
    for (const std::int64_t process : owner_process) {
        table_of.push_back(static_cast<std::size_t>(
            processes_.emplace(process, static_cast<int>(processes_.size())).first->second));
    }
    tables_.resize(processes_.size());
    for (std::size_t i = 0; i < correlation.size(); ++i) {
        const std::int64_t id = correlation[i];
        if (id == 0) continue;
        Table& table = tables_[table_of[owner[i]]];
        if (table.rows++ == 0) {
            table.first_id = table.last_id = id;
        } else {
            table.first_id = std::min(table.first_id, id);
            table.last_id = std::max(table.last_id, id);
        }
    }
    for (Table& table : tables_) {
        const std::uint64_t range =
            static_cast<std::uint64_t>(table.last_id) - static_cast<std::uint64_t>(table.first_id);
        if (table.rows > 0 && range < kPlacesPerRow * table.rows + kPlacesAnyway) {
            table.dense.assign(range + 1, -1);
        }
    }
    // From the last to the first, so that each row links to the one that follows it.
    for (std::size_t i = correlation.size(); i-- > 0;) {
        if (correlation[i] == 0) continue;
        Table& table = tables_[table_of[owner[i]]];
        if (table.dense.empty()) {
            table.sparse.emplace_back(correlation[i], static_cast<std::int32_t>(i));
            continue;
        }
        std::int32_t& first = table.dense[static_cast<std::size_t>(correlation[i] - table.first_id)];
        next_[i] = std::exchange(first, static_cast<std::int32_t>(i));
    }
    for (Table& table : tables_) {
        std::sort(table.sparse.begin(), table.sparse.end());
        for (std::size_t i = 1; i < table.sparse.size(); ++i) {
            const auto& before = table.sparse[i - 1];
            if (before.first == table.sparse[i].first)
                next_[static_cast<std::size_t>(before.second)] = table.sparse[i].second;
        }
        const auto same_id = [](const auto& a, const auto& b) { return a.first == b.first; };
        table.sparse.erase(std::unique(table.sparse.begin(), table.sparse.end(), same_id),
                           table.sparse.end());
    }
}

CorrelationIndex::Place CorrelationIndex::place(std::int64_t process) const {
    const auto number = [&](std::int64_t of) {
        const auto it = processes_.find(of);
        return it != processes_.end() ? it->second : -1;
    };
    if (process == 0) {
        std::call_once(all_once_, [&] {
            const std::vector<std::uint32_t> one_owner(correlation_.size(), 0);
            constexpr std::int64_t kOneProcess[] = {1};
            all_ = std::make_unique<CorrelationIndex>(correlation_, one_owner, kOneProcess);
        });
        return {.everywhere = true};
    }
    return {.own = number(process), .unknown = number(0)};
}

const std::int32_t* CorrelationIndex::Table::at(std::int64_t id) const {
    if (rows == 0 || id < first_id || id > last_id) return nullptr;
    if (!dense.empty()) return &dense[static_cast<std::size_t>(id - first_id)];
    const auto it =
        std::lower_bound(sparse.begin(), sparse.end(), id,
                         [](const auto& entry, std::int64_t sought) { return entry.first < sought; });
    return it != sparse.end() && it->first == id ? &it->second : nullptr;
}

template <typename Visit>
void CorrelationIndex::each_table(const Place& place, Visit visit) const {
    if (place.own >= 0) visit(tables_[static_cast<std::size_t>(place.own)]);
    if (place.unknown >= 0) visit(tables_[static_cast<std::size_t>(place.unknown)]);
}

std::int32_t CorrelationIndex::find(std::int64_t correlation, const Place& place) const {
    if (correlation == 0) return -1;
    if (place.everywhere) return all_->find(correlation, {.own = 0});
    std::int32_t found = -1;
    each_table(place, [&](const Table& table) {
        const std::int32_t* first = table.at(correlation);
        if (first != nullptr && *first >= 0 && (found < 0 || *first < found)) found = *first;
    });
    return found;
}

std::int32_t CorrelationIndex::take(std::int64_t correlation, const Place& place) {
    const std::int32_t row = find(correlation, place);
    if (row < 0) return -1;
    each_table(place, [&](const Table& table) {
        auto* first = const_cast<std::int32_t*>(table.at(correlation));  // of this object, which is not const
        if (first != nullptr && *first == row) *first = next_[static_cast<std::size_t>(row)];
    });
    return row;
}

}  // namespace shardscope::traces::store
