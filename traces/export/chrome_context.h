// The state that the parts of the Chrome export share: the database, the output file, names by id, and pids.
// Internal to the library. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/export/chrome_trace.h"
#include "traces/export/text_output.h"
#include "traces/schema/enums.h"
#include "traces/schema/rows.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::exports {

struct ExportedRank {
    std::int64_t rank = 0, device = 0, global_pid = 0, global_tid = 0;
    std::string host;
    std::array<std::int64_t, schema::kMeshAxes.size()> place{};  // in the mesh, by axis
    std::int64_t local_rank = -1;
    std::string cpus;
};

// Domains of ranges, by process: domain numbers are unique within one process only.
using RangeDomains = std::map<std::pair<std::int64_t, std::int64_t>, std::string>;

class ChromeContext {
  public:
    ChromeContext(store::Database& database, TextOutput& output, const merge::WorkOptions& work);

    store::Database& database() { return database_; }
    std::string& out() { return output_.buffer(); }

    // The text of an id of StringIds, as a JSON string and unescaped.
    const std::string& name(std::int64_t id);
    const std::string& plain_name(std::int64_t id);

    // The pid and tid in the events of a process or thread.
    std::int64_t pid_of(std::int64_t global_pid);
    std::int64_t pid_of_thread(std::int64_t global_tid) { return pid_of(global_tid & schema::kPidMask); }
    static std::int64_t tid_of(std::int64_t global_tid) { return global_tid & 0xFFFFFF; }

    const std::vector<ExportedRank>& ranks() const { return ranks_; }
    const ExportedRank* rank(std::int64_t number) const;
    const std::set<std::int64_t>& processes() const { return processes_; }  // those in events so far

    // SQL that sorts the rows of a table of events, `t`, by time; empty if they are stored in that order.
    std::string ordered_by(std::string_view table, std::string_view column);

    // Writes the comma and the start of every event: {"ph":"X","cat":"kernel","name":"sgemm" (`name`: JSON).
    std::string& begin(std::string_view phase, std::string_view category, std::string_view name);
    void place(std::int64_t pid, std::int64_t tid, std::int64_t start);  // ,"pid":1,"tid":2,"ts":3.000
    void duration(std::int64_t start, std::int64_t end);                 // ,"dur":1.000
    void end();                                                          // writes }, and flushes now and then
    std::int64_t events() const { return events_; }

  private:
    struct Name {
        std::string plain, json;
    };
    const Name& lookup(std::int64_t id);
    void load_ranks();
    void look();

    store::Database& database_;
    TextOutput& output_;
    const merge::WorkOptions& work_;
    store::Statement find_name_;
    std::unordered_map<std::int64_t, Name> names_;
    std::vector<ExportedRank> ranks_;
    std::unordered_map<std::int64_t, std::int64_t> pids_;
    std::set<std::int64_t> taken_, processes_;
    std::int64_t events_ = 0, rows_ = 0;
};

// The parts of the file, in their order. Each event is written whole.
void write_head(ChromeContext& context, std::int64_t start_utc_ns);  // everything before traceEvents
void write_device_events(ChromeContext& context);
void write_synchronizations(ChromeContext& context);
void write_host_events(ChromeContext& context);
void write_memory(ChromeContext& context);
void write_names(ChromeContext& context);  // last: all processes are known

}  // namespace shardscope::traces::exports
