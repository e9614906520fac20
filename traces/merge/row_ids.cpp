#include "traces/merge/row_ids.h"

#include <set>
#include <vector>

#include <fmt/core.h>

#include "traces/merge/part.h"

namespace shardscope::traces::merge {

namespace {

std::int64_t mapped(const std::map<std::int64_t, std::int64_t>& ids, std::int64_t id) {
    const auto it = ids.find(id);
    return it != ids.end() ? it->second : id;
}

}  // namespace

StringIds::StringIds(store::Database& part, store::StringTable* shared)
    : there_(part.has_table("StringIds")),
      lookup_(there_ ? std::make_unique<store::Statement>(part, "SELECT value FROM StringIds WHERE id = ?1")
                     : nullptr),
      shared_(shared) {}

const std::string& StringIds::look_up(std::int64_t id) {
    text_.clear();
    if (lookup_ == nullptr) return text_;
    lookup_->bind(1, id);
    if (lookup_->step()) text_ = lookup_->text(0);
    lookup_->reset();
    return text_;
}

std::int64_t StringIds::map(std::int64_t id) {
    const auto [it, added] = known_.try_emplace(id, id);
    if (added && shared_ != nullptr) it->second = static_cast<std::int64_t>(shared_->intern(look_up(id)));
    return it->second;
}

std::string_view StringIds::text(std::int64_t id) {
    return look_up(id);
}

std::int64_t RowIds::process(std::int64_t serialized) const {
    return machine(machine_of(serialized)) << 48 | (serialized & 0xFFFFFFFFFFFF);
}

std::int64_t RowIds::machine(std::int64_t number) const {
    return mapped(machines, number);
}

// An unassigned device keeps its number if that is free, otherwise it gets the next one.
std::int64_t RowIds::device(std::int64_t device, std::int64_t pid) {
    if (new_devices == nullptr) return device;
    if (const auto it = devices.find({device, pid}); it != devices.end()) return it->second;
    // A further device of a rank's process must differ from another rank's device of the same number.
    const bool apart = rank_processes.contains(pid) && rank_devices.contains(device);
    const std::int64_t of = apart ? pid : -1;
    if (const auto it = devices.find({device, of}); it != devices.end()) {
        const std::int64_t known = it->second;
        return devices[{device, pid}] = known;
    }
    std::int64_t number = device;
    if (device >= 0 && !new_devices->insert(device).second) {
        number = *new_devices->rbegin() + 1;
        new_devices->insert(number);
    }
    devices[{device, of}] = devices[{device, pid}] = number;
    return number;
}

std::int64_t RowIds::domain(std::int64_t domain, std::int64_t serialized_thread) const {
    auto it = domains.find({domain, serialized_thread & schema::kPidMask});
    if (it == domains.end()) it = domains.find({domain, 0});
    return it != domains.end() ? it->second : domain;
}

std::int64_t RowIds::schema(std::int64_t domain, std::int64_t id) const {
    const auto it = schemas.find({domain, id});
    return it != schemas.end() ? it->second : id;
}

std::int64_t RowIds::map(schema::ColumnRole role, std::int64_t value, std::int64_t pid) {
    switch (role) {
        case schema::ColumnRole::time:
            return clock(value);
        case schema::ColumnRole::time_or_zero:
            return value == 0 ? 0 : clock(value);
        case schema::ColumnRole::string:
            return strings.map(value);
        case schema::ColumnRole::correlation:
            return value == 0 ? 0 : moved(value, correlation_offset);
        case schema::ColumnRole::range:
            return moved(value, range_offset);
        case schema::ColumnRole::device:
            return device(value, pid);
        case schema::ColumnRole::process:
        case schema::ColumnRole::thread:
            return value == 0 ? 0 : process(value);
        case schema::ColumnRole::machine:
            return machine(machine_of(value)) << 48;
        case schema::ColumnRole::rank:
            return mapped(ranks, value);
        case schema::ColumnRole::group:
            return mapped(groups, value);
        case schema::ColumnRole::module:
            used_modules.insert(value);
            return moved(value, module_offset);
        case schema::ColumnRole::module_payload:
            if (!known_modules.contains(value)) return value;
            used_modules.insert(value);
            return moved(value, module_offset);
        case schema::ColumnRole::unit:
            used_units.insert(value);
            return moved(value, unit_offset);
        default:  // unchanged, or mapped by the copier, which knows the columns that they depend on
            return value;
    }
}

namespace {

struct Layout {
    std::string text;                  // everything that distinguishes it from another layout
    std::set<std::int64_t> refers_to;  // schemas of its entries
};

constexpr std::int64_t kFirstSchema = 1 << 24;  // lower numbers are NVTX's own types

// Appends the rows of one table to their layouts.
void read(Part& part, const RowIds& ids, const char* table, const char* columns, bool has_type,
          std::map<std::pair<std::int64_t, std::int64_t>, Layout>& layouts) {
    if (!part.has_table(table)) return;
    store::Statement row(part.database,
                         fmt::format("SELECT domainId, schemaId, {} FROM {} ORDER BY rowid", columns, table));
    while (row.step()) {
        Layout& layout = layouts[{ids.domain(row.integer(0), 0), row.integer(1)}];
        layout.text += table;
        for (int c = 2; c < row.column_count(); ++c)
            fmt::format_to(std::back_inserter(layout.text), "|{}", row.text(c));
        layout.text += '\n';
        if (has_type && row.integer(2) >= kFirstSchema) layout.refers_to.insert(row.integer(2));
    }
}

}  // namespace

void PayloadIds::assign(Part& part, RowIds& ids) {
    std::map<Key, Layout> layouts;
    read(part, ids, "NVTX_PAYLOAD_SCHEMAS", "name, type, flags, numEntries, payloadSize, alignTo", false,
         layouts);
    read(part, ids, "NVTX_PAYLOAD_SCHEMA_ENTRIES",
         "type, idx, flags, name, description, arrayOrUnionDetail, offset", true, layouts);
    read(part, ids, "NVTX_PAYLOAD_ENUMS", "name, numEntries, size", false, layouts);
    read(part, ids, "NVTX_PAYLOAD_ENUM_ENTRIES", "idx, name, value, isFlag", false, layouts);

    for (const auto& [key, layout] : layouts) {
        const auto it = layouts_.find(key);
        if (it != layouts_.end() && it->second != layout.text) ids.schemas[key] = next_++;
    }
    for (bool more = true; more;) {  // a schema that refers to one with a new id needs a new id, too
        more = false;
        for (const auto& [key, layout] : layouts) {
            for (const std::int64_t other : layout.refers_to) {
                if (!ids.schemas.contains({key.first, other}) || ids.schemas.contains(key)) continue;
                ids.schemas[key] = next_++;
                more = true;
            }
        }
    }
    for (const auto& [key, layout] : layouts)
        layouts_.emplace(Key{key.first, ids.schema(key.first, key.second)}, layout.text);
}

}  // namespace shardscope::traces::merge
