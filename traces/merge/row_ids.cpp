#include "traces/merge/row_ids.h"

#include "traces/merge/part.h"

namespace shardscope::traces {

namespace {

std::int64_t mapped(const std::map<std::int64_t, std::int64_t>& ids, std::int64_t id) {
    const auto it = ids.find(id);
    return it != ids.end() ? it->second : id;
}

}  // namespace

StringIds::StringIds(Database& part, StringTable* shared)
    : there_(part.has_table("StringIds")),
      lookup_(there_ ? std::make_unique<Statement>(part, "SELECT value FROM StringIds WHERE id = ?1")
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

// An unassigned device keeps its number where that is free, otherwise it gets the next one.
std::int64_t RowIds::device(std::int64_t device, std::int64_t pid) {
    if (new_devices == nullptr) return device;
    if (const auto it = devices.find({device, pid}); it != devices.end()) return it->second;
    // A further device of a rank's process stays distinct from another rank's device of the same number.
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
    auto it = domains.find({domain, serialized_thread & kPidMask});
    if (it == domains.end()) it = domains.find({domain, 0});
    return it != domains.end() ? it->second : domain;
}

std::int64_t RowIds::schema(std::int64_t domain, std::int64_t id) const {
    const auto it = schemas.find({domain, id});
    return it != schemas.end() ? it->second : id;
}

std::int64_t RowIds::map(ColumnRole role, std::int64_t value, std::int64_t pid) {
    switch (role) {
        case ColumnRole::time:
            return clock(value);
        case ColumnRole::time_or_zero:
            return value == 0 ? 0 : clock(value);
        case ColumnRole::string:
            return strings.map(value);
        case ColumnRole::correlation:
            return value == 0 ? 0 : moved(value, correlation_offset);
        case ColumnRole::range:
            return moved(value, range_offset);
        case ColumnRole::device:
            return device(value, pid);
        case ColumnRole::process:
        case ColumnRole::thread:
            return value == 0 ? 0 : process(value);
        case ColumnRole::machine:
            return machine(machine_of(value)) << 48;
        case ColumnRole::rank:
            return mapped(ranks, value);
        case ColumnRole::group:
            return mapped(groups, value);
        case ColumnRole::module:
            used_modules.insert(value);
            return moved(value, module_offset);
        case ColumnRole::module_payload:
            if (!known_modules.contains(value)) return value;
            used_modules.insert(value);
            return moved(value, module_offset);
        case ColumnRole::unit:
            used_units.insert(value);
            return moved(value, unit_offset);
        default:  // mapped by the copier, which knows the columns that they depend on; or unchanged
            return value;
    }
}

}  // namespace shardscope::traces
