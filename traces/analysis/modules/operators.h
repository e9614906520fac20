// Operators by name, or by name and the shapes of their inputs. Definition: docs/definitions.md, "Operators,
// kernels". Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct OperatorStats {
    std::string_view name;    // lives as long as the trace, as does `shapes`
    std::string_view shapes;  // "[[128,64],[64]]"; empty: unknown, or not requested
    std::int64_t calls = 0;
    std::int64_t host_total = 0;    // sum of the calls' durations
    std::int64_t host_self = 0;     // excluding operators and runtime calls inside
    std::int64_t device_total = 0;  // device events launched inside, including in operators inside
    std::int64_t device_self = 0;   // launched inside, but not in an operator inside
    double device_percent = 0;      // share of device_self in that of all operators of the rank
};

// The fields with or without a column for the shapes.
Fields<OperatorStats> operator_fields(bool by_shape);

struct RankOperators {
    int rank = 0;
    std::int64_t distinct = 0, calls = 0, host_self = 0, device_self = 0;  // including those beyond `most`
    std::vector<OperatorStats> operators;  // by device_self, largest first; then host_self; then name
};

struct OperatorsReport {
    bool by_shape = false;
    std::vector<RankOperators> ranks;
};

// An operator is a range of kind `operation`; in a trace without any (ours, NVTX ranges), every range that is
// not a step, module, data loader or frame of the program. PyTorch's emit_nvtx() writes more than the name
// into a range ("aten::mm, seq = 3, op_id = 7, sizes = [[2, 3]]"); what follows the name is removed, and the
// sizes are the shapes. A call that starts in the selection counts with all of its time. `most`: maximum rows
// per rank; 0 all.
OperatorsReport operators_report(const store::Trace& trace, const Selection& selection = {},
                                 bool by_shape = false, std::size_t most = 0);

// The calls that one row of the report counts, on one rank: rows of HostRanges, in order of start. Pass the
// row's shapes, and by_shape as for the report. The selection must name the rank.
std::vector<std::uint32_t> operator_calls(const store::Trace& trace, const Selection& selection,
                                          std::string_view name, std::string_view shapes, bool by_shape);

struct OperatorText {
    std::string_view name, shapes;  // parts of the given text; shapes: empty if there are none
};

// "aten::mm, seq = 3, op_id = 7, sizes = [[2, 3]], input_op_ids = [...]", as PyTorch's emit_nvtx() writes it;
// any other text is a name as a whole.
OperatorText operator_text(std::string_view range);

// The value of "Input Dims" in a range's detail (one JSON object, as Kineto writes it); empty if missing.
std::string_view input_shapes(std::string_view detail);

}  // namespace shardscope::traces::analysis
