// Maps the ids and times of one part to those of the file that is written. An id without an assignment stays
// as it is, so that empty maps make a plain copy (slice).
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

namespace shardscope::traces::merge {

struct Part;

// The texts of a part. They are looked up as rows need them, so that only used ones are written.
class StringIds {
  public:
    // With a shared table, texts get its ids; without one, they keep theirs.
    StringIds(store::Database& part, store::StringTable* shared);

    std::int64_t map(std::int64_t id);
    std::string_view text(std::int64_t id);  // valid until the next call

    // The part's ids that were looked up -> the file's.
    const std::unordered_map<std::int64_t, std::int64_t>& used() const { return known_; }

  private:
    const std::string& look_up(std::int64_t id);

    bool there_;
    std::unique_ptr<store::Statement> lookup_;
    store::StringTable* shared_;
    std::string text_;
    std::unordered_map<std::int64_t, std::int64_t> known_;
};

// Damaged files may hold any number; a sum that leaves the range of times and ids wraps around instead of
// being undefined.
constexpr std::int64_t moved(std::int64_t number, std::int64_t by) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(by));
}

// Maps a part's time to the file's time: t + shift + drift · (t - from).
struct ClockMap {
    std::int64_t shift = 0;
    double drift = 0;  // seconds that its clock loses against the reference per second
    std::int64_t from = 0;

    std::int64_t operator()(std::int64_t t) const {
        if (drift == 0) return moved(t, shift);
        return moved(moved(t, shift),
                     static_cast<std::int64_t>(drift * static_cast<double>(moved(t, -from))));
    }
};

class RowIds {
  public:
    RowIds(store::Database& part, store::StringTable* shared) : strings(part, shared) {}

    // `pid`: the row's process, for ids that are unique within a process only (-1 unknown).
    std::int64_t map(schema::ColumnRole role, std::int64_t value, std::int64_t pid);
    std::int64_t schema(std::int64_t domain, std::int64_t id) const;  // `domain`: in the file

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
    std::set<std::int64_t> known_modules;                 // ids in the part; other NVTX payloads are kept
    std::set<std::int64_t> rank_devices, rank_processes;  // the ranks' devices and processes
    std::set<std::int64_t>* new_devices = nullptr;        // devices of the file so far; null: ids stay
    std::set<std::int64_t> used_modules, used_units;      // ids of the part that rows referred to
};

// Schemas of binary NVTX payloads in a merged file. Static ids mean the same in every process; ids assigned
// at run time are unique within their process only, so that two parts may use one id for different layouts.
// Then the later part's schema, and whatever refers to it, gets a new id.
class PayloadIds {
  public:
    // Sets ids.schemas; ids.domains must be set.
    void assign(Part& part, RowIds& ids);

  private:
    using Key = std::pair<std::int64_t, std::int64_t>;  // (domain in the merged file, schema)
    std::map<Key, std::string> layouts_;                // of the merged file, as text
    std::int64_t next_ = std::int64_t{1} << 40;         // above the ids that programs get
};

}  // namespace shardscope::traces::merge
