#include "traces/analysis/communication/host_collectives.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "traces/analysis/communication/matching.h"
#include "traces/store/columns/tensor_sizes.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

namespace {

enum class Role : std::int8_t { unread = -1, none, carries_out, asks };

Role role_of(std::string_view name) {
    if (!host_library(name).empty()) return Role::carries_out;
    return name.starts_with("c10d::") ? Role::asks : Role::none;
}

// Rows by rank and operation, in order of start.
using RowsInOrder = std::map<std::pair<std::uint16_t, schema::Operation>, std::vector<std::size_t>>;

bool gathers(schema::Operation operation) {
    return operation == schema::Operation::all_gather || operation == schema::Operation::gather;
}

// Matches by order, if all ranks that have the operation have the same count. The counterpart of a send or
// receive is another operation: each is a match of its own, and all of its time is transfer.
void match_by_order(const RowsInOrder& rows, std::vector<HostCollective>& all) {
    std::int32_t matches = 0;
    for (int o = 0; o < schema::kOperations; ++o) {
        std::vector<const std::vector<std::size_t>*> of_ranks;
        for (const auto& [key, own] : rows) {
            if (key.second == static_cast<schema::Operation>(o)) of_ranks.push_back(&own);
        }
        const bool pair = is_point_to_point(static_cast<schema::Operation>(o));
        const bool agree = !pair && std::all_of(of_ranks.begin(), of_ranks.end(), [&](const auto* own) {
            return own->size() == of_ranks.front()->size();
        });
        for (std::size_t k = 0; !of_ranks.empty() && k < of_ranks.front()->size() && agree; ++k) {
            std::int64_t shortest = all[(*of_ranks.front())[k]].transfer_ns;
            for (const auto* own : of_ranks) shortest = std::min(shortest, all[(*own)[k]].transfer_ns);
            for (const auto* own : of_ranks) {
                all[(*own)[k]].transfer_ns = shortest;
                all[(*own)[k]].match = matches;
            }
            ++matches;
        }
        if (agree) continue;
        for (const auto* own : of_ranks) {
            for (const std::size_t row : *own) {
                all[row].unmatched = !pair;
                all[row].match = matches++;
            }
        }
    }
}

}  // namespace

std::string_view host_library(std::string_view range_name) {
    if (range_name.starts_with("gloo:")) return "Gloo";
    return range_name.starts_with("mpi:") ? "MPI" : "";
}

std::vector<HostCollective> host_collectives(const store::Trace& trace) {
    const store::HostRanges& ranges = trace.ranges;
    std::vector<Role> roles(trace.strings.size(), Role::unread);
    std::vector<HostCollective> found;
    RowsInOrder carried_out;
    std::map<std::pair<std::uint16_t, schema::Operation>, std::vector<std::int64_t>> asked;  // full buffers
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const std::string_view name = trace.strings[ranges.name[i]];
        Role& role = roles[static_cast<std::size_t>(ranges.name[i])];
        if (role == Role::unread) role = role_of(name);
        const store::RankIndex rank = trace.threads[ranges.thread[i]].rank;
        if (role == Role::none || !rank.known()) continue;
        const std::uint16_t r = rank.column();
        const schema::Operation operation = operation_of_range(name);
        const std::string_view detail =
            ranges.detail.empty() ? std::string_view() : trace.strings[ranges.detail[i]];
        const store::TensorSizes sizes = store::input_tensors(detail).value_or(store::TensorSizes());
        if (role == Role::asks) {
            if (gathers(operation)) asked[{r, operation}].push_back(sizes.tensors > 1 ? sizes.largest : 0);
            continue;
        }
        carried_out[{r, operation}].push_back(found.size());
        found.push_back({.range = static_cast<std::int32_t>(i),
                         .rank = r,
                         .operation = operation,
                         .start = ranges.start[i],
                         .end = ranges.end[i],
                         .bytes = gathers(operation) ? 0 : sizes.sum,
                         .transfer_ns = ranges.end[i] - ranges.start[i]});
    }
    for (const auto& [key, buffers] : asked) {
        const auto rows = carried_out.find(key);
        if (rows == carried_out.end() || rows->second.size() != buffers.size()) continue;
        for (std::size_t k = 0; k < buffers.size(); ++k) found[rows->second[k]].bytes = buffers[k];
    }
    match_by_order(carried_out, found);
    return found;
}

std::vector<SelectedHostCollective> selected_host_collectives(const store::Trace& trace,
                                                              const TraceSteps& steps,
                                                              const Communications& on_devices,
                                                              const Selection& selection) {
    std::vector<bool> on_device(trace.ranks.size());
    for (const Communication& part : on_devices.parts) on_device[part.rank] = true;
    const Interval time = selected_time(selection);
    const bool by_step = selection.first_step || selection.last_step;
    std::vector<SelectedHostCollective> found;
    for (const HostCollective& c : host_collectives(trace)) {
        if (on_device[c.rank] || c.start < time.start || c.start >= time.end) continue;
        const RankSteps& own = steps.ranks[c.rank];
        const int step = own.step_at(c.start);
        const bool in_step = step >= 0 && step < own.kept();
        if (by_step && (!in_step || !selection.has_step(own.steps[static_cast<std::size_t>(step)].number)))
            continue;
        found.push_back({c, in_step});
    }
    return found;
}

}  // namespace shardscope::traces::analysis
