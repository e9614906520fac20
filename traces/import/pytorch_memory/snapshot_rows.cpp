#include "traces/import/pytorch_memory/snapshot_rows.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/import/pytorch_memory/memory_snapshot.h"
#include "traces/import/pytorch_memory/snapshot_replay.h"
#include "traces/store/columns/address_ranges.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/memory_origin.h"
#include "traces/store/columns/names.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces::importer {
namespace {

constexpr std::string_view kOptimizerStep = "Optimizer.step#";  // PyTorch's annotation

std::string in_words(std::int64_t bytes) {
    return fmt::format("{:.2f} MiB ({} bytes)", static_cast<double>(bytes) / (1 << 20), bytes);
}

// The rows of one device, in the order of their times.
class DeviceRows {
  public:
    DeviceRows(const SnapshotDevice& device, int rank, std::int64_t start_us, store::EventSink& sink,
               Frames& frames)
        : device_(device), rank_(rank), start_us_(start_us), sink_(sink), frames_(frames) {}

    // Returns the time of the last event.
    std::int64_t write(bool cut) {
        last_ns_ = 0;
        find_what_lives_in_steps();
        if (!cut) write_what_was_before();
        annotations_ = device_.annotations.begin();
        for (std::size_t i = 0; i < device_.events.size(); ++i) {
            const SnapshotEvent& event = device_.events[i];
            const std::int64_t time = at(event.time_us);
            last_ns_ = std::max(last_ns_, time);
            open_.advance(annotations_, device_.annotations.end(), event.time_us);
            write(event, time, lives_in_step_[i]);
            const bool deferred = event.action == SnapshotAction::free_requested &&
                                  !(i + 1 < device_.events.size() && completes(device_.events[i + 1], event));
            if (deferred) keep(schema::AllocatorEventKind::free_requested, time, event);
        }
        for (const SnapshotSegment& segment : device_.segments) write(segment);
        write_steps();
        return std::max(last_ns_, write_annotations());
    }

  private:
    struct Allocation {
        schema::MemoryCategory category = schema::MemoryCategory::other;
        schema::StringId annotation = schema::StringId::empty, stack = schema::StringId::empty;
    };

    // Finds the allocations that are live when the optimizer steps: at the start of its annotation or, in a
    // snapshot without annotations, at an allocation that an optimizer makes.
    void find_what_lives_in_steps() {
        const auto is_step = [](const AnnotationEdge& edge) {
            return edge.start && edge.name.starts_with(kOptimizerStep);
        };
        auto edge = device_.annotations.begin();
        const auto last = device_.annotations.end();
        const bool annotated = std::any_of(edge, last, is_step);
        lives_in_step_.assign(device_.events.size(), false);
        std::unordered_map<std::uint64_t, std::size_t> live;  // address -> event; only those before any step
        const auto step = [&] {
            for (const auto& [address, event] : live) lives_in_step_[event] = true;
            live.clear();
            steps_ = true;
        };
        for (std::size_t i = 0; i < device_.events.size(); ++i) {
            const SnapshotEvent& event = device_.events[i];
            for (; edge != last && edge->time_us <= event.time_us; ++edge) {
                if (is_step(*edge)) step();
            }
            if (event.action == SnapshotAction::free) live.erase(event.address);
            if (event.action != SnapshotAction::allocate) continue;
            if (!annotated &&
                frames_.text(frames_.stack(event.frames)).find("torch/optim/") != std::string_view::npos)
                step();
            live[event.address] = i;
        }
        if (std::any_of(edge, last, is_step)) step();
    }

    std::int64_t at(std::int64_t time_us) const {
        return std::max<std::int64_t>(0, time_us - start_us_) * 1000;
    }

    void write_what_was_before() {
        BlockReplay blocks;
        store::AddressRanges segments;  // played backwards: `take` removes, `give_back` adds
        std::vector<Value> frames;
        for (const SnapshotBlock& block : device_.live) {
            blocks.lives_at_end({block.address, block.bytes, frames.size()});
            frames.push_back(block.frames);
        }
        for (const SnapshotSegment& segment : device_.segments) segments.add(segment.address, segment.bytes);
        const std::size_t unknown = frames.size();
        for (auto event = device_.events.rbegin(); event != device_.events.rend(); ++event) {
            if (event->action == SnapshotAction::allocate) blocks.allocated(event->address, event->bytes);
            if (event->action == SnapshotAction::free) blocks.freed({event->address, event->bytes, unknown});
            if (event->action == SnapshotAction::take) segments.remove(event->address, event->bytes);
            if (event->action == SnapshotAction::give_back) segments.add(event->address, event->bytes);
        }
        for (const auto& [start, end] : segments.ranges())
            hold(0, start, static_cast<std::int64_t>(end - start), -1);
        std::int64_t unexplained = blocks.bytes_before();
        // Without events the snapshot shows one moment, and no block is known to be older.
        const schema::StringId before =
            sink_.intern(device_.events.empty() ? std::string_view() : store::kBeforeRecording);
        for (const LiveBlock& block : blocks.before()) {
            Allocation allocation{.annotation = before};
            if (block.tag < unknown) tell_stack(allocation, frames[block.tag], steps_);
            allocate(0, block.address, block.bytes, allocation, -1);
            unexplained -= block.bytes;
        }
        if (unexplained > 0) {
            allocate(0, 0, unexplained, {.annotation = sink_.intern(store::kRoundingOfBlocks)}, -1);
        } else if (unexplained < 0) {
            sink_.add(schema::DiagnosticRow{
                0, schema::Severity::warning,
                fmt::format("device {}: {} bytes that the events allocate are neither freed "
                            "nor live at the end; they count as live",
                            device_.number, -unexplained)});
        }
        allocated_ = total_;
    }

    void write(const SnapshotEvent& event, std::int64_t time, bool in_step) {
        switch (event.action) {
            case SnapshotAction::allocate: {
                Allocation allocation;
                tell_annotation(allocation, event, in_step);
                tell_stack(allocation, event.frames, in_step);
                allocate(time, event.address, event.bytes, allocation, stream(event.stream));
                tell_allocated(time, event.bytes);
                break;
            }
            case SnapshotAction::free:
                // For a block whose free was requested before the recording began, only the completion is
                // recorded.
                if (requested_.erase(event.address) == 0) tell_allocated(time, -event.bytes);
                free(time, event.address, event.bytes, stream(event.stream));
                break;
            case SnapshotAction::take:
                hold(time, event.address, event.bytes, stream(event.stream));
                break;
            case SnapshotAction::give_back:
                hold(time, event.address, -event.bytes, stream(event.stream));
                break;
            case SnapshotAction::out_of_memory:
                tell_failure(event, time);
                keep(schema::AllocatorEventKind::failed, time, event);
                break;
            case SnapshotAction::free_requested:
                requested_.insert(event.address);
                tell_allocated(time, -event.bytes);
                break;
            case SnapshotAction::other:
                break;
        }
    }

    static bool completes(const SnapshotEvent& event, const SnapshotEvent& request) {
        return event.action == SnapshotAction::free && event.address == request.address;
    }

    // Writes an event that only a replay of the allocator needs.
    void keep(schema::AllocatorEventKind kind, std::int64_t time, const SnapshotEvent& event) {
        schema::AllocatorEventRow row{.time = time,
                                      .rank = rank_,
                                      .kind = kind,
                                      .address = event.address,
                                      .bytes = event.bytes,
                                      .stream = stream(event.stream)};
        if (kind == schema::AllocatorEventKind::failed) {
            row.address = 0;
            row.device_free = device_free(event);
        }
        sink_.add(row);
    }

    void write(const SnapshotSegment& segment) {
        sink_.add(schema::AllocatorEventRow{.time = last_ns_,
                                            .rank = rank_,
                                            .kind = schema::AllocatorEventKind::last_segment,
                                            .address = segment.address,
                                            .bytes = segment.bytes,
                                            .stream = stream(segment.stream),
                                            .pool = segment.pool,
                                            .small = segment.small});
    }

    static std::int64_t device_free(const SnapshotEvent& failure) {
        return static_cast<std::int64_t>(
            std::min(failure.address, static_cast<std::uint64_t>(kMostSnapshotBytes)));
    }

    static schema::MemoryCategory category(const store::OriginRule* rule, bool in_step) {
        if (rule == nullptr) return schema::MemoryCategory::other;
        return in_step ? rule->in_step.value_or(rule->category) : rule->category;
    }

    // `in_step`: the allocation is live when the optimizer steps.
    void tell_annotation(Allocation& allocation, const SnapshotEvent& event, bool in_step) {
        for (std::size_t i = open_.size(); i-- > 0 && allocation.category == schema::MemoryCategory::other;)
            allocation.category = category(store::rule_of_origin(open_[i]), in_step);
        if (open_.size() > 0) {
            allocation.annotation = sink_.intern(open_[open_.size() - 1]);
        } else if (!event.metadata.empty()) {
            allocation.annotation = sink_.intern(event.metadata);
        }
    }

    void tell_stack(Allocation& allocation, const Value& frames, bool in_step) {
        allocation.stack = frames_.stack(frames);
        if (allocation.stack == schema::StringId::empty ||
            allocation.category != schema::MemoryCategory::other)
            return;
        const auto [known, added] = rules_.try_emplace(allocation.stack, nullptr);
        if (added) known->second = store::rule_of_stack(frames_.text(allocation.stack));
        allocation.category = category(known->second, in_step);
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
        schema::MemoryRow row;
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
        sink_.add(schema::SegmentRow{
            .time = time, .rank = rank_, .address = address, .bytes = bytes, .stream = stream});
        reserved_ += bytes;
        sink_.add(schema::CounterRow{.time = time,
                                     .rank = rank_,
                                     .name = sink_.intern("reserved_bytes"),
                                     .value = static_cast<double>(reserved_)});
    }

    // In host order, as torch.cuda.memory_allocated(): a free counts when it is requested.
    void tell_allocated(std::int64_t time, std::int64_t bytes) {
        allocated_ += bytes;
        sink_.add(schema::CounterRow{.time = time,
                                     .rank = rank_,
                                     .name = sink_.intern("allocated_bytes"),
                                     .value = static_cast<double>(allocated_)});
    }

    void tell_failure(const SnapshotEvent& event, std::int64_t time) {
        Allocation allocation;
        tell_annotation(allocation, event, false);
        tell_stack(allocation, event.frames, false);
        std::string text = fmt::format("{}{}: requested {}; {} were active, {} reserved by the allocator",
                                       store::kOutOfMemory, rank_, in_words(event.bytes), in_words(total_),
                                       in_words(reserved_));
        const std::int64_t left = device_free(event);
        text += fmt::format(", {} free on the device", in_words(left));
        if (event.bytes > left) text += fmt::format(": {} were missing", in_words(event.bytes - left));
        if (reserved_ > total_)
            text += fmt::format("; of the reserved memory {} were cached, but no block was large enough",
                                in_words(reserved_ - total_));
        if (open_.size() > 0) text += fmt::format("; under {}", open_[open_.size() - 1]);
        if (const std::string_view place = store::asking_frame(frames_.text(allocation.stack));
            !place.empty())
            text += fmt::format("; at {}", place);
        sink_.add(schema::DiagnosticRow{time, schema::Severity::error, std::move(text)});
    }

    // In snapshots, streams are addresses; they are numbered in the order of their first use, the default one
    // is 0.
    int stream(std::uint64_t handle) {
        if (handle == 0) return 0;
        return streams_.try_emplace(handle, static_cast<int>(streams_.size()) + 1).first->second;
    }

    // Writes the training steps, if the program does not mark them itself (ProfilerStep#N): each ends with
    // the outermost Optimizer.step, which PyTorch annotates; the first begins with the first annotation.
    void write_steps() {
        const auto named = [](std::string_view name, const AnnotationEdge& e) {
            return e.name.starts_with(name);
        };
        const auto marked = [&](const AnnotationEdge& e) { return named("ProfilerStep#", e); };
        const auto first = device_.annotations.begin(), last = device_.annotations.end();
        if (std::any_of(first, last, marked)) return;
        schema::StepRow step{.rank = rank_, .global_tid = schema::global_tid(rank_ + 1, rank_ + 1)};
        int open = 0;
        for (auto edge = first; edge != last; ++edge) {
            if (edge == first) step.start = at(edge->time_us);
            if (!named(kOptimizerStep, *edge)) continue;
            open += edge->start ? 1 : -1;
            if (open < 0) open = 0;  // began before the recording
            if (edge->start || open > 0) continue;
            step.end = at(edge->time_us);
            sink_.add(step);
            ++step.step;
            step.start = step.end;
        }
        if (step.step == 0) return;
        sink_.add(schema::DiagnosticRow{
            0, schema::Severity::information,
            fmt::format("device {}: no step is marked; each ends with its Optimizer.step", device_.number)});
    }

    std::int64_t write_annotations() {
        std::int64_t end = device_.annotations.last_us();
        if (!device_.events.empty()) end = std::max(end, device_.events.back().time_us);
        const schema::StringId domain = sink_.intern(store::kAnnotationDomain);
        const std::int64_t thread = schema::global_tid(rank_ + 1, rank_ + 1);
        device_.annotations.for_each_range(
            end, [&](std::int64_t from, std::int64_t to, std::string_view name) {
                schema::RangeRow row;
                row.start = at(from);
                row.end = at(to);
                row.event_type = schema::kNvtxStartEnd;  // ranges of several threads need not nest
                row.text = sink_.intern(name);
                row.domain = domain;
                row.global_tid = thread;
                sink_.add(row);
            });
        return at(end);
    }

    const SnapshotDevice& device_;
    int rank_;
    std::int64_t start_us_;
    store::EventSink& sink_;
    Frames& frames_;
    AnnotationList::Position annotations_;
    OpenAnnotations open_;
    std::unordered_map<std::uint64_t, Allocation> live_;
    std::unordered_map<schema::StringId, const store::OriginRule*> rules_;  // by stack
    std::vector<bool> lives_in_step_;                                       // by event
    bool steps_ = false;  // whether an optimizer steps in the recording
    std::unordered_map<std::uint64_t, int> streams_;
    std::unordered_set<std::uint64_t> requested_;  // addresses whose free was requested, not completed
    std::int64_t total_ = 0, allocated_ = 0, reserved_ = 0, last_ns_ = 0;
};

}  // namespace

std::int64_t write_snapshot_rows(const SnapshotDevice& device, int rank, std::int64_t start_us, bool cut,
                                 store::EventSink& sink, Frames& frames) {
    return DeviceRows(device, rank, start_us, sink, frames).write(cut);
}

}  // namespace shardscope::traces::importer
