// Rules about runs that end early, or compute something other than their configuration says.
#include <algorithm>
#include <set>
#include <string>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/memory/allocator_report.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

using Findings = std::vector<Finding>;

// Whether the rank allocated after its last failure: then the run caught the failure and continued.
bool went_on(const AdviceFacts& f, const RankMemory& rank) {
    const store::MemoryEvents& memory = f.trace.memory;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.bytes[i] > 0 && memory.time[i] > rank.failures.back().time_ns &&
            memory.space[i] == schema::MemorySpace::device &&
            f.trace.ranks[memory.rank[i]].number == rank.rank)
            return true;
    }
    return false;
}

// Whether the rank's last failed request fits if segments can grow; empty: the trace does not say.
std::string fit_if_segments_grow(const AdviceFacts& f, int rank) {
    constexpr const char* kGrowing = "expandable_segments:True";
    Selection only = f.selection;
    only.rank = rank;
    const AllocatorReport report = allocator_report(f.trace, only, {.settings = {kGrowing}});
    std::string text;
    for (const RankAllocator& allocator : report.ranks) {
        for (const FailedRequest& request : allocator.failures) {
            if (request.settings != kGrowing || !request.fits) continue;
            text = *request.fits
                       ? fmt::format("fits, with {} left", bytes_text(*request.left))
                       : fmt::format("does not fit either: {} are missing", bytes_text(-*request.left));
        }
    }
    return text.empty()
               ? text
               : fmt::format("Replayed with PYTORCH_CUDA_ALLOC_CONF={}, the request {}.", kGrowing, text);
}

void out_of_memory(const AdviceFacts& f, Findings& found) {
    const RankMemory* failed = nullptr;
    for (const RankMemory& rank : f.memory.ranks) {
        if (!rank.failures.empty() && (failed == nullptr || rank.peak_bytes > failed->peak_bytes))
            failed = &rank;
    }
    std::string text = failed != nullptr ? failed->failures.back().text : std::string();
    for (const schema::DiagnosticRow& note : f.trace.diagnostics) {
        const bool memory = note.severity != schema::Severity::information &&
                            (note.text.find("out of memory") != std::string::npos ||
                             note.text.starts_with(store::kOutOfMemory));
        if (memory && text.empty()) text = note.text;
    }
    if (text.empty()) return;
    const RankMemory* rank = failed != nullptr ? failed : f.highest_peak();
    Finding finding;
    finding.what = fmt::format("The run reported: {}", text);
    std::string_view largest;
    std::int64_t cached = 0;
    if (rank != nullptr && rank->peak_bytes > 0) {
        finding.figures = {{"peak", static_cast<double>(rank->peak_bytes), "bytes"}};
        const auto most = std::max_element(rank->at_peak.begin(), rank->at_peak.end());
        const auto category = static_cast<schema::MemoryCategory>(most - rank->at_peak.begin());
        if (category != schema::MemoryCategory::other) largest = name(category);
        finding.what +=
            fmt::format(" Rank {} had {} allocated at its peak", rank->rank, bytes_text(rank->peak_bytes));
        if (!largest.empty()) finding.what += fmt::format(", {} of it {}", bytes_text(*most), largest);
        cached = rank->reserved_bytes - rank->peak_bytes;
        if (rank->reserved_bytes > 0 && cached > 0) {
            finding.what +=
                fmt::format("; {} more were in the allocator's cache, in pieces", bytes_text(cached));
            finding.figures.push_back({"cached", static_cast<double>(cached), "bytes"});
        }
        finding.what += ".";
    }
    suggest_less_memory(f, finding);
    const std::string_view why = failed != nullptr && went_on(f, *failed)
                                     ? "because the run continued without the memory that it requested"
                                     : "because the trace ends with the failure";
    finding.expected =
        cached > 0 ? fmt::format(
                         "Segments that grow could use what is cached; whether that is enough is unknown,"
                         " {}.",
                         why)
                   : fmt::format("Unknown, {}.", why);
    if (failed != nullptr) {
        if (std::string fit = fit_if_segments_grow(f, failed->rank); !fit.empty())
            finding.expected = std::move(fit);
    }
    found.push_back(std::move(finding));
}

void policy_matched_nothing(const AdviceFacts& f, Findings& found) {
    const std::string_view wrap = f.config("fsdp.wrap");
    if (f.config("parallel.mode") != "fsdp" || wrap.empty() || wrap == "root" || f.trace.units.size() != 1)
        return;
    const schema::UnitRow& unit = f.trace.units.front();
    Finding finding;
    finding.what = fmt::format(
        "The wrap policy {} made no unit: the root holds all {} of the parameters, and all of them are "
        "gathered at the same time."
        "",
        shown(wrap), bytes_text(unit.bytes));
    finding.figures = {{"units", 1, ""}, {"largest_unit", static_cast<double>(unit.bytes), "bytes"}};
    std::set<std::string> classes;
    for (const schema::ModuleRow& module : f.trace.modules) {
        if (!module.class_name.empty() && module.class_name != "FullyShardedDataParallel") {
            classes.insert(module.class_name);
        }
    }
    std::string names;
    for (const std::string& name : classes) names += (names.empty() ? "" : ", ") + name;
    finding.change = fmt::format("Name a class of the model{}.", names.empty() ? "" : ": " + names);
    finding.job_setting = "fsdp.wrap = \"module:Block\"";
    finding.pytorch = "FSDP(model, auto_wrap_policy=ModuleWrapPolicy({Block}))";
    found.push_back(std::move(finding));
}

// --- wrong sums --------------------------------------------------------------------------------------------

// Host ranges whose names `accept` accepts, and how many of them launched communication.
struct RangeUse {
    std::int64_t ranges = 0, with_communication = 0;
};
template <typename Accept>
RangeUse communication_inside(const AdviceFacts& f, Accept accept) {
    const store::Trace& trace = f.trace;
    std::vector<std::int8_t> named(trace.strings.size(), -1);
    std::vector<std::int8_t> state(trace.ranges.size(), 0);  // 1: named, 2: with communication
    RangeUse use;
    for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
        std::int8_t& known = named[static_cast<std::size_t>(trace.ranges.name[i])];
        if (known < 0) known = accept(trace.strings[trace.ranges.name[i]]) ? 1 : 0;
        if (known == 0) continue;
        state[i] = 1;
        ++use.ranges;
    }
    if (use.ranges == 0) return use;
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.kind[e] != store::DeviceKind::communication) continue;
        std::int32_t range = launching_range(trace, e);
        for (; range >= 0; range = trace.ranges.parent[static_cast<std::size_t>(range)]) {
            std::int8_t& at = state[static_cast<std::size_t>(range)];
            if (at == 1) {
                at = 2;
                ++use.with_communication;
            }
        }
    }
    return use;
}

void clip_mismatch(const AdviceFacts& f, Findings& found) {
    if (!f.units.any_unit) return;
    const RangeUse use = communication_inside(
        f, [](std::string_view name) { return name.find("clip_grad_norm") != std::string_view::npos; });
    std::int64_t reductions = 0;
    for (const UnitPhase& row : f.units.all_ranks) reductions += row.sum.reductions;
    if (use.ranges == 0 || use.with_communication > 0 || reductions == 0) return;
    Finding finding;
    finding.what = fmt::format(
        "Gradients are sharded, but no call of clip_grad_norm_ communicates ({}): each rank clips by the "
        "norm of its own shards.",
        store::counted(use.ranges, "call", "calls"));
    finding.figures = {{"calls", static_cast<double>(use.ranges), ""}};
    finding.change = "Clip by the norm over all ranks.";
    finding.job_setting = "train.clip_norm = 1.0";
    finding.pytorch =
        "model.clip_grad_norm_(1.0)  # FSDP's own; with fully_shard torch.nn.utils.clip_grad_norm_ "
        "sums over ranks";
    found.push_back(std::move(finding));
}

// NCCL can divide in the kernel (ncclAvg: "SumPostDiv", "PreMulSum"). A further division around such a
// reduction averages twice. (FSDP's pre- and postdivide factors, which together divide once, use plain
// sums.)
void double_average(const AdviceFacts& f, Findings& found) {
    const store::Trace& trace = f.trace;
    std::vector<std::int8_t> averages(trace.strings.size(), -1);
    std::int64_t reductions = 0;
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.kind[e] != store::DeviceKind::communication) continue;
        std::int8_t& known = averages[static_cast<std::size_t>(trace.device.name[e])];
        if (known < 0) {
            const std::string_view name = trace.strings[trace.device.name[e]];
            const auto has = [name](std::string_view part) {
                return name.find(part) != std::string_view::npos;
            };
            known = (has("ReduceScatter") || has("AllReduce")) &&
                    (has("SumPostDiv") || has("PreMulSum") || has("_Avg"));
        }
        reductions += known;
    }
    if (reductions == 0) return;
    std::int64_t divisions = 0;
    for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
        const std::string_view name = trace.strings[trace.ranges.name[i]];
        if (name != "aten::div_") continue;
        for (std::int32_t at = trace.ranges.parent[i]; at >= 0;
             at = trace.ranges.parent[static_cast<std::size_t>(at)]) {
            const std::string_view around = trace.strings[trace.ranges.name[static_cast<std::size_t>(at)]];
            if (around.find("post_backward") == std::string_view::npos) continue;
            ++divisions;
            break;
        }
    }
    if (divisions < reductions) return;
    Finding finding;
    finding.what = fmt::format(
        "{} in the kernel, and the post-backward hooks divide {} more: gradients may be averaged twice "
        "(optimizers of Adam's kind hide it).",
        store::counted(reductions, "reduction averages", "reductions average"),
        store::counted(divisions, "time", "times"));
    finding.figures = {{"averaging_reductions", static_cast<double>(reductions), ""},
                       {"divisions", static_cast<double>(divisions), ""}};
    finding.change = "Average once: reduce with a sum where the loss or a hook divides already.";
    finding.pytorch = "module.set_gradient_divide_factor(1.0)";
    found.push_back(std::move(finding));
}

constexpr AdviceRule kWrongRules[] = {
    {"out-of-memory", "An allocation failed: out of memory", out_of_memory, true},
    {"policy-matched-nothing", "The wrap policy matched nothing", policy_matched_nothing, true},
    {"clip-mismatch", "Gradients are clipped by partial norms", clip_mismatch, true},
    {"double-average", "Gradients are averaged twice", double_average, true},
};

}  // namespace

std::span<const AdviceRule> wrong_rules() {
    return kWrongRules;
}

}  // namespace shardscope::traces::analysis
