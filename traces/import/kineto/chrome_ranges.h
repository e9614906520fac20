// Ranges of Chrome traces whose begin and end are events of their own: B and E nest on a thread, b and e
// (formerly S and F) carry an id. Owns the open ranges. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/import/kineto/trace_event.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

class ChromeRanges {
  public:
    explicit ChromeRanges(store::EventSink& sink) : sink_(sink) {}

    void begin(const TraceEvent& event, std::int64_t time, std::int64_t thread, bool asynchronous);
    // An end without a name closes the innermost range.
    void end(const TraceEvent& event, std::int64_t time, std::int64_t thread, bool asynchronous);
    // Ends all open ranges with the trace. Returns their number.
    std::uint64_t finish(std::int64_t last_time);
    std::uint64_t lonely_ends() const { return lonely_ends_; }

  private:
    struct Open {
        std::int64_t start = 0, thread = 0;
        schema::StringId text = schema::StringId::empty, domain = schema::StringId::empty;
        std::vector<schema::RangeRow> held;  // inner ranges that began together with it
    };
    std::string key_of(const TraceEvent& event, std::int64_t thread, bool asynchronous);
    schema::RangeRow row_of(const Open& open, std::int64_t end, std::int64_t end_thread,
                            bool asynchronous) const;
    void add(Open& open, std::int64_t end, std::int64_t end_thread, bool asynchronous);

    store::EventSink& sink_;
    std::map<std::int64_t, std::vector<Open>> stacks_;       // by thread
    std::map<std::string, std::vector<Open>> asynchronous_;  // by category and id
    std::uint64_t lonely_ends_ = 0;
};

}  // namespace shardscope::traces::importer
