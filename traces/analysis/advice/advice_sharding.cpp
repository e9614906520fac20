// Rules about how a model is sharded: the size of units, avoidable gathers, padding, uneven ranks.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/fsdp/unit_names.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

using Findings = std::vector<Finding>;

constexpr double kUneven = 1.1;       // largest rank over the mean
constexpr double kPadding = 0.05;     // of the bytes moved
constexpr double kSmallPercent = 1;   // of a step: what costs less is not worth a change
constexpr int kFewUnits = 8;          // with fewer units no wrap is too fine
constexpr int kMerged = 4;            // units that a coarser wrap merges into one
constexpr double kUnitShare = 0.4;    // share of the peak that gathered parameters and full gradients take
constexpr double kLargestUnit = 0.5;  // of all parameters
constexpr double kLargestExposedPercent = 5;  // of a step: its collectives' exposed time
constexpr int kFewestParts = 4;               // parts of a unit, if no class has more modules

std::int64_t rank_steps(const AdviceFacts& f) {
    return std::max<std::int64_t>(1, f.units.rank_steps);
}

// Hockney's model: a collective takes alpha + beta * bytes. Fits the line by least squares to the shortest
// duration of each gather size in this trace. Returns none if there are fewer than two sizes or the line
// falls.
struct Line {
    double alpha_us = 0, beta_us_per_byte = 0;
};
std::optional<Line> gather_line(const store::Trace& trace) {
    std::map<std::int64_t, std::int64_t> shortest;  // bytes -> ns
    const Communications communications = match_communications(trace);
    for (const CollectiveMatch& match : communications.matches) {
        const Communication& part = communications.parts[match.begin];
        if (part.row < 0 || part.operation != schema::Operation::all_gather || match.transfer_ns < 0)
            continue;
        const std::int64_t bytes = trace.collectives.bytes[static_cast<std::size_t>(part.row)];
        if (bytes <= 0) continue;
        const auto [at, first] = shortest.try_emplace(bytes, match.transfer_ns);
        if (!first) at->second = std::min(at->second, match.transfer_ns);
    }
    // The sizes must differ enough for a fit.
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

std::string_view unit_name_of(const AdviceFacts& f, const UnitCollective& collective) {
    return collective.unit.known() ? std::string_view(f.unit_ranges.names[collective.unit.at()])
                                   : std::string_view();
}

// How many units a wrap by blocks would make: the largest number of modules of one class that contain
// others.
int block_count(const store::Trace& trace) {
    std::set<int> parents;
    for (const schema::ModuleRow& module : trace.modules) parents.insert(module.parent);
    std::map<std::string_view, int> blocks, leaves;
    for (const schema::ModuleRow& module : trace.modules) {
        if (module.class_name == "FullyShardedDataParallel") continue;
        ++(parents.contains(module.id) ? blocks : leaves)[module.class_name];
    }
    int most = 0;
    for (const auto& [name, count] : blocks) most = std::max(most, count);
    if (most > 1) return most;
    for (const auto& [name, count] : leaves) most = std::max(most, count);
    return std::max(most, kFewestParts);
}

// Fires if one unit has most of the parameters, and causes the peak or has exposed collectives.
void wrap_too_coarse(const AdviceFacts& f, Findings& found) {
    std::int64_t all = 0;
    const schema::UnitRow* unit = nullptr;
    for (const schema::UnitRow& row : f.trace.units) {
        all += row.bytes;
        if (unit == nullptr || row.bytes > unit->bytes) unit = &row;
    }
    if (unit == nullptr || all <= 0 || f.config("parallel.mode") == "ddp") return;
    const double of_model = static_cast<double>(unit->bytes) / static_cast<double>(all);
    if (of_model <= kLargestUnit) return;
    std::int64_t exposed = 0;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.name == unit->name) exposed += row.sum.exposed_ns();
    }
    const double exposed_us = f.per_step_us(exposed);
    const RankMemory* rank = f.highest_peak();
    const std::int64_t unsharded = rank == nullptr
                                       ? 0
                                       : f.at_peak(*rank, schema::MemoryCategory::unsharded_parameters) +
                                             f.at_peak(*rank, schema::MemoryCategory::unsharded_gradients);
    const bool of_peak = rank != nullptr &&
                         static_cast<double>(unsharded) > kUnitShare * static_cast<double>(rank->peak_bytes);
    const bool of_time = f.percent_of_step(exposed_us) > kLargestExposedPercent;
    if (!of_peak && !of_time) return;
    const int parts = block_count(f.trace);
    Finding finding;
    finding.what = fmt::format("Unit {} has {} of the parameters ({}).", shown(unit->name),
                               percent_text(100 * of_model), bytes_text(unit->bytes));
    finding.figures = {{"largest_unit", static_cast<double>(unit->bytes), "bytes"},
                       {"largest_unit_of_model", 100 * of_model, "%"}};
    if (of_peak) {
        finding.what += fmt::format(
            " At the peak of {} (rank {}) gathered parameters and full gradients take {} ({}).",
            bytes_text(rank->peak_bytes), rank->rank, bytes_text(unsharded),
            percent_text(100 * static_cast<double>(unsharded) / static_cast<double>(rank->peak_bytes)));
        finding.figures.insert(finding.figures.begin(),
                               {{"peak", static_cast<double>(rank->peak_bytes), "bytes"},
                                {"unsharded_at_peak", static_cast<double>(unsharded), "bytes"}});
        finding.gain_bytes = unsharded - unsharded / parts;
    }
    if (of_time) {
        finding.what += fmt::format(" No compute hides {}{} ({}) of its collectives.", us_text(exposed_us),
                                    f.a_step(), percent_text(f.percent_of_step(exposed_us)));
        finding.figures.push_back({"exposed", exposed_us, "us/step"});
    }
    const bool blocks = f.config("fsdp.wrap").find("Block") != std::string_view::npos;
    finding.change =
        "Wrap finer, so that only a part of the model is whole at any time and gathers overlap the compute "
        "of other units.";
    finding.job_setting = blocks ? "fsdp.wrap = \"module:Block,Embedding\"" : "fsdp.wrap = \"module:Block\"";
    finding.pytorch =
        "for block in model.layers: fully_shard(block)  # FSDP(model, "
        "auto_wrap_policy=ModuleWrapPolicy({Block}))";
    f.predict_in_parts(
        finding, parts, [&](const UnitCollective& c) { return unit_name_of(f, c) == unit->name; },
        fmt::format("In {} units", parts));
    if (finding.expected.empty())
        finding.expected = "The effect on time is unknown, because the trace has no step.";
    found.push_back(std::move(finding));
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
        "{} units, {} on average: a gather takes {} to start and {} for the bytes, so {}{} is only latency.",
        units.size(), bytes_text(static_cast<std::int64_t>(mean_bytes)), us_text(line->alpha_us),
        us_text(transfer_us), us_text(latency_us), f.a_step());
    finding.figures = {{"units", static_cast<double>(units.size()), ""},
                       {"alpha", line->alpha_us, "us"},
                       {"beta_times_bytes", transfer_us, "us"},
                       {"latency", latency_us, "us/step"}};
    finding.change = "Wrap coarser: blocks instead of their layers.";
    finding.job_setting = "fsdp.wrap = \"module:Block\"";
    finding.pytorch = "FSDP(model, auto_wrap_policy=ModuleWrapPolicy({Block}))  # not {Linear}";
    PathChange change;  // one in kMerged collectives still pays its latency; one in kMerged hooks remains
    change.events.assign(f.trace.device.size(), 1);
    const double spared = line->alpha_us * (1 - 1.0 / kMerged);
    const GraphSources& sources = f.replay.sources();
    for (const UnitCollective& c : f.collectives) {
        const std::int32_t all = sources.joined_of[c.event];
        const std::int64_t ns = all >= 0 ? sources.joined[static_cast<std::size_t>(all)].transfer
                                         : f.trace.device.end[c.event] - f.trace.device.start[c.event];
        change.events[c.event] = std::max(0.0, 1 - spared * 1e3 / std::max(1.0, static_cast<double>(ns)));
    }
    change.apart = f.host_time([&](std::size_t i) {
        const UnitMark mark = unit_name(f.trace.strings[f.trace.ranges.name[i]]).mark;
        return mark == UnitMark::unshard || mark == UnitMark::backward_prefetch ||
               mark == UnitMark::forward_prefetch || mark == UnitMark::post_backward;
    });
    change.apart_factor = 1.0 / kMerged;
    f.predict(finding, change, fmt::format("With {} units merged into one", kMerged));
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
    if (worst == nullptr || 2 * times < rank_steps(f)) return;  // an occasional regather is not a pattern
    const std::int64_t each = worst->sum.gather_bytes / std::max<std::int64_t>(1, worst->sum.gathers);
    Finding finding;
    finding.what = fmt::format(
        "Unit {} is freed and immediately gathered again, {:.2f} times{} and rank: {} that were already "
        "gathered.",
        shown(worst->name), static_cast<double>(times) / static_cast<double>(rank_steps(f)), f.a_step(),
        bytes_text(each));
    finding.figures = {
        {"regathers", static_cast<double>(times) / static_cast<double>(rank_steps(f)), "times/step"},
        {"bytes_each", static_cast<double>(each), "bytes"}};
    finding.change = "Keep the last unit of the forward for the backward that begins with it.";
    finding.pytorch = "fully_shard(last_block, reshard_after_forward=False)";
    PathChange change;  // without its gathers in the backward
    change.events.assign(f.trace.device.size(), 1);
    for (const UnitCollective& c : f.collectives) {
        if (c.gather && c.phase != schema::Phase::forward && unit_name_of(f, c) == worst->name)
            change.events[c.event] = 0;
    }
    f.predict(finding, change, "If it were kept,");
    finding.job_setting = Settings(f).add("fsdp.layout", "lean").text;
    found.push_back(std::move(finding));
}

void regather_by_checkpointing(const AdviceFacts& f, Findings& found) {
    std::map<std::string_view, std::array<std::int64_t, schema::kPhases>> gathers;
    for (const UnitPhase& row : f.units.all_ranks) {
        gathers[row.name][static_cast<std::size_t>(row.phase)] += row.sum.gathers;
    }
    std::string_view unit;
    std::int64_t twice = 0;
    for (const auto& [name, phases] : gathers) {
        const std::int64_t again = std::min(phases[static_cast<std::size_t>(schema::Phase::recompute)],
                                            phases[static_cast<std::size_t>(schema::Phase::backward)]);
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
    PathChange change;
    change.events.assign(f.trace.device.size(), 1);
    for (const UnitCollective& c : f.collectives) {
        const auto phases = gathers.find(unit_name_of(f, c));
        if (c.gather && c.phase == schema::Phase::backward && phases != gathers.end() &&
            phases->second[static_cast<std::size_t>(schema::Phase::recompute)] > 0) {
            change.events[c.event] = 0;
        }
    }
    f.predict(finding, change, "Without the third gathers");
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
    PathChange change;
    change.events.assign(f.trace.device.size(), 1);
    for (const UnitCollective& c : f.collectives) {
        if (c.bytes > 0)
            change.events[c.event] = 1 - static_cast<double>(c.padding) / static_cast<double>(c.bytes);
    }
    f.predict(finding, change, "Without padding");
    finding.change = "Make units larger, or their sizes a multiple of the ranks.";
    finding.job_setting = "fsdp.wrap = \"module:Block\"";
    finding.pytorch = "fully_shard(block)  # not each layer; FSDP2 pads dim 0 of each parameter to the ranks";
    found.push_back(std::move(finding));
}

void empty_shard(const AdviceFacts& f, Findings& found) {
    const auto ranks = static_cast<std::int64_t>(f.trace.ranks.size());
    std::int64_t units = 0;
    const schema::UnitRow* worst = nullptr;
    for (const schema::UnitRow& unit : f.trace.units) {
        const std::int64_t shard =
            unit.shard_bytes > 0 && unit.bytes > 0
                ? static_cast<std::int64_t>(std::llround(static_cast<double>(unit.padded_elements) *
                                                         static_cast<double>(unit.shard_bytes) /
                                                         static_cast<double>(unit.bytes)))
                : 0;
        // Padding of at least one whole shard.
        if (shard <= 0 || unit.padded_elements - unit.elements < shard) continue;
        ++units;
        if (worst == nullptr || unit.elements < worst->elements) worst = &unit;
    }
    if (worst == nullptr || ranks < 2) return;
    Finding finding;
    finding.what =
        fmt::format("{} so small that some rank's shard of {} is only padding; the smallest, {}, has {}.",
                    store::counted(units, "unit is", "units are"), units == 1 ? "it" : "them",
                    shown(worst->name), store::counted(worst->elements, "element", "elements"));
    finding.figures = {{"units", static_cast<double>(units), ""},
                       {"elements", static_cast<double>(worst->elements), ""}};
    finding.change = "Wrap coarser, or leave such modules to the unit around them.";
    finding.job_setting = "fsdp.wrap = \"size:1000000\"";
    finding.pytorch =
        "FSDP(model, auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, "
        "min_num_params=1_000_000))";
    finding.expected = "Unknown, because it depends on the unit that such modules go to.";
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
        if (const RankMemory* rank = f.highest_peak(); rank != nullptr && u.peak_bytes > 1) {
            finding.gain_bytes =
                static_cast<std::int64_t>(static_cast<double>(rank->peak_bytes) * (1 - 1 / u.peak_bytes));
            finding.figures.push_back({"above_the_mean", static_cast<double>(finding.gain_bytes), "bytes"});
            finding.expected = fmt::format("At most {} less on the fullest rank, if all were equal.",
                                           bytes_text(finding.gain_bytes));
        }
        finding.change = "Balance the memory of the ranks: make embeddings and heads units of their own.";
        finding.job_setting = "fsdp.wrap = \"module:Block,Embedding\"";
        finding.pytorch = "fully_shard(model.embedding); fully_shard(model.head)";
    } else {
        finding.what +=
            " Waiting inside collectives counts as busy: the rank with most may be the one that waits.";
        finding.change = "Balance the work of the ranks: equal numbers of tokens, not of samples.";
        finding.job_setting = "data.batch";
        finding.pytorch = "DataLoader(dataset, batch_sampler=a sampler that gives every rank as many tokens)";
        finding.expected = "Unknown, because busy time includes waiting.";
    }
    found.push_back(std::move(finding));
}

constexpr AdviceRule kShardingRules[] = {
    {"wrap-too-coarse", "One unit is too large", wrap_too_coarse},
    {"wrap-too-fine", "Units are too small", wrap_too_fine},
    {"wasted-regather", "A unit is gathered again immediately", wasted_regather},
    {"checkpoint-regather", "Checkpointing gathers once more", regather_by_checkpointing},
    {"padding", "Collectives move padding", padding},
    {"empty-shard", "Ranks hold empty shards", empty_shard},
    {"uneven-ranks", "Ranks are uneven", uneven_ranks},
};

}  // namespace

std::span<const AdviceRule> sharding_rules() {
    return kShardingRules;
}

}  // namespace shardscope::traces::analysis
