#include "traces/import/pytorch_memory/snapshot_values.h"

#include <algorithm>
#include <map>
#include <optional>

namespace shardscope::traces::importer {
namespace {

// The largest time in microseconds since 1970 that nanoseconds can represent.
constexpr std::int64_t kMostTimeUs = std::int64_t{9'000'000'000'000'000};

SnapshotAction action_of(std::string_view text) {
    static constexpr std::pair<std::string_view, SnapshotAction> kActions[] = {
        {"alloc", SnapshotAction::allocate},          {"free_requested", SnapshotAction::free_requested},
        {"free_completed", SnapshotAction::free},     {"segment_alloc", SnapshotAction::take},
        {"segment_map", SnapshotAction::take},        {"segment_free", SnapshotAction::give_back},
        {"segment_unmap", SnapshotAction::give_back}, {"oom", SnapshotAction::out_of_memory},
    };
    for (const auto& [name, action] : kActions) {
        if (name == text) return action;
    }
    return SnapshotAction::other;  // "snapshot" and actions that later versions add
}

std::optional<std::int64_t> size_of(const Value& value) {
    const auto bytes = value.integer();
    return bytes && *bytes >= 0 && *bytes <= kMostSnapshotBytes ? bytes : std::nullopt;
}

std::optional<std::int64_t> time_us_of(const Value& value) {
    const auto us = value.integer();
    return us && *us > 0 && *us <= kMostTimeUs ? us : std::nullopt;
}

class SnapshotValues {
  public:
    explicit SnapshotValues(const Value& root) {
        // Before PyTorch 2.0 the snapshot was the list of segments alone.
        const Value segments = root.is_list() ? root : root["segments"];
        for (std::size_t i = 0; i < segments.size(); ++i) add_segment(segments[i]);
        const Value traces = root["device_traces"];
        for (std::size_t i = 0; i < traces.size() && i < kMostDevices; ++i) {
            for (std::size_t e = 0; e < traces[i].size(); ++e)
                add_event(device(static_cast<std::int64_t>(i)), traces[i][e]);
        }
        const Value annotations = root["external_annotations"];
        for (std::size_t i = 0; i < annotations.size(); ++i) add_annotation(annotations[i]);
        for (auto& [number, device] : devices_) set_times(device);
    }

    std::vector<SnapshotDevice> take() {
        std::vector<SnapshotDevice> devices;
        for (auto& [number, device] : devices_) {
            if (!device.empty()) devices.push_back(std::move(device));
        }
        return devices;
    }

  private:
    static constexpr std::size_t kMostDevices = 4096;

    SnapshotDevice& device(std::int64_t number) {
        const bool known = number >= 0 && number < static_cast<std::int64_t>(kMostDevices);
        SnapshotDevice& device = devices_[known ? static_cast<int>(number) : 0];
        device.number = known ? static_cast<int>(number) : 0;
        return device;
    }

    void add_segment(const Value& segment) {
        SnapshotDevice& owner = device(segment["device"].integer().value_or(0));
        const auto start = segment["address"].address();
        const auto size = size_of(segment["total_size"]);
        if (!start || !size) {
            ++owner.skipped;
            return;
        }
        owner.segments.push_back({*start, *size, segment["stream"].address().value_or(0),
                                  pool_of(segment["segment_pool_id"]),
                                  segment["segment_type"].text() == "small"});
        const Value blocks = segment["blocks"];
        std::uint64_t next = *start;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const Value block = blocks[i];
            const auto bytes = size_of(block["size"]);
            if (!bytes) {
                ++owner.skipped;
                continue;
            }
            const std::uint64_t address = block["address"].address().value_or(next);
            next = address + static_cast<std::uint64_t>(*bytes);
            if (!block["state"].text().starts_with("active")) continue;
            // Before PyTorch 2.1 a block has a history, latest entry first.
            const Value frames = block["frames"].is_list() ? block["frames"] : block["history"][0]["frames"];
            owner.live.push_back({address, *bytes, frames});
        }
    }

    // A pool is named by two numbers, the common one by (0, 0).
    int pool_of(const Value& id) {
        const std::pair name(id[0].integer().value_or(0), id[1].integer().value_or(0));
        if (name == std::pair<std::int64_t, std::int64_t>()) return 0;
        return pools_.try_emplace(name, static_cast<int>(pools_.size()) + 1).first->second;
    }

    static void add_event(SnapshotDevice& device, const Value& entry) {
        SnapshotEvent event;
        event.action = action_of(entry["action"].text());
        if (event.action == SnapshotAction::other) return;
        const bool failed = event.action == SnapshotAction::out_of_memory;
        const auto address = entry[failed ? "device_free" : "addr"].address();
        const auto bytes = size_of(entry["size"]);
        if (!bytes || (!address && !failed)) {
            ++device.skipped;
            return;
        }
        event.address = address.value_or(0);
        event.bytes = *bytes;
        event.time_us = time_us_of(entry["time_us"]).value_or(0);
        event.stream = entry["stream"].address().value_or(0);
        event.frames = entry["frames"];
        event.metadata = entry["user_metadata"].text();
        device.events.push_back(event);
    }

    void add_annotation(const Value& entry) {
        const auto time = time_us_of(entry["time_us"]);
        const std::string_view stage = entry["stage"].text();
        SnapshotDevice& owner = device(entry["device"].integer().value_or(0));
        if (!time || (stage != "START" && stage != "END")) {
            ++owner.skipped;
            return;
        }
        owner.annotations.add(*time, stage == "START", entry["name"].text());
    }

    // Times never go back; if there are none, an event takes 1 us.
    static void set_times(SnapshotDevice& device) {
        device.timed = std::any_of(device.events.begin(), device.events.end(),
                                   [](const SnapshotEvent& e) { return e.time_us > 0; });
        std::int64_t last = 0;
        for (SnapshotEvent& event : device.events) {
            event.time_us = device.timed ? std::max(event.time_us, last) : last + 1;
            last = event.time_us;
        }
        device.annotations.sort();
    }

    std::map<int, SnapshotDevice> devices_;
    std::map<std::pair<std::int64_t, std::int64_t>, int> pools_;
};

}  // namespace

bool shares_rows(const Value& root) {
    constexpr std::size_t kMostKeys = 64;  // of an event; each lookup searches all of them
    const std::size_t most = root.items_of_tree();
    std::size_t rows = 0;
    const auto count_wide = [&](const Value& value) {
        if (value.is_dictionary() && value.size() > kMostKeys) rows += value.size();
        return rows <= most;
    };
    const auto all_within = [&](const Value& lists, auto rows_of) {
        for (std::size_t i = 0; i < lists.size(); ++i) {
            if (!count_wide(lists[i])) return false;
            const Value items = rows_of(lists[i]);
            rows += 1 + items.size();
            for (std::size_t k = 0; k < items.size() && rows <= most; ++k) count_wide(items[k]);
            if (rows > most) return false;
        }
        return true;
    };
    return !all_within(root.is_list() ? root : root["segments"], [](const Value& segment) {
        return segment["blocks"];
    }) || !all_within(root["device_traces"], [](const Value& trace) { return trace; });
}

std::vector<SnapshotDevice> snapshot_devices(const Value& root) {
    return SnapshotValues(root).take();
}

}  // namespace shardscope::traces::importer
