#include "traces/store/columns/names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "traces/schema/enums.h"
#include "traces/schema/text.h"
#include "traces/store/columns/nvtx_names.h"

namespace shardscope::traces::store {

namespace {

constexpr std::string_view kStepPrefix = "ProfilerStep#";

}  // namespace

schema::Operation operation_of_kernel(std::string_view name) {
    if (name.find("SendRecv") != name.npos) return schema::Operation::other;
    // In this order the longer names come before those that they contain (ReduceScatter, AllReduce, Reduce).
    for (std::size_t o = 0; o < schema::kOperationNcclNames.size(); ++o) {
        if (name.find(schema::kOperationNcclNames[o]) != name.npos) return static_cast<schema::Operation>(o);
    }
    return schema::Operation::other;
}

std::optional<schema::Operation> operation_of_call(std::string_view name) {
    if (!name.starts_with("nccl")) return std::nullopt;
    name.remove_prefix(4);
    for (int o = 0; o < static_cast<int>(schema::Operation::other); ++o) {
        if (name == schema::kOperationNcclNames[static_cast<std::size_t>(o)])
            return static_cast<schema::Operation>(o);
    }
    return std::nullopt;
}

std::string_view without_version_suffix(std::string_view api_name) {
    const auto mark = api_name.rfind("_v");
    if (mark == std::string_view::npos || mark == 0) return api_name;
    const std::string_view digits = api_name.substr(mark + 2);
    const bool all_digits =
        std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
    return digits.size() >= 3 && all_digits ? api_name.substr(0, mark) : api_name;
}

RangeKind range_kind(std::string_view text, std::string_view domain, bool ours) {
    if (domain == "NCCL") return RangeKind::communication;
    if (domain == kFunctionDomain && !text.starts_with(kModulePrefix)) return RangeKind::function;
    if (domain == kOperatorDomain) {
        // In traces of early PyTorch versions, steps, data loaders and optimizers are operators.
        if (!text.starts_with(kStepPrefix) && !text.starts_with("enumerate(") &&
            !text.starts_with("Optimizer.")) {
            return RangeKind::operation;
        }
    }
    if (domain == kModuleDomain) return RangeKind::module;
    if (text.starts_with(kModulePrefix)) {
        return text.ends_with(kBackwardSuffix) ? RangeKind::backward : RangeKind::module;
    }
    if (text.starts_with(kStepPrefix)) return RangeKind::step;
    if (text.starts_with("enumerate(DataLoader)#") || text.starts_with("enumerate(DataPipe)#")) {
        return RangeKind::data_loader;
    }
    return ours && schema::contains_but_for_case(text, "backward") ? RangeKind::backward
                                                                   : RangeKind::annotation;
}

std::optional<std::int64_t> profiler_step(std::string_view text) {
    if (!text.starts_with(kStepPrefix)) return std::nullopt;
    return schema::number_of<std::int64_t>(text.substr(kStepPrefix.size()));
}

std::string_view memcpy_name(int copy_kind) {
    constexpr std::array<std::string_view, 14> kNames = {
        "Memcpy",      "Memcpy HtoD",     "Memcpy DtoH",     "Memcpy HtoA",    "Memcpy AtoH",
        "Memcpy AtoA", "Memcpy AtoD",     "Memcpy DtoA",     "Memcpy DtoD",    "Memcpy HtoH",
        "Memcpy PtoP", "Memcpy UVM HtoD", "Memcpy UVM DtoH", "Memcpy UVM DtoD"};
    if (copy_kind == schema::kCopyDiskToHost) return "Read of a file";
    if (copy_kind == schema::kCopyHostToDisk) return "Write of a file";
    const auto index = static_cast<std::size_t>(copy_kind);
    return copy_kind >= 0 && index < kNames.size() ? kNames[index] : kNames[0];
}

std::string_view wait_name(int type) {
    switch (type) {
        case schema::kSyncEvent:
            return "Wait for an event";
        case schema::kSyncStreamWait:
            return "Stream waits for an event";
        case schema::kSyncStream:
            return "Wait for a stream";
        case schema::kSyncContext:
            return "Wait for the device";
        default:
            return "Synchronization";
    }
}

}  // namespace shardscope::traces::store
