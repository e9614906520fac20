// Rules about how a model is sharded: units, padding, wrap policies, averages and norms.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "traces/analysis/advice_facts.h"
#include "traces/analysis/matching.h"
#include "traces/analysis/step_windows.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

using Findings = std::vector<Finding>;

constexpr double kUneven = 1.1;      // largest rank against the mean
constexpr double kPadding = 0.05;    // of the bytes moved
constexpr double kSmallPercent = 1;  // of a step: what costs less is not worth a change
constexpr int kFewUnits = 8;         // below that nothing is too fine

std::int64_t rank_steps(const AdviceFacts& f) {
    return std::max<std::int64_t>(1, f.units.rank_steps);
}

void policy_matched_nothing(const AdviceFacts& f, Findings& found) {
    const std::string_view wrap = f.config("fsdp.wrap");
    if (f.config("parallel.mode") != "fsdp" || wrap.empty() || wrap == "root" || f.trace.units.size() != 1)
        return;
    const UnitRow& unit = f.trace.units.front();
    Finding finding;
    finding.what = fmt::format(
        "The wrap policy {} made no unit: the root holds all {} of the parameters, and all of them are "
        "gathered at "
        "once.",
        shown(wrap), bytes_text(unit.bytes));
    finding.figures = {{"units", 1, ""}, {"largest_unit", static_cast<double>(unit.bytes), "bytes"}};
    std::set<std::string> classes;
    for (const ModuleRow& module : f.trace.modules) {
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

// A collective takes alpha + beta * bytes: a line through the gathers of this trace, by least squares over
// the shortest durations of each size (Hockney's model). None where there are not two sizes or the line
// falls.
struct Line {
    double alpha_us = 0, beta_us_per_byte = 0;
};
std::optional<Line> gather_line(const Trace& trace) {
    std::map<std::int64_t, std::int64_t> shortest;  // bytes -> ns
    const Communications communications = match_communications(trace);
    for (const CollectiveMatch& match : communications.matches) {
        const Communication& part = communications.parts[match.begin];
        if (part.row < 0 || part.operation != Operation::all_gather || match.transfer_ns < 0) continue;
        const std::int64_t bytes = trace.collectives.bytes[static_cast<std::size_t>(part.row)];
        if (bytes <= 0) continue;
        const auto [at, first] = shortest.try_emplace(bytes, match.transfer_ns);
        if (!first) at->second = std::min(at->second, match.transfer_ns);
    }
    // The sizes must lie apart for their difference to tell anything.
    if (shortest.size() < 2 || shortest.rbegin()->first < 2 * shortest.begin()->first) return std::nullopt;
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const auto& [bytes, ns] : shortest) {
        const auto b = static_cast<double>(bytes), t = static_cast<double>(ns) * 1e-3;
        n += 1;
        x += b;
        y += t;
        xx += b * b;
        xy += b * t;
    }
    const double spread = n * xx - x * x;
    if (spread <= 0) return std::nullopt;
    const double beta = (n * xy - x * y) / spread, alpha = (y - beta * x) / n;
    if (beta <= 0 || alpha <= 0) return std::nullopt;
    return Line{alpha, beta};
}

void wrap_too_fine(const AdviceFacts& f, Findings& found) {
    std::int64_t gathers = 0, bytes = 0;
    std::set<std::string_view> units;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.sum.gathers == 0) continue;
        gathers += row.sum.gathers;
        bytes += row.sum.gather_bytes;
        units.insert(row.name);
    }
    if (units.size() < kFewUnits) return;
    const std::optional<Line> line = gather_line(f.trace);
    if (!line) return;
    const double mean_bytes = static_cast<double>(bytes) / static_cast<double>(gathers);
    const double transfer_us = line->beta_us_per_byte * mean_bytes;
    const double latency_us =
        line->alpha_us * static_cast<double>(gathers) / static_cast<double>(rank_steps(f));
    if (line->alpha_us <= transfer_us || f.percent_of_step(latency_us) <= kSmallPercent) return;
    Finding finding;
    finding.what = fmt::format(
        "{} units, {} in the mean: a gather takes {} to get going and {} for the bytes, so that {} a step is "
        "latency alone.",
        units.size(), bytes_text(static_cast<std::int64_t>(mean_bytes)), us_text(line->alpha_us),
        us_text(transfer_us), us_text(latency_us));
    finding.figures = {{"units", static_cast<double>(units.size()), ""},
                       {"alpha", line->alpha_us, "us"},
                       {"beta_times_bytes", transfer_us, "us"},
                       {"latency", latency_us, "us/step"}};
    finding.change = "Wrap coarser: blocks instead of their layers.";
    finding.job_setting = "fsdp.wrap = \"module:Block\"";
    finding.pytorch = "FSDP(model, auto_wrap_policy=ModuleWrapPolicy({Block}))  # not {Linear}";
    found.push_back(std::move(finding));
}

void wasted_regather(const AdviceFacts& f, Findings& found) {
    const UnitPhase* worst = nullptr;
    std::int64_t times = 0;
    for (const UnitPhase& row : f.units.all_ranks) {
        times += row.sum.regathers;
        if (row.sum.regathers > 0 && (worst == nullptr || row.sum.regathers > worst->sum.regathers))
            worst = &row;
    }
    if (worst == nullptr || 2 * times < rank_steps(f)) return;  // now and then is no pattern
    const std::int64_t each = worst->sum.gather_bytes / std::max<std::int64_t>(1, worst->sum.gathers);
    Finding finding;
    finding.what = fmt::format(
        "Unit {} is freed and at once gathered again, {:.2f} times a step and rank: {} that were there "
        "already.",
        shown(worst->name), static_cast<double>(times) / static_cast<double>(rank_steps(f)),
        bytes_text(each));
    finding.figures = {
        {"regathers", static_cast<double>(times) / static_cast<double>(rank_steps(f)), "times/step"},
        {"bytes_each", static_cast<double>(each), "bytes"}};
    finding.change = "Keep the last unit of the forward for the backward that begins with it.";
    finding.job_setting = "fsdp.layout = \"lean\"";
    finding.pytorch = "fully_shard(last_block, reshard_after_forward=False)";
    found.push_back(std::move(finding));
}

void regather_by_checkpointing(const AdviceFacts& f, Findings& found) {
    std::map<std::string_view, std::array<std::int64_t, kPhases>> gathers;
    for (const UnitPhase& row : f.units.all_ranks) {
        gathers[row.name][static_cast<std::size_t>(row.phase)] += row.sum.gathers;
    }
    std::string_view unit;
    std::int64_t twice = 0;
    for (const auto& [name, phases] : gathers) {
        const std::int64_t again = std::min(phases[static_cast<std::size_t>(Phase::recompute)],
                                            phases[static_cast<std::size_t>(Phase::backward)]);
        if (again > twice) {
            twice = again;
            unit = name;
        }
    }
    if (2 * twice < rank_steps(f)) return;
    Finding finding;
    finding.what = fmt::format(
        "Unit {} is gathered for the recomputation and again for its backward: three gathers a step instead "
        "of two.",
        shown(unit));
    finding.figures = {
        {"extra_gathers", static_cast<double>(twice) / static_cast<double>(rank_steps(f)), "times/step"}};
    finding.change = "Put the checkpoint inside the sharded unit, so that one gather serves both.";
    finding.pytorch = "fully_shard(checkpoint_wrapper(block))  # not checkpoint_wrapper(FSDP(block))";
    found.push_back(std::move(finding));
}

void padding(const AdviceFacts& f, Findings& found) {
    std::int64_t bytes = 0, padded = 0;
    const UnitPhase* worst = nullptr;
    for (const UnitPhase& row : f.units.all_ranks) {
        bytes += row.sum.gather_bytes + row.sum.reduce_bytes;
        const std::int64_t own = row.sum.gather_padding + row.sum.reduce_padding;
        padded += own;
        if (worst == nullptr || own > worst->sum.gather_padding + worst->sum.reduce_padding) worst = &row;
    }
    if (bytes <= 0 || static_cast<double>(padded) <= kPadding * static_cast<double>(bytes)) return;
    const double share = 100 * static_cast<double>(padded) / static_cast<double>(bytes);
    Finding finding;
    finding.what = fmt::format("{} of the bytes that units move is padding, most of it in unit {}.",
                               percent_text(share), shown(worst->name));
    finding.figures = {
        {"padding", share, "%"},
        {"padding_bytes", static_cast<double>(padded) / static_cast<double>(rank_steps(f)), "bytes/step"}};
    finding.change = "Make units larger, or their sizes a multiple of the ranks.";
    finding.job_setting = "fsdp.wrap = \"module:Block\"";
    finding.pytorch = "fully_shard(block)  # not each layer; FSDP2 pads dim 0 of each parameter to the ranks";
    found.push_back(std::move(finding));
}

void empty_shard(const AdviceFacts& f, Findings& found) {
    const auto ranks = static_cast<std::int64_t>(f.trace.ranks.size());
    std::int64_t units = 0;
    const UnitRow* worst = nullptr;
    for (const UnitRow& unit : f.trace.units) {
        const std::int64_t shard =
            unit.shard_bytes > 0 && unit.bytes > 0
                ? static_cast<std::int64_t>(std::llround(static_cast<double>(unit.padded_elements) *
                                                         static_cast<double>(unit.shard_bytes) /
                                                         static_cast<double>(unit.bytes)))
                : 0;
        // Whole shards of padding.
        if (shard <= 0 || unit.padded_elements - unit.elements < shard) continue;
        ++units;
        if (worst == nullptr || unit.elements < worst->elements) worst = &unit;
    }
    if (worst == nullptr || ranks < 2) return;
    Finding finding;
    finding.what = fmt::format(
        "{} units are so small that some rank holds nothing of them but padding; the smallest, {}, has {} "
        "elements.",
        units, shown(worst->name), worst->elements);
    finding.figures = {{"units", static_cast<double>(units), ""},
                       {"elements", static_cast<double>(worst->elements), ""}};
    finding.change = "Wrap coarser, or leave such modules to the unit around them.";
    finding.job_setting = "fsdp.wrap = \"size:1000000\"";
    finding.pytorch =
        "FSDP(model, auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, "
        "min_num_params=1_000_000))";
    found.push_back(std::move(finding));
}

void uneven_ranks(const AdviceFacts& f, Findings& found) {
    if (f.units.ranks.size() < 2) return;
    const Unevenness& u = f.units.uneven;
    std::string what;
    Finding finding;
    const auto look = [&](double factor, const char* name, const char* in_words) {
        if (factor <= kUneven) return;
        what += fmt::format("{}{} is {:.2f} times the mean", what.empty() ? "The largest rank's " : ", its ",
                            in_words, factor);
        finding.figures.push_back({name, factor, "x"});
    };
    look(u.shard_bytes, "shard_bytes", "shard");
    look(u.peak_bytes, "peak_bytes", "peak memory");
    look(u.busy, "busy", "busy time");
    if (what.empty()) return;
    finding.what = what + ".";
    if (u.shard_bytes > kUneven || u.peak_bytes > kUneven) {
        finding.change = "Even out what the ranks hold: units of their own for embeddings and heads.";
        finding.job_setting = "fsdp.wrap = \"module:Block,Embedding\"";
        finding.pytorch = "fully_shard(model.embedding); fully_shard(model.head)";
    } else {
        finding.what +=
            " Waiting inside collectives counts as busy: the rank with most may be the one that waits.";
        finding.change = "Even out what the ranks do: as many tokens for each, not as many samples.";
        finding.job_setting = "data.batch";
        finding.pytorch = "DataLoader(dataset, batch_sampler=a sampler that gives every rank as many tokens)";
    }
    found.push_back(std::move(finding));
}

// --- wrong sums
// ----------------------------------------------------------------------------------------------

// Host ranges that `accept` names, and for each rank whether some communication was launched inside.
struct RangeUse {
    std::int64_t ranges = 0, with_communication = 0;
};
template <typename Accept>
RangeUse communication_inside(const AdviceFacts& f, Accept accept) {
    const Trace& trace = f.trace;
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
        if (trace.device.kind[e] != DeviceKind::communication) continue;
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
        "Gradients are sharded, but none of the {} calls of clip_grad_norm_ communicates: each rank clips by "
        "the "
        "norm of its own shards.",
        use.ranges);
    finding.figures = {{"calls", static_cast<double>(use.ranges), ""}};
    finding.change = "Clip by the norm over all ranks.";
    finding.job_setting = "train.clip_norm = 1.0";
    finding.pytorch =
        "model.clip_grad_norm_(1.0)  # FSDP's own; with fully_shard torch.nn.utils.clip_grad_norm_ "
        "sums over ranks";
    found.push_back(std::move(finding));
}

// NCCL divides in the kernel (ncclAvg: "SumPostDiv", "PreMulSum"); a division around the reduction as well
// divides twice, unless the factors share the work (FSDP's pre- and postdivide), which use plain sums.
void double_average(const AdviceFacts& f, Findings& found) {
    const Trace& trace = f.trace;
    std::vector<std::int8_t> averages(trace.strings.size(), -1);
    std::int64_t reductions = 0;
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.kind[e] != DeviceKind::communication) continue;
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
        "{} reductions average in their kernels, and the hooks after the backward divide {} times more: "
        "gradients "
        "may be averaged twice (optimizers of Adam's kind hide it).",
        reductions, divisions);
    finding.figures = {{"averaging_reductions", static_cast<double>(reductions), ""},
                       {"divisions", static_cast<double>(divisions), ""}};
    finding.change = "Average once: reduce with a sum where the loss or a hook divides already.";
    finding.pytorch = "module.set_gradient_divide_factor(1.0)";
    found.push_back(std::move(finding));
}

constexpr AdviceRule kRules[] = {
    {"policy-matched-nothing", "The wrap policy matched nothing", policy_matched_nothing},
    {"wrap-too-fine", "Units are too small", wrap_too_fine},
    {"wasted-regather", "A unit is gathered again at once", wasted_regather},
    {"checkpoint-regather", "Checkpointing gathers once more", regather_by_checkpointing},
    {"padding", "Padding is moved", padding},
    {"empty-shard", "Ranks hold empty shards", empty_shard},
    {"uneven-ranks", "Ranks are uneven", uneven_ranks},
    {"clip-mismatch", "Gradients are clipped by partial norms", clip_mismatch},
    {"double-average", "Gradients are averaged twice", double_average},
};

}  // namespace

std::span<const AdviceRule> sharding_rules() {
    return kRules;
}

}  // namespace shardscope::traces
