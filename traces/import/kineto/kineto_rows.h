// Turns the events of a Chrome trace, Kineto's or another tracer's, into rows. docs/formats.md lists which
// versions have which field. Owns the events that must wait for others; all else goes straight to the sink.
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/input/importer.h"
#include "traces/import/kineto/chrome_ranges.h"
#include "traces/import/kineto/kineto_collectives.h"
#include "traces/import/kineto/kineto_names.h"
#include "traces/import/kineto/our_metadata.h"
#include "traces/import/kineto/trace_actors.h"
#include "traces/import/kineto/trace_event.h"
#include "traces/import/kineto/trace_head.h"

namespace shardscope::traces::importer {

class KinetoRows final : public EventHandler {
  public:
    KinetoRows(store::EventSink& sink, const FileRequest& request, const TraceHead& head);

    void event(const TraceEvent& event) override;
    void metadata(std::string_view key, JsonScalar value) override;
    // Whether any element was an event of a Chrome trace, that is, had a phase.
    bool any_phase() const { return any_phase_; }
    // Called after the last event: writes the rows that still waited; returns the facts of the file.
    FileFacts finish();

  private:
    struct Times {
        std::int64_t start = 0, end = 0;
    };
    struct LinkEnd {
        std::int64_t thread = 0, time = 0;
        bool from = false;
    };
    struct KnownCategory {
        std::string text;
        EventCategory category = EventCategory::other;
    };

    bool read_time(const TraceEvent& event, std::int64_t& time);
    bool read_times(const TraceEvent& event, Times& times);
    EventCategory category(std::string_view text);
    schema::StringId detail(const TraceEvent& event);
    std::int64_t external_id(const TraceEvent& event) const;

    void complete(const TraceEvent& event);
    void range(const TraceEvent& event, EventCategory category, const Times& times);
    void call(const TraceEvent& event, EventCategory category, const Times& times);
    void kernel(const TraceEvent& event, const Times& times);
    void copy(const TraceEvent& event, const Times& times);
    void set(const TraceEvent& event, const Times& times);
    void synchronization(const TraceEvent& event, const Times& times);
    void overhead(const TraceEvent& event, const Times& times);
    void memory(const TraceEvent& event, std::int64_t time);
    void mark(const TraceEvent& event);
    void counters(const TraceEvent& event);
    void sample(const TraceEvent& event);
    void link(const TraceEvent& event);
    void names(const TraceEvent& event);

    // The place of a device event, its correlation and the operator that launched it.
    struct DeviceFacts {
        TraceActors::Place place;
        std::int64_t correlation = 0, external_id = 0, global_pid = 0;
    };
    DeviceFacts device_facts(const TraceEvent& event);
    template <typename Row>
    Row device_row(const TraceEvent& event, const Times& times, const DeviceFacts& facts) const;

    void device_properties(std::string_view json);
    void distributed_info(std::string_view json);
    void ours(std::string_view json);
    void note(schema::Severity severity, const std::string& text);

    store::EventSink& sink_;
    FileRequest request_;
    FileFacts facts_;
    TraceActors actors_;
    KinetoCollectives collectives_;
    ChromeRanges open_ranges_;
    Fraction fraction_;
    std::int64_t base_ns_ = 0;  // the trace's time at the rows' time 0
    std::optional<std::int64_t> base_utc_ns_;
    bool any_event_ = false, any_phase_ = false, kineto_ = false, ours_ = false;
    std::string host_;
    std::map<int, schema::GpuRow> gpus_;
    std::vector<OurStep> our_steps_;

    std::array<KnownCategory, 8> categories_;  // the most recent ones
    std::size_t next_category_ = 0;
    schema::StringId operator_domain_, annotation_domain_, function_domain_;
    std::int64_t process_ = 0;  // of the latest call; 0 if several processes make calls
    bool many_processes_ = false;
    std::unordered_map<schema::StringId, bool> details_;        // text -> whether it is JSON
    std::unordered_map<std::int64_t, LinkEnd> links_;           // waiting for their other end, by id
    std::unordered_map<schema::StringId, bool> communication_;  // by kernel name
    std::string text_;
    std::uint64_t no_time_ = 0, no_duration_ = 0;
};

}  // namespace shardscope::traces::importer
