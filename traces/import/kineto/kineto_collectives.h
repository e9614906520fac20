// Matches device events to collectives by the arguments of the kernel itself (PyTorch since October 2023),
// else by the operator record_param_comms that the kernel's External id names, else by the tensor sizes of
// the range around its launch ("nccl:all_reduce", older versions). Owns the events that wait for their
// counterpart, at most a few per cent of all. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/import/kineto/trace_event.h"
#include "traces/store/columns/tensor_sizes.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

class KinetoCollectives {
  public:
    explicit KinetoCollectives(store::EventSink& sink) : sink_(sink) {}

    // An operator with "Collective name". `external_id`: as in the file; 0 none.
    void operation(const TraceEvent& event, std::int64_t external_id, int rank);
    // A range of the host with the sizes of its tensors (RangeRow::detail); kept if it belongs to a
    // collective.
    void range(std::string_view name, std::string_view detail, std::int64_t thread, std::int64_t start,
               std::int64_t end);
    // A runtime call. The range around it must have been added before.
    void call(std::int64_t thread, std::int64_t start, std::int64_t correlation);
    // A communication kernel; row.correlation is 0 if nothing could be linked to it.
    void kernel(const TraceEvent& event, std::int64_t correlation, std::int64_t external_id, int rank);
    // Writes the kernels whose operator came after them.
    void finish();

  private:
    struct Arguments {
        schema::Operation operation = schema::Operation::other;
        std::int64_t bytes = 0, group = 0, sequence = -1;
        int group_size = 0;
    };
    struct Waiting {
        std::int64_t correlation = 0;
        std::int64_t external_id = 0;
        int rank = 0;
    };

    struct HostRange {
        std::int64_t thread = 0, start = 0, end = 0;
        schema::Operation operation = schema::Operation::other;
        store::TensorSizes sizes;
        int kernels = 0;
    };
    using HostRanges =
        std::unordered_map<std::int64_t, std::map<std::int64_t, HostRange>>;  // by thread, start
    static HostRange* around(HostRanges& ranges, std::int64_t thread, std::int64_t time);
    std::int64_t full_buffer(const HostRange& range);

    Arguments read(const TraceEvent& event);
    std::int64_t group_of(const TraceEvent& event);
    void add(const Arguments& arguments, std::int64_t correlation, int rank);

    store::EventSink& sink_;
    std::unordered_map<std::int64_t, Arguments> operations_;  // by External id made distinct by rank
    std::vector<Waiting> waiting_;
    HostRanges issued_;                                      // "nccl:all_gather": sizes of a rank's input
    HostRanges asked_;                                       // "c10d::_allgather_base_": sizes of both
    std::unordered_map<std::int64_t, HostRange*> launched_;  // by correlation; they point into issued_
    std::map<std::string, std::int64_t> groups_;             // "name\n[ranks]" -> the group's number
    std::string last_group_;
    std::int64_t last_number_ = 0;
};

}  // namespace shardscope::traces::importer
