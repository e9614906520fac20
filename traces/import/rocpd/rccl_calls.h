// Collectives of RCCL in a rocpd database: its calls with their arguments, and the kernels that they
// launched. Internal to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/rocpd/rocpd_tables.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

class RcclCalls {
  public:
    explicit RcclCalls(RocpdTables& tables);  // reads the arguments of all calls

    // An API call of RCCL; the calls of a thread must come in the order of their starts. `event`: the key of
    // its arguments.
    void add(std::int64_t thread, std::int64_t start, std::int64_t end, std::string_view name,
             const RocpdKey& event);
    // A communication kernel that was launched at `at` on `thread`, after all calls were added.
    void add_kernel(const schema::KernelRow& kernel, std::int64_t thread, std::int64_t at);
    // Adds a collective for each range that has exactly one call and one kernel; in all others it is unknown
    // which kernel belongs to which call, and the kernels are communication by name only.
    void add_collectives(store::EventSink& sink) const;

  private:
    struct Call {
        schema::Operation operation = schema::Operation::other;
        std::int64_t bytes = 0;  // of the full buffer; 0: unknown
    };
    // An API call on a thread, or an outermost ncclGroupEnd with the calls of its group.
    struct Range {
        std::int64_t start = 0, end = 0;
        std::vector<Call> calls;
        int kernels = 0;  // launched in it
    };
    struct Group {
        int depth = 0;
        std::vector<Call> calls;
    };
    struct Launched {
        int rank = 0;
        std::int64_t correlation = 0;
        const Range* range = nullptr;
    };

    Call call_of(std::string_view name, const RocpdKey& event);

    std::map<RocpdKey, std::map<std::string, std::string, std::less<>>> arguments_;  // by event
    std::set<std::int64_t> group_sizes_;                                             // of all communicators
    std::map<std::int64_t, Group> groups_;                                           // open ones, by thread
    std::map<std::int64_t, std::vector<Range>> ranges_;                              // by thread, in order
    std::vector<Launched> launched_;
};

}  // namespace shardscope::traces::importer
