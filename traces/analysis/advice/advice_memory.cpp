// Rules about memory: what causes the peak, and how close it is to the limit.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

using Findings = std::vector<Finding>;

constexpr double kFragmented = 0.2;       // share of reserved memory outside live blocks at the peak
constexpr double kActivationShare = 0.5;  // of the peak
constexpr double kOptimizerShare = 0.4;
constexpr double kGradientShare = 0.1;
constexpr double kNearLimit = 0.9;       // of the device's memory
constexpr double kUntrackedShare = 0.1;  // outside the pool, of the device's used memory

double share_of(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

const schema::UnitRow* largest_unit(const store::Trace& trace) {
    const auto most = std::max_element(trace.units.begin(), trace.units.end(),
                                       [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    return most == trace.units.end() || most->bytes <= 0 ? nullptr : &*most;
}

// Writes how much of the peak a finding could save at most.
void saves(Finding& finding, std::int64_t bytes) {
    finding.gain_bytes = bytes;
    finding.expected = fmt::format(
        "At most {} less at the peak; the effect on time is unknown, because nothing in "
        "the trace was computed that way.",
        bytes_text(bytes));
}

void activations_make_the_peak(const AdviceFacts& f, Findings& found) {
    const RankMemory* rank = f.highest_peak();
    if (rank == nullptr) return;
    const std::string_view checkpointing = f.config("memory.activation_checkpointing");
    if (!checkpointing.empty() && checkpointing != "none") return;  // already enabled
    const std::int64_t bytes = f.at_peak(*rank, schema::MemoryCategory::activations);
    const double share = share_of(bytes, rank->peak_bytes);
    if (share <= kActivationShare) return;
    Finding finding;
    finding.what = fmt::format("Activations are {} of the peak of {} (rank {}), {}.", bytes_text(bytes),
                               bytes_text(rank->peak_bytes), rank->rank, percent_text(100 * share));
    finding.figures = {{"peak", static_cast<double>(rank->peak_bytes), "bytes"},
                       {"activations_at_peak", static_cast<double>(bytes), "bytes"}};
    finding.change = "Keep only the inputs of blocks and recompute the rest in the backward.";
    finding.job_setting = "memory.activation_checkpointing = \"module:Block\"";
    finding.pytorch = "block = checkpoint_wrapper(block)  # before fully_shard(block)";
    saves(finding, bytes);
    found.push_back(std::move(finding));
}

void optimizer_is_peak(const AdviceFacts& f, Findings& found) {
    const RankMemory* rank = f.highest_peak();
    if (rank == nullptr) return;
    const std::int64_t bytes = f.at_peak(*rank, schema::MemoryCategory::optimizer_state);
    const double share = share_of(bytes, rank->peak_bytes);
    if (share <= kOptimizerShare) return;
    Finding finding;
    finding.what = fmt::format("Optimizer state is {} of the peak of {} (rank {}), {}.", bytes_text(bytes),
                               bytes_text(rank->peak_bytes), rank->rank, percent_text(100 * share));
    finding.figures = {{"peak", static_cast<double>(rank->peak_bytes), "bytes"},
                       {"optimizer_at_peak", static_cast<double>(bytes), "bytes"}};
    const bool whole = f.config("parallel.mode") == "ddp" || f.config("fsdp.sharding_strategy") == "NO_SHARD";
    finding.change = whole ? "Every rank holds all of it: shard it."
                           : "Shard over more ranks, offload it, or use an optimizer with less state.";
    Settings settings(f);
    if (whole) {
        settings.add("parallel.mode", "fsdp").add("fsdp.sharding_strategy", "FULL_SHARD");
    } else {
        settings.add("run.ranks", "", "run.ranks = ... (more)").add("fsdp.cpu_offload", "true");
        settings.add("optimizer.type", "sgd");
    }
    finding.job_setting = settings.text;
    finding.pytorch = whole ? "fully_shard(model)  # or ZeroRedundancyOptimizer under DDP"
                            : "fully_shard(model, offload_policy=CPUOffloadPolicy())";
    saves(finding, bytes);
    found.push_back(std::move(finding));
}

void gradient_double_buffer(const AdviceFacts& f, Findings& found) {
    const RankMemory* rank = f.highest_peak();
    const schema::UnitRow* unit = largest_unit(f.trace);
    if (rank == nullptr || unit == nullptr) return;
    const std::int64_t bytes = f.at_peak(*rank, schema::MemoryCategory::unsharded_gradients);
    // The weights' gradients and the flat gradient that they are copied into: twice the unit.
    if (2 * bytes < 3 * unit->bytes || share_of(bytes, rank->peak_bytes) <= kGradientShare) return;
    const std::string_view layout = f.config("fsdp.layout");
    if (layout == "lean") return;
    Finding finding;
    finding.what = fmt::format(
        "At the peak (rank {}) {} of full gradients are allocated, {:.1f} times the largest unit's {}: each "
        "gradient exists a second time in the buffer"
        " that is reduced.",
        rank->rank, bytes_text(bytes), share_of(bytes, unit->bytes), bytes_text(unit->bytes));
    finding.figures = {{"unsharded_gradients_at_peak", static_cast<double>(bytes), "bytes"},
                       {"largest_unit", static_cast<double>(unit->bytes), "bytes"}};
    finding.change = "Write gradients directly into the buffer that is reduced, or make the units smaller.";
    finding.job_setting = "fsdp.layout = \"lean\"";
    finding.pytorch = "for block in model.layers: fully_shard(block)  # smaller units, smaller second copies";
    saves(finding, bytes / 2);
    found.push_back(std::move(finding));
}

void near_the_limit(const AdviceFacts& f, Findings& found) {
    if (f.memory.space != schema::MemorySpace::device) return;  // the host's memory size is unknown
    const RankMemory* worst = nullptr;
    double share = 0;
    std::int64_t limit = 0;
    for (const RankMemory& rank : f.memory.ranks) {
        const store::RankIndex at = f.trace.rank_of_number(rank.rank);
        const std::int64_t device = at.known() ? f.trace.ranks[at.at()].device_memory : 0;
        const double used = share_of(std::max(rank.peak_bytes, rank.reserved_bytes), device);
        if (used <= share) continue;
        share = used;
        worst = &rank;
        limit = device;
    }
    if (share <= kNearLimit) return;
    Finding finding;
    const std::int64_t held = std::max(worst->peak_bytes, worst->reserved_bytes);
    finding.what = fmt::format("Rank {} uses {} of its device's {} ({}).", worst->rank, bytes_text(held),
                               bytes_text(limit), percent_text(100 * share));
    finding.figures = {{"held", static_cast<double>(held), "bytes"},
                       {"device_memory", static_cast<double>(limit), "bytes"}};
    finding.expected = "The run does not fail for lack of memory.";
    suggest_less_memory(f, finding);
    found.push_back(std::move(finding));
}

void fragmented(const AdviceFacts& f, Findings& found) {
    const RankMemory* worst = nullptr;
    for (const RankMemory& rank : f.memory.ranks) {
        if (!rank.fragmentation) continue;
        if (worst == nullptr || rank.fragmentation->free_bytes > worst->fragmentation->free_bytes)
            worst = &rank;
    }
    if (worst == nullptr) return;
    const Fragmentation& pool = *worst->fragmentation;
    if (share_of(pool.free_bytes, pool.held_bytes) <= kFragmented || pool.percent() < 50) return;
    Finding finding;
    finding.what = fmt::format(
        "At rank {}'s peak the allocator has reserved {}, of which {} are free in {}; the largest has {}.",
        worst->rank, bytes_text(pool.held_bytes), bytes_text(pool.free_bytes),
        store::counted(pool.free_blocks, "piece", "pieces"), bytes_text(pool.largest_free));
    finding.figures = {{"held", static_cast<double>(pool.held_bytes), "bytes"},
                       {"free_in_pieces", static_cast<double>(pool.free_bytes), "bytes"},
                       {"fragmentation", pool.percent(), "%"}};
    finding.change =
        "Let segments grow instead of allocating new ones, and keep sizes the same from step to step.";
    finding.pytorch = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    finding.gain_bytes = pool.free_bytes;
    finding.expected = fmt::format("At most {} returned to the device.", bytes_text(pool.free_bytes));
    found.push_back(std::move(finding));
}

// Device memory outside the trace's allocators: counters of the process or device minus the pool's.
void untracked_memory(const AdviceFacts& f, Findings& found) {
    if (f.memory.space != schema::MemorySpace::device) return;
    auto used = f.trace.strings.find("gpu_memory_used_bytes");  // the recorder's
    if (!used) used = f.trace.strings.find("memory_used_bytes");
    if (!used) return;
    std::map<int, double> most;
    const store::Counters& counters = f.trace.counters;
    for (std::size_t i = 0; i < counters.time.size(); ++i) {
        if (counters.name[i] != *used || counters.rank[i] == store::kNoRank) continue;
        double& value = most[f.trace.ranks[counters.rank[i]].number];
        value = std::max(value, counters.value[i]);
    }
    for (const RankMemory& rank : f.memory.ranks) {
        const auto at = most.find(rank.rank);
        const std::int64_t held = std::max(rank.peak_bytes, rank.reserved_bytes);
        if (at == most.end() || held <= 0 || at->second <= 0) continue;
        const double outside = at->second - static_cast<double>(held);
        if (outside <= kUntrackedShare * at->second) continue;
        Finding finding;
        finding.what = fmt::format(
            "Rank {}'s device uses {} beyond the {} that the allocator has reserved (including other "
            "programs).",
            rank.rank, bytes_text(static_cast<std::int64_t>(outside)), bytes_text(held));
        finding.figures = {{"outside_allocator", outside, "bytes"},
                           {"held", static_cast<double>(held), "bytes"}};
        finding.change =
            "Look for further communicators, CUDA contexts and libraries with workspaces of their own.";
        finding.expected = "Unknown, because the trace does not show what uses it.";
        finding.pytorch = f.backend() == "NCCL"
                              ? "NCCL_CUMEM_ENABLE=0, NCCL_NCHANNELS_PER_PEER=...; fewer dist.new_group calls"
                              : "fewer dist.new_group calls";
        found.push_back(std::move(finding));
    }
}

constexpr AdviceRule kMemoryRules[] = {
    {"activations-are-peak", "Activations dominate the peak", activations_make_the_peak},
    {"optimizer-is-peak", "Optimizer state dominates the peak", optimizer_is_peak},
    {"gradient-double-buffer", "Gradients are stored twice", gradient_double_buffer},
    {"memory-near-limit", "Memory is near the device's limit", near_the_limit, true},
    {"fragmentation", "Free memory is fragmented", fragmented},
    {"untracked-memory", "Device memory outside the allocator", untracked_memory},
};

}  // namespace

std::span<const AdviceRule> memory_rules() {
    return kMemoryRules;
}

}  // namespace shardscope::traces::analysis
