#include "trainer/lift/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "traces/analysis/communication/matching.h"
#include "traces/schema/joined.h"
#include "traces/store/columns/trace.h"
#include "trainer/job/keys.h"

namespace shardscope::trainer::lift {

namespace {

using traces::schema::Operation;
using traces::store::Trace;

// Whether a lifted step still depends on the setting. The model, the data and the learning rate are part of
// the recording.
bool is_wanted(std::string_view key) {
    constexpr std::array<std::string_view, 3> kSections = {"parallel.", "fsdp.", "ddp."};
    for (const std::string_view section : kSections)
        if (key.starts_with(section)) return key != "fsdp.sync_module_states";
    constexpr std::array<std::string_view, 12> kKeys = {
        "run.ranks",       "train.accumulation", "train.accumulation_sync", "train.clip_norm",
        "precision.param", "precision.reduce",   "precision.buffer",        "memory.gemm_workspace_bytes",
        "optimizer.type",  "optimizer.momentum", "optimizer.nesterov",      "optimizer.weight_decay"};
    return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

int integer(std::string_view text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// The optimizer whose step the trace shows: "Optimizer.step#AdamW.step".
std::string optimizer_of(const Trace& trace) {
    constexpr std::string_view kStep = "Optimizer.step#";
    for (std::size_t s = 0; s < trace.strings.size(); ++s) {
        std::string_view text = trace.strings[static_cast<traces::schema::StringId>(s)];
        if (!text.starts_with(kStep)) continue;
        text.remove_prefix(kStep.size());
        const std::string_view name = text.substr(0, text.find('.'));
        if (name == "AdamW") return "adamw";
        if (name == "Adam") return "adam";
        if (name == "SGD") return "sgd";
    }
    return "";
}

struct Counts {
    std::map<Operation, std::int64_t> operations;
    std::int64_t of(Operation operation) const {
        const auto found = operations.find(operation);
        return found == operations.end() ? 0 : found->second;
    }
};

Counts count(const Trace& trace, traces::store::RankIndex rank) {
    Counts counts;
    const traces::analysis::KernelOperations by_kernel(trace);
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.kind[e] != traces::store::DeviceKind::communication ||
            trace.device.rank[e] != rank.column())
            continue;
        const std::int32_t c = trace.device.collective[e];
        const Operation operation =
            c >= 0 ? trace.collectives.operation[static_cast<std::size_t>(c)] : by_kernel.of_event(e);
        ++counts.operations[operation];
    }
    return counts;
}

}  // namespace

bool is_ours(const Trace& trace) {
    return !trace.config_value("model.type").empty() && !trace.config_value("parallel.mode").empty() &&
           !trace.modules.empty();
}

int ranks_of(const Trace& trace) {
    int ranks = integer(trace.config_value("run.ranks"));
    ranks = std::max(ranks, integer(trace.config_value("distributed.world_size")));
    if (ranks > 0) return ranks;
    for (const int size : trace.collectives.group_size) ranks = std::max(ranks, size);
    for (const traces::store::Rank& rank : trace.ranks) ranks = std::max(ranks, rank.number + 1);
    return std::max(ranks, 1);
}

bool is_fully_shard(const Trace& trace) {
    return std::any_of(trace.ranges.name.begin(), trace.ranges.name.end(),
                       [&](traces::schema::StringId id) { return trace.strings[id].starts_with("FSDP::"); });
}

int shard_ranks_of(const Trace& trace) {
    int least = 0;
    for (std::size_t c = 0; c < trace.collectives.size(); ++c) {
        const Operation operation = trace.collectives.operation[c];
        if (operation != Operation::all_gather && operation != Operation::reduce_scatter) continue;
        const int size = trace.collectives.group_size[c];
        if (size > 0 && (least == 0 || size < least)) least = size;
    }
    return std::max(least, 1);
}

Settings settings_of(const Trace& trace, traces::store::RankIndex rank, const StepFacts& step) {
    Settings settings;
    if (is_ours(trace)) {
        for (const auto& [key, value] : trace.config) {
            if (is_wanted(key) && job::find_key(key)) settings.keys.push_back({key, value});
        }
        return settings;
    }
    const auto set = [&](const char* key, const std::string& value) {
        settings.keys.push_back({key, value});
    };
    const int ranks = ranks_of(trace);
    set("run.ranks", std::to_string(ranks));
    if (step.micro_batches > 1) set("train.accumulation", std::to_string(step.micro_batches));
    if (const std::string optimizer = optimizer_of(trace); !optimizer.empty()) {
        set("optimizer.type", optimizer);
    } else {
        settings.notes.emplace_back(
            "No range names the optimizer (Optimizer.step#Name.step): SGD is assumed, without a state in "
            "memory.");
    }
    const Counts counts = count(trace, rank);
    const std::int64_t gathers = counts.of(Operation::all_gather),
                       scatters = counts.of(Operation::reduce_scatter),
                       reductions = counts.of(Operation::all_reduce);
    if (gathers > 0 && scatters > 0) {
        set("parallel.mode", "fsdp");
        if (is_fully_shard(trace)) set("fsdp.layout", "fsdp2");
        // A unit that is freed after its forward is gathered again for its backward.
        const bool again = 2 * gathers >= 3 * scatters;
        const int shard = shard_ranks_of(trace);
        const bool hybrid = reductions > 0 && shard < ranks && ranks % shard == 0;
        if (hybrid) set("fsdp.shard_group", std::to_string(shard));
        const bool freed = again || step.one_unit;
        const char* strategy = hybrid  ? freed ? "HYBRID_SHARD" : "_HYBRID_SHARD_ZERO2"
                               : freed ? "FULL_SHARD"
                                       : "SHARD_GRAD_OP";
        set("fsdp.sharding_strategy", strategy);
        const std::string why =
            !again && step.one_unit
                ? "the root alone is a unit, which is gathered once per step whether it is freed or not: "
                  "assumed to be"
                : fmt::format("{} all-gathers to {} reduce-scatters: assumed to be", gathers, scatters);
        settings.notes.push_back(fmt::format(
            "The strategy: {} {}. {}", why, strategy,
            is_fully_shard(trace) ? "The prefetch of units is assumed to be fully_shard's own."
                                  : "Prefetch and limiter are assumed to be PyTorch's defaults."));
        return settings;
    }
    set("parallel.mode", ranks > 1 && reductions > 0 ? "ddp" : ranks > 1 ? "ddp" : "none");
    return settings;
}

std::int64_t recorded_batch(const Trace& trace) {
    return std::max(integer(trace.config_value("data.batch")), 0);
}

bool reduces_wider(const Trace& trace) {
    std::int64_t gathered = 0, scattered = 0;  // the largest
    for (std::size_t c = 0; c < trace.collectives.size(); ++c) {
        const Operation operation = trace.collectives.operation[c];
        if (operation == Operation::all_gather) gathered = std::max(gathered, trace.collectives.bytes[c]);
        if (operation == Operation::reduce_scatter)
            scattered = std::max(scattered, trace.collectives.bytes[c]);
    }
    return 2 * scattered >= 3 * gathered;
}

std::string wrap_of(const LiftedStep& step) {
    std::set<std::string> wrapped;
    for (std::size_t n = 1; n < step.nodes.size(); ++n)
        if (step.nodes[n].unit) wrapped.insert(step.nodes[n].class_name);
    if (wrapped.empty()) return "root";
    for (std::size_t n = 1; n < step.nodes.size(); ++n)
        if (!step.nodes[n].unit && wrapped.contains(step.nodes[n].class_name)) return "";
    return fmt::format("module:{}", traces::schema::joined(wrapped, ","));
}

}  // namespace shardscope::trainer::lift
