#include "traces/import/rocpd/rccl_calls.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "traces/schema/enums.h"
#include "traces/schema/text.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::importer {

namespace {

// The size of an ncclDataType_t, by its name or its number; 0: unknown.
std::int64_t element_bytes(std::string_view type) {
    struct Type {
        const char *name, *number;
        int bytes;
    };
    constexpr Type kRcclTypes[] = {
        {"ncclInt8", "0", 1},        {"ncclChar", "0", 1},        {"ncclUint8", "1", 1},
        {"ncclInt32", "2", 4},       {"ncclInt", "2", 4},         {"ncclUint32", "3", 4},
        {"ncclInt64", "4", 8},       {"ncclUint64", "5", 8},      {"ncclFloat16", "6", 2},
        {"ncclHalf", "6", 2},        {"ncclFloat32", "7", 4},     {"ncclFloat", "7", 4},
        {"ncclFloat64", "8", 8},     {"ncclDouble", "8", 8},      {"ncclBfloat16", "9", 2},
        {"ncclFloat8e4m3", "10", 1}, {"ncclFloat8e5m2", "11", 1},
    };
    for (const Type& known : kRcclTypes) {
        if (type == known.name || type == known.number) return known.bytes;
    }
    return 0;
}

}  // namespace

RcclCalls::RcclCalls(RocpdTables& tables) {
    store::Statement rows(
        tables.database(),
        "SELECT a.guid, a.event_id, a.name, a.value FROM rocpd_arg a JOIN rocpd_event e ON e.id = "
        "a.event_id AND e.guid = a.guid JOIN rocpd_string c ON c.id = e.category_id AND c.guid = "
        "e.guid WHERE c.string LIKE 'RCCL%'");
    while (rows.step()) arguments_[tables.key(rows, 1)].emplace(rows.text(2), rows.text(3));
}

RcclCalls::Call RcclCalls::call_of(std::string_view name, const RocpdKey& event) {
    Call call{store::operation_of_call(name).value_or(schema::Operation::other)};
    const auto arguments = arguments_.find(event);
    if (arguments == arguments_.end()) return call;
    const auto of = [&](std::initializer_list<const char*> keys) -> std::string_view {
        for (const char* key : keys) {
            const auto it = arguments->second.find(key);
            if (it != arguments->second.end()) return it->second;
        }
        return {};
    };
    if (name.starts_with("ncclCommInit")) {
        if (const auto ranks = schema::number_of<std::int64_t>(of({"nranks"}))) group_sizes_.insert(*ranks);
        return call;
    }
    const auto count = schema::number_of<std::int64_t>(of({"count", "sendcount", "recvcount"}));
    const std::int64_t width = element_bytes(of({"datatype", "dataType"}));
    std::int64_t ranks = 1;
    if (call.operation == schema::Operation::all_gather ||
        call.operation == schema::Operation::reduce_scatter ||
        call.operation == schema::Operation::all_to_all)
        ranks = group_sizes_.size() == 1 ? *group_sizes_.begin() : 0;
    if (!count || *count < 0 || __builtin_mul_overflow(*count, width, &call.bytes) ||
        __builtin_mul_overflow(call.bytes, ranks, &call.bytes))
        call.bytes = 0;
    return call;
}

void RcclCalls::add(std::int64_t thread, std::int64_t start, std::int64_t end, std::string_view name,
                    const RocpdKey& event) {
    Group& group = groups_[thread];
    if (name == "ncclGroupStart") {
        if (group.depth++ == 0) group.calls.clear();
        return;
    }
    const Call call = call_of(name, event);
    if (name == "ncclGroupEnd") {
        group.depth = std::max(group.depth - 1, 0);
        if (group.depth == 0) ranges_[thread].push_back({start, end, group.calls});
    } else if (call.operation == schema::Operation::other) {
        return;
    } else if (group.depth > 0) {
        group.calls.push_back(call);
    } else {
        ranges_[thread].push_back({start, end, {call}});
    }
}

void RcclCalls::add_kernel(const schema::KernelRow& kernel, std::int64_t thread, std::int64_t at) {
    const auto ranges = ranges_.find(thread);
    if (ranges == ranges_.end()) return;
    auto it = std::upper_bound(ranges->second.begin(), ranges->second.end(), at,
                               [](std::int64_t t, const Range& range) { return t < range.start; });
    if (it == ranges->second.begin() || (--it)->end <= at) return;
    ++it->kernels;
    launched_.push_back({kernel.device, kernel.correlation, &*it});
}

void RcclCalls::add_collectives(store::EventSink& sink) const {
    for (const auto& [rank, correlation, range] : launched_) {
        if (range->kernels != 1 || range->calls.size() != 1) continue;
        schema::CollectiveRow row;
        row.rank = rank;
        row.correlation = correlation;
        row.operation = range->calls.front().operation;
        row.bytes = range->calls.front().bytes;
        row.sequence = -1;
        if (group_sizes_.size() == 1)
            row.group_size = static_cast<int>(std::clamp<std::int64_t>(*group_sizes_.begin(), 0, 1 << 30));
        sink.add(row);
    }
}

}  // namespace shardscope::traces::importer
