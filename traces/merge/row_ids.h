// What the ids and times of one part become in the file that is written. An id that nobody assigned stays as
// it is; so empty maps are a plain copy (slice).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/schema/column_roles.h"
#include "traces/store/columns/trace.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {

// Texts of a part, looked up as rows need them, so that only used ones are written.
class StringIds {
  public:
    // With a table, texts get its ids; without, they keep theirs.
    StringIds(Database& part, StringTable* shared);

    std::int64_t map(std::int64_t id);
    std::string_view text(std::int64_t id);  // valid until the next call

    // Ids of the part that were asked for.
    const std::unordered_map<std::int64_t, std::int64_t>& used() const { return known_; }

  private:
    const std::string& look_up(std::int64_t id);

    bool there_;
    std::unique_ptr<Statement> lookup_;
    StringTable* shared_;
    std::string text_;
    std::unordered_map<std::int64_t, std::int64_t> known_;
};

// Damaged files hold any number; what leaves the range of times and ids wraps round instead of being
// undefined.
constexpr std::int64_t moved(std::int64_t number, std::int64_t by) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(by));
}

// Time of a part -> time of the file: t + shift + drift · (t - from).
struct ClockMap {
    std::int64_t shift = 0;
    double drift = 0;  // what its clock loses against the reference in each second, in seconds
    std::int64_t from = 0;

    std::int64_t operator()(std::int64_t t) const {
        if (drift == 0) return moved(t, shift);
        return moved(moved(t, shift),
                     static_cast<std::int64_t>(drift * static_cast<double>(moved(t, -from))));
    }
};

class RowIds {
  public:
    RowIds(Database& part, StringTable* shared) : strings(part, shared) {}

    // Beside the value: the row's process, for ids that count within one (-1 unknown).
    std::int64_t map(ColumnRole role, std::int64_t value, std::int64_t pid);
    std::int64_t schema(std::int64_t domain, std::int64_t id) const;  // `domain`: the file's

    std::int64_t process(std::int64_t serialized) const;  // or thread
    std::int64_t machine(std::int64_t number) const;
    std::int64_t device(std::int64_t device, std::int64_t pid);
    std::int64_t domain(std::int64_t domain, std::int64_t serialized_thread) const;

    StringIds strings;
    ClockMap clock;
    std::map<std::int64_t, std::int64_t> machines, ranks, groups;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> devices;  // (device, pid, -1 any) -> device
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> domains;  // (domain, process, 0 any)
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> schemas;  // (the file's domain, schema)
    std::int64_t correlation_offset = 0, range_offset = 0, module_offset = 0, unit_offset = 0;
    std::set<std::int64_t> known_modules;  // ids in the part; NVTX payloads that are none are kept
    std::set<std::int64_t> rank_devices, rank_processes;  // of `devices`, those of ranks, and their processes
    std::set<std::int64_t>* new_devices = nullptr;        // devices that the file has; null: ids stay
    std::set<std::int64_t> used_modules, used_units;      // ids of the part that rows referred to
};

}  // namespace shardscope::traces
