// The content of a memory snapshot for each device, validated: sizes that a device can have, times that never
// go back. Sizes are in bytes, times in microseconds since 1970. Internal to the library.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/import/json/value_tree.h"
#include "traces/import/pytorch_memory/annotations.h"

namespace shardscope::traces::importer {

// No device has 16 TiB; a larger size is damage, and sums of smaller ones stay far from overflow.
inline constexpr std::int64_t kMostSnapshotBytes = std::int64_t{1} << 44;

enum class SnapshotAction : std::uint8_t {
    allocate,
    free_requested,
    free,
    take,
    give_back,
    out_of_memory,
    other
};

struct SnapshotEvent {
    SnapshotAction action = SnapshotAction::other;
    std::uint64_t address = 0;  // for out_of_memory: the device's free bytes
    std::int64_t bytes = 0;
    std::int64_t time_us = 0;
    std::uint64_t stream = 0;
    Value frames;
    std::string_view metadata;
};

struct SnapshotBlock {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    Value frames;
};

struct SnapshotSegment {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::uint64_t stream = 0;
    int pool = 0;        // the number of its private pool; 0: the common one
    bool small = false;  // serves requests up to 1 MiB
};

// All that the snapshot contains for one device.
struct SnapshotDevice {
    int number = 0;
    std::vector<SnapshotEvent> events;
    std::vector<SnapshotBlock> live;        // at the end
    std::vector<SnapshotSegment> segments;  // at the end
    AnnotationList annotations;
    std::int64_t skipped = 0;  // number of entries that cannot be understood
    bool timed = true;

    bool empty() const { return events.empty() && live.empty() && segments.empty(); }
};

// Whether a list of blocks or events is shared by several places, which no snapshot needs: 200,000 events
// shared by 400 devices would be a file of 400 KiB and 80 million rows.
bool shares_rows(const Value& root);

// The devices with any content, by number. Views and values belong to `root`'s tree.
std::vector<SnapshotDevice> snapshot_devices(const Value& root);

}  // namespace shardscope::traces::importer
