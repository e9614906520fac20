// See memory_snapshot.h.
#include "traces/import/memory_snapshot.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/import/annotations.h"
#include "traces/import/frames.h"
#include "traces/import/snapshot_replay.h"
#include "traces/store/address_ranges.h"
#include "traces/store/memory_facts.h"
#include "traces/store/memory_origin.h"
#include "traces/store/names.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces {
namespace {

// No device has 16 TiB; a larger size is damage, and sums of smaller ones stay far from overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 44;
// Microseconds since 1970 that nanoseconds can hold.
constexpr std::int64_t kMostTime = std::int64_t{9'000'000'000'000'000};

enum class Action : std::uint8_t { allocate, free_requested, free, take, give_back, out_of_memory, other };

Action action_of(std::string_view text) {
    static constexpr std::pair<std::string_view, Action> kActions[] = {
        {"alloc", Action::allocate},          {"free_requested", Action::free_requested},
        {"free_completed", Action::free},     {"segment_alloc", Action::take},
        {"segment_map", Action::take},        {"segment_free", Action::give_back},
        {"segment_unmap", Action::give_back}, {"oom", Action::out_of_memory},
    };
    for (const auto& [name, action] : kActions) {
        if (name == text) return action;
    }
    return Action::other;  // "snapshot" and what later versions add
}

struct Event {
    Action action = Action::other;
    std::uint64_t address = 0;  // of out_of_memory: what the device had free
    std::int64_t bytes = 0;
    std::int64_t time_us = 0;
    std::uint64_t stream = 0;
    Value frames;
    std::string_view metadata;
};

struct Block {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    Value frames;
};

// All that the snapshot tells of one device.
struct Device {
    int number = 0;
    std::vector<Event> events;
    std::vector<Block> live;  // at the end
    std::vector<std::pair<std::uint64_t, std::int64_t>> segments;
    AnnotationList annotations;
    std::int64_t skipped = 0;  // entries that cannot be understood
    bool timed = true;

    bool empty() const { return events.empty() && live.empty() && segments.empty(); }
};

std::optional<std::int64_t> size_of(const Value& value) {
    const auto bytes = value.integer();
    return bytes && *bytes >= 0 && *bytes <= kMostBytes ? bytes : std::nullopt;
}

std::optional<std::int64_t> time_of(const Value& value) {
    const auto us = value.integer();
    return us && *us > 0 && *us <= kMostTime ? us : std::nullopt;
}

// --- what the values say ---------------------------------------------------------------------------------

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

    std::vector<Device> take() {
        std::vector<Device> devices;
        for (auto& [number, device] : devices_) {
            if (!device.empty()) devices.push_back(std::move(device));
        }
        return devices;
    }

  private:
    static constexpr std::size_t kMostDevices = 4096;

    Device& device(std::int64_t number) {
        const bool known = number >= 0 && number < static_cast<std::int64_t>(kMostDevices);
        Device& device = devices_[known ? static_cast<int>(number) : 0];
        device.number = known ? static_cast<int>(number) : 0;
        return device;
    }

    void add_segment(const Value& segment) {
        Device& owner = device(segment["device"].integer().value_or(0));
        const auto start = segment["address"].address();
        const auto size = size_of(segment["total_size"]);
        if (!start || !size) {
            ++owner.skipped;
            return;
        }
        owner.segments.emplace_back(*start, *size);
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
            // Before PyTorch 2.1 a block has a history, its latest part first.
            const Value frames = block["frames"].is_list() ? block["frames"] : block["history"][0]["frames"];
            owner.live.push_back({address, *bytes, frames});
        }
    }

    static void add_event(Device& device, const Value& entry) {
        Event event;
        event.action = action_of(entry["action"].text());
        if (event.action == Action::other) return;
        const bool failed = event.action == Action::out_of_memory;
        const auto address = entry[failed ? "device_free" : "addr"].address();
        const auto bytes = size_of(entry["size"]);
        if (!bytes || (!address && !failed)) {
            ++device.skipped;
            return;
        }
        event.address = address.value_or(0);
        event.bytes = *bytes;
        event.time_us = time_of(entry["time_us"]).value_or(0);
        event.stream = entry["stream"].address().value_or(0);
        event.frames = entry["frames"];
        event.metadata = entry["user_metadata"].text();
        device.events.push_back(event);
    }

    void add_annotation(const Value& entry) {
        const auto time = time_of(entry["time_us"]);
        const std::string_view stage = entry["stage"].text();
        Device& owner = device(entry["device"].integer().value_or(0));
        if (!time || (stage != "START" && stage != "END")) {
            ++owner.skipped;
            return;
        }
        owner.annotations.add(*time, stage == "START", entry["name"].text());
    }

    // Times never go back; where there are none, an event takes 1 us.
    static void set_times(Device& device) {
        device.timed = std::any_of(device.events.begin(), device.events.end(),
                                   [](const Event& e) { return e.time_us > 0; });
        std::int64_t last = 0;
        for (Event& event : device.events) {
            event.time_us = device.timed ? std::max(event.time_us, last) : last + 1;
            last = event.time_us;
        }
        device.annotations.sort();
    }

    std::map<int, Device> devices_;
};

// --- rows ------------------------------------------------------------------------------------------------

std::string in_words(std::int64_t bytes) {
    return fmt::format("{:.2f} MB ({} bytes)", static_cast<double>(bytes) / (1 << 20), bytes);
}

// The rows of one device, in the order of their times.
class DeviceRows {
  public:
    DeviceRows(const Device& device, int rank, std::int64_t start_us, EventSink& sink, Frames& frames)
        : device_(device), rank_(rank), start_us_(start_us), sink_(sink), frames_(frames) {}

    // Returns when the last thing happened.
    std::int64_t write(bool cut) {
        last_ns_ = 0;
        if (!cut) write_what_was_before();
        annotations_ = device_.annotations.begin();
        for (const Event& event : device_.events) {
            const std::int64_t time = at(event.time_us);
            last_ns_ = std::max(last_ns_, time);
            open_.advance(annotations_, device_.annotations.end(), event.time_us);
            write(event, time);
        }
        return std::max(last_ns_, write_annotations());
    }

  private:
    struct Allocation {
        MemoryCategory category = MemoryCategory::other;
        StringId annotation = StringId::empty, stack = StringId::empty;
    };

    std::int64_t at(std::int64_t time_us) const {
        return std::max<std::int64_t>(0, time_us - start_us_) * 1000;
    }

    void write_what_was_before() {
        BlockReplay blocks;
        AddressRanges segments;  // backwards: what was taken is not there before
        std::vector<Value> frames;
        for (const Block& block : device_.live) {
            blocks.lives_at_end({block.address, block.bytes, frames.size()});
            frames.push_back(block.frames);
        }
        for (const auto& [address, bytes] : device_.segments) segments.add(address, bytes);
        const std::size_t unknown = frames.size();
        for (auto event = device_.events.rbegin(); event != device_.events.rend(); ++event) {
            if (event->action == Action::allocate) blocks.allocated(event->address, event->bytes);
            if (event->action == Action::free) blocks.freed({event->address, event->bytes, unknown});
            if (event->action == Action::take) segments.remove(event->address, event->bytes);
            if (event->action == Action::give_back) segments.add(event->address, event->bytes);
        }
        for (const auto& [start, end] : segments.ranges())
            hold(0, start, static_cast<std::int64_t>(end - start), -1);
        std::int64_t unexplained = blocks.bytes_before();
        // Without any event the snapshot shows one moment, before which nothing is.
        const StringId before = sink_.intern(device_.events.empty() ? std::string_view() : kBeforeRecording);
        for (const LiveBlock& block : blocks.before()) {
            Allocation allocation{.annotation = before};
            if (block.tag < unknown) tell_stack(allocation, frames[block.tag]);
            allocate(0, block.address, block.bytes, allocation, -1);
            unexplained -= block.bytes;
        }
        if (unexplained > 0) {
            allocate(0, 0, unexplained, {.annotation = sink_.intern(kRoundingOfBlocks)}, -1);
        } else if (unexplained < 0) {
            sink_.add(
                DiagnosticRow{0, Severity::warning,
                              fmt::format("device {}: {} bytes that the events allocate are neither freed "
                                          "nor live at the end; they count as live",
                                          device_.number, -unexplained)});
        }
        allocated_ = total_;
    }

    void write(const Event& event, std::int64_t time) {
        switch (event.action) {
            case Action::allocate: {
                Allocation allocation;
                tell_annotation(allocation, event);
                tell_stack(allocation, event.frames);
                allocate(time, event.address, event.bytes, allocation, stream(event.stream));
                tell_allocated(time, event.bytes);
                break;
            }
            case Action::free:
                // Of what was already given back when the recording began only the end is told.
                if (requested_.erase(event.address) == 0) tell_allocated(time, -event.bytes);
                free(time, event.address, event.bytes, stream(event.stream));
                break;
            case Action::take:
                hold(time, event.address, event.bytes, stream(event.stream));
                break;
            case Action::give_back:
                hold(time, event.address, -event.bytes, stream(event.stream));
                break;
            case Action::out_of_memory:
                tell_failure(event, time);
                break;
            case Action::free_requested:
                requested_.insert(event.address);
                tell_allocated(time, -event.bytes);
                break;
            case Action::other:
                break;
        }
    }

    void tell_annotation(Allocation& allocation, const Event& event) {
        for (std::size_t i = open_.size(); i-- > 0 && allocation.category == MemoryCategory::other;)
            allocation.category = category_of_origin(open_[i]);
        if (open_.size() > 0) {
            allocation.annotation = sink_.intern(open_[open_.size() - 1]);
        } else if (!event.metadata.empty()) {
            allocation.annotation = sink_.intern(event.metadata);
        }
    }

    void tell_stack(Allocation& allocation, const Value& frames) {
        allocation.stack = frames_.stack(frames);
        if (allocation.stack == StringId::empty || allocation.category != MemoryCategory::other) return;
        const auto [known, added] = categories_.try_emplace(allocation.stack, MemoryCategory::other);
        if (added) known->second = category_of_stack(frames_.text(allocation.stack));
        allocation.category = known->second;
    }

    void allocate(std::int64_t time, std::uint64_t address, std::int64_t bytes, const Allocation& allocation,
                  int stream) {
        live_[address] = allocation;
        total_ += bytes;
        add(time, address, bytes, allocation, stream);
    }

    void free(std::int64_t time, std::uint64_t address, std::int64_t bytes, int stream) {
        Allocation allocation;
        if (const auto at = live_.find(address); at != live_.end()) {
            allocation = at->second;
            live_.erase(at);
        }
        total_ -= bytes;
        add(time, address, -bytes, allocation, stream);
    }

    void add(std::int64_t time, std::uint64_t address, std::int64_t bytes, const Allocation& allocation,
             int stream) {
        if (bytes == 0) return;
        MemoryRow row;
        row.time = time;
        row.rank = rank_;
        row.address = address;
        row.bytes = bytes;
        row.category = allocation.category;
        row.stream = stream;
        row.annotation = allocation.annotation;
        row.stack = allocation.stack;
        sink_.add(row);
    }

    void hold(std::int64_t time, std::uint64_t address, std::int64_t bytes, int stream) {
        if (bytes == 0) return;
        sink_.add(
            SegmentRow{.time = time, .rank = rank_, .address = address, .bytes = bytes, .stream = stream});
        reserved_ += bytes;
        sink_.add(CounterRow{.time = time,
                             .rank = rank_,
                             .name = sink_.intern("reserved_bytes"),
                             .value = static_cast<double>(reserved_)});
    }

    // In the host's order, as torch.cuda.memory_allocated() says: a free counts when it is requested.
    void tell_allocated(std::int64_t time, std::int64_t bytes) {
        allocated_ += bytes;
        sink_.add(CounterRow{.time = time,
                             .rank = rank_,
                             .name = sink_.intern("allocated_bytes"),
                             .value = static_cast<double>(allocated_)});
    }

    void tell_failure(const Event& event, std::int64_t time) {
        Allocation allocation;
        tell_annotation(allocation, event);
        tell_stack(allocation, event.frames);
        std::string text =
            fmt::format("{}{}: asked for {}; {} were active, {} held by the allocator", kOutOfMemory, rank_,
                        in_words(event.bytes), in_words(total_), in_words(reserved_));
        const std::int64_t device_free =
            static_cast<std::int64_t>(std::min(event.address, static_cast<std::uint64_t>(kMostBytes)));
        text += fmt::format(", {} free on the device", in_words(device_free));
        if (open_.size() > 0) text += fmt::format("; under {}", open_[open_.size() - 1]);
        if (const std::string_view place = asking_frame(frames_.text(allocation.stack)); !place.empty())
            text += fmt::format("; at {}", place);
        sink_.add(DiagnosticRow{time, Severity::error, std::move(text)});
    }

    // Streams are addresses there; numbered in the order of their first use, the default one is 0.
    int stream(std::uint64_t handle) {
        if (handle == 0) return 0;
        return streams_.try_emplace(handle, static_cast<int>(streams_.size()) + 1).first->second;
    }

    std::int64_t write_annotations() {
        std::int64_t end = device_.annotations.last_us();
        if (!device_.events.empty()) end = std::max(end, device_.events.back().time_us);
        const StringId domain = sink_.intern(kAnnotationDomain);
        const std::int64_t thread = global_tid(rank_ + 1, rank_ + 1);
        device_.annotations.for_each_range(
            end, [&](std::int64_t from, std::int64_t to, std::string_view name) {
                RangeRow row;
                row.start = at(from);
                row.end = at(to);
                row.event_type = kNvtxStartEnd;  // of several threads: they need not nest
                row.text = sink_.intern(name);
                row.domain = domain;
                row.global_tid = thread;
                sink_.add(row);
            });
        return at(end);
    }

    const Device& device_;
    int rank_;
    std::int64_t start_us_;
    EventSink& sink_;
    Frames& frames_;
    AnnotationList::Position annotations_;
    OpenAnnotations open_;
    std::unordered_map<std::uint64_t, Allocation> live_;
    std::unordered_map<StringId, MemoryCategory> categories_;  // by stack
    std::unordered_map<std::uint64_t, int> streams_;
    std::unordered_set<std::uint64_t> requested_;  // addresses whose free was requested, not completed
    std::int64_t total_ = 0, allocated_ = 0, reserved_ = 0, last_ns_ = 0;
};

// The settings of the allocator, as the run's configuration.
void write_settings(const Value& root, EventSink& sink) {
    const Value settings = root["allocator_settings"];
    for (std::size_t i = 0; i < settings.size() && i < 100; ++i) {
        const std::string key = "allocator." + std::string(settings.key(i).text());
        const Value value = settings.value(i);
        if (value.is_text() && !value.text().empty()) sink.add(RunInfoRow{key, std::string(value.text())});
        if (value.kind() == ValueKind::boolean)
            sink.add(RunInfoRow{key, value.integer() == 1 ? "true" : "false"});
        if (value.kind() == ValueKind::integer && value.integer())
            sink.add(RunInfoRow{key, std::to_string(*value.integer())});
        if (value.kind() == ValueKind::real) sink.add(RunInfoRow{key, fmt::format("{}", *value.real())});
    }
}

// Of the devices of one file among several only one can be its rank's: the one with the most history.
void keep_busiest(std::vector<Device>& devices, EventSink& sink) {
    const auto busiest = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
        return std::pair(a.events.size(), a.live.size()) < std::pair(b.events.size(), b.live.size());
    });
    std::swap(devices.front(), *busiest);
    for (std::size_t i = 1; i < devices.size(); ++i) {
        sink.add(DiagnosticRow{0, Severity::warning,
                               fmt::format("device {} of a snapshot was left out ({} events): among several "
                                           "files each is one rank; open it alone to see it",
                                           devices[i].number, devices[i].events.size())});
    }
    devices.resize(1);
}

void tell_doubts(const Device& device, bool cut, EventSink& sink) {
    const auto tell = [&](Severity severity, const std::string& text) {
        sink.add(DiagnosticRow{0, severity, fmt::format("device {}: {}", device.number, text)});
    };
    if (device.skipped > 0) {
        tell(
            Severity::warning,
            fmt::format("{} entries of the snapshot cannot be understood and were left out", device.skipped));
    }
    if (device.events.empty()) {
        tell(Severity::information,
             "the snapshot has no history and shows one moment; record with "
             "torch.cuda.memory._record_memory_history()");
    } else if (!device.timed) {
        tell(Severity::information, "the snapshot has no times; each event counts for 1 us");
    }
    if (cut) {
        tell(Severity::warning,
             "the snapshot was cut off: what lived before its first event is not known and not counted");
    }
}

}  // namespace

bool is_memory_snapshot(const Value& root) {
    if (root.is_dictionary()) return root["segments"].is_list() || root["device_traces"].is_list();
    return root.is_list() && root[0].is_dictionary() && root[0]["total_size"].integer().has_value();
}

FileFacts read_memory_snapshot(const Value& root, bool cut, const std::string& path, EventSink& sink,
                               const FileRequest& request) {
    std::vector<Device> devices = SnapshotValues(root).take();
    if (devices.empty()) {
        throw StoreError(
            fmt::format("{}: the memory snapshot holds no segment and no event; take it while the program "
                        "holds memory of a device",
                        path));
    }
    sink.add(RunInfoRow{"import.format", "pytorch_memory_snapshot"});
    sink.add(RunInfoRow{std::string(kMemoryCountedKey), std::string(kMemoryCountedActive)});
    write_settings(root, sink);
    if (request.one_of_several && devices.size() > 1) keep_busiest(devices, sink);

    std::optional<std::int64_t> start_us;
    bool timed = false;
    for (const Device& device : devices) {
        for (const auto first :
             {device.events.empty() ? std::nullopt : std::optional(device.events[0].time_us),
              device.annotations.first_us()}) {
            if (first && (!start_us || *first < *start_us)) start_us = first;
        }
        timed = timed || (device.timed && !device.events.empty());
    }
    FileFacts facts;
    facts.rows_rank = request.rank;
    facts.partial = cut;
    if (timed) facts.start_utc_ns = *start_us * 1000;
    Frames frames(sink);
    for (const Device& device : devices) {
        const int rank = devices.size() == 1 ? request.rank : device.number;
        const std::int64_t pid = rank + 1, thread = global_tid(pid, pid);
        sink.add(RankRow{.rank = rank,
                         .device = rank,
                         .global_pid = global_pid(pid),
                         .global_tid = thread,
                         .host = {},
                         .device_name = fmt::format("device {}", device.number)});
        sink.add(ThreadRow{.global_tid = thread, .name = "annotations", .rank = rank});
        tell_doubts(device, cut, sink);
        DeviceRows rows(device, rank, start_us.value_or(0), sink, frames);
        facts.last_ns = std::max(facts.last_ns, rows.write(cut));
    }
    return facts;
}

}  // namespace shardscope::traces
