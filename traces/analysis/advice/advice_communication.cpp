// Rules about communication that compute does not hide, and about the reasons.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/advice/advice_links.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

using Findings = std::vector<Finding>;

// A rule fires above these shares of a step.
constexpr double kExposedPercent = 10, kLimiterPercent = 5, kLatePercent = 5, kWorthPercent = 0.5;
constexpr double kHostCommunicationPercent = 10;
constexpr double kUnevenWaiting = 0.5;    // (longest wait - shortest wait) / longest wait
constexpr double kNeverHidden = 0.95;     // exposed share of a gather's time
constexpr double kPrefetchExposed = 0.1;  // exposed share of the backward gathers' time
constexpr int kBuckets = 8;               // number of buckets that one late reduction is split into
constexpr double kFewReductions = 2;      // per step: so few run at the end of the backward, not during it

// --- exposed communication ---------------------------------------------------------------------------------

void exposed_communication(const AdviceFacts& f, Findings& found) {
    const double us = f.exposed.all_us, share = f.percent_of_step(us);
    if (share <= kExposedPercent) return;
    Finding finding;
    finding.what =
        fmt::format("{} of {} ({}) is communication that no compute hides, without the wait for late ranks.",
                    us_text(us), f.each_step(), percent_text(share));
    finding.figures = {{"exposed_communication", us, "us/step"}, {"share_of_step", share, "%"}};
    if (f.exposed.gathers_us + f.exposed.reductions_us > 0) {
        finding.figures.push_back({"exposed_gathers", f.exposed.gathers_us, "us/step"});
        finding.figures.push_back({"exposed_reductions", f.exposed.reductions_us, "us/step"});
        finding.what += fmt::format(" Gathers are exposed for {}, reductions for {}.",
                                    us_text(f.exposed.gathers_us), us_text(f.exposed.reductions_us));
    }
    finding.change =
        "Give the collectives compute to hide behind (a larger batch), or move fewer bytes (smaller types, "
        "sharding within a node).";
    Settings settings(f);
    const bool fp16 = f.config("precision.param") == "fp16";
    const char* narrow = fp16 ? "fp16" : "bf16";  // what moves the same bytes is kept
    settings.add("data.batch", "", "data.batch = ... (larger)").add("precision.param", narrow);
    if (f.exposed.reductions_us > 0) settings.add("precision.reduce", narrow);
    const bool halved = fp16 || f.config("precision.param") == "bf16";
    if (f.config("parallel.mode") == "ddp") {
        finding.pytorch = "DistributedDataParallel(model, gradient_as_bucket_view=True)";
    } else {
        std::set<std::string_view> hosts;
        for (const store::Rank& rank : f.trace.ranks) hosts.insert(rank.host);
        const bool hybrid = f.config("fsdp.sharding_strategy").find("HYBRID") != std::string_view::npos;
        if (hosts.size() > 1 && !hybrid) settings.add("fsdp.sharding_strategy", "HYBRID_SHARD");
        finding.pytorch = halved ? "fully_shard(model, mesh=mesh_2d)"
                                 : "fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype="
                                   "torch.bfloat16))";
    }
    finding.job_setting = settings.text;
    PathChange change;
    change.factors[static_cast<std::size_t>(PathKind::communication)] = 0.5;
    f.predict(finding, change, "If collectives were twice as fast,");
    found.push_back(std::move(finding));
}

// --- slow links --------------------------------------------------------------------------------------------

void slow_link(const AdviceFacts& f, Findings& found) {
    const LinkReport& links = f.links;
    if (!links.slow) return;
    PathChange change;
    change.events = links.event_factors;
    Finding finding;
    finding.what = fmt::format(
        "Large collectives {}{} take {:.1f} times as long as {}.",
        links.between ? "between hosts" : "within a host",
        links.where.empty() ? "" : " (" + links.where + ")", links.times,
        links.by_groups ? "the same collectives of other groups" : "the links' nominal bandwidth suggests");
    finding.figures = {{"slower", links.times, "x"},
                       {"transfer", f.per_step_us(links.transfer_ns), "us/step"}};
    const bool nccl = f.backend() == "NCCL";
    finding.change = fmt::format(
        "Measure that link alone{}, check its adapter's errors and speed, and remove the host from the job "
        "if it stays slow.",
        nccl ? " (nccl-tests)" : "");
    if (nccl) {
        finding.pytorch =
            "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET  # which adapters are used, and how fast they are";
    }
    f.predict(finding, change, "If that link were as fast as the others,");
    if (f.percent_of_step(finding.gain_us.value_or(0)) < kWorthPercent) return;
    found.push_back(std::move(finding));
}

// --- prefetching -------------------------------------------------------------------------------------------

// Predicts the gain of issuing gathers one unit earlier.
void predict_early(const AdviceFacts& f, Finding& finding,
                   const std::function<bool(const UnitCollective&)>& accept) {
    PathChange change;
    change.early.assign(f.trace.device.size(), false);
    for (const UnitCollective& collective : f.collectives) {
        if (collective.gather && accept(collective)) change.early[collective.event] = true;
    }
    f.predict(finding, change, "If these gathers were issued one unit earlier,", f.transfers_us);
}

std::string_view name_of(const AdviceFacts& f, const UnitCollective& collective) {
    return collective.unit.known() ? std::string_view(f.unit_ranges.names[collective.unit.at()])
                                   : "(no unit)";
}

// Whether the row is the unit that a step uses first, whose gather no compute can hide.
bool first_of_forward(const AdviceFacts& f, const UnitPhase& row) {
    const auto first = std::find_if(f.units.all_ranks.begin(), f.units.all_ranks.end(), [](const auto& r) {
        return r.phase == schema::Phase::forward && r.sum.gathers > 0;
    });
    return first != f.units.all_ranks.end() && &*first == &row;
}

// The share of the backward's gathers that is exposed.
struct BackwardGathers {
    std::int64_t all = 0, exposed = 0;
    double share() const { return all > 0 ? static_cast<double>(exposed) / static_cast<double>(all) : 0; }
};
BackwardGathers backward_gathers(const AdviceFacts& f) {
    BackwardGathers sum;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.phase != schema::Phase::backward) continue;
        sum.all += row.sum.gather_ns;
        sum.exposed += row.sum.gather_exposed_ns;
    }
    return sum;
}

// Fires if the job's own backward prefetch is off, or comes after a unit's gradients.
void backward_prefetch(const AdviceFacts& f, std::string_view setting, std::string_view because,
                       Findings& found) {
    if (f.config("fsdp.backward_prefetch") != setting) return;
    const BackwardGathers gathers = backward_gathers(f);
    if (gathers.share() <= kPrefetchExposed) return;
    Finding finding;
    finding.what = fmt::format("With {} {} of the backward gathers' time is exposed: {}.", setting,
                               percent_text(100 * gathers.share()), because);
    finding.figures = {{"exposed_backward_gathers", f.per_step_us(gathers.exposed), "us/step"},
                       {"share_of_backward_gathers", 100 * gathers.share(), "%"}};
    finding.change = "Gather the next unit before this one's gradients; this keeps one more unit in memory.";
    finding.job_setting = "fsdp.backward_prefetch = \"BACKWARD_PRE\"";
    finding.pytorch = "FSDP(model, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)";
    predict_early(f, finding, [](const UnitCollective& c) { return c.phase == schema::Phase::backward; });
    if (f.percent_of_step(*finding.gain_us) < kWorthPercent) return;
    found.push_back(std::move(finding));
}

void prefetch_off(const AdviceFacts& f, Findings& found) {
    backward_prefetch(f, "NONE", "each unit's gather is issued only when its backward begins", found);
}

void prefetch_mistarget(const AdviceFacts& f, Findings& found) {
    backward_prefetch(f, "BACKWARD_POST", "the next unit's gather is issued only after this one's gradients",
                      found);
}

void gather_never_hidden(const AdviceFacts& f, Findings& found) {
    if (f.config("fsdp.backward_prefetch") == "NONE") return;  // handled by prefetch-off
    const UnitPhase* worst = nullptr;
    std::int64_t exposed = 0, limiter = 0;
    std::set<std::pair<std::string_view, schema::Phase>> rows;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.sum.gathers == 0 || row.sum.gather_ns <= 0 || row.name == "(no unit)") continue;
        if (first_of_forward(f, row)) continue;
        if (static_cast<double>(row.sum.gather_exposed_ns) <
            kNeverHidden * static_cast<double>(row.sum.gather_ns)) {
            continue;
        }
        rows.emplace(row.name, row.phase);
        exposed += row.sum.gather_exposed_ns;
        limiter += row.sum.limiter_ns;
        if (worst == nullptr || row.sum.gather_exposed_ns > worst->sum.gather_exposed_ns) worst = &row;
    }
    const double us = f.per_step_us(exposed);
    if (!f.units.any_unit || worst == nullptr || f.percent_of_step(us) < 1) return;
    Finding finding;
    finding.what = fmt::format(
        "The gather of {} in {} is never overlapped: {} of its {} are exposed. With all such gathers (phases "
        "of units: {}) that is {}{} ({}).",
        shown(worst->name), name(worst->phase), us_text(f.per_step_us(worst->sum.gather_exposed_ns)),
        us_text(f.per_step_us(worst->sum.gather_ns)), rows.size(), us_text(us), f.a_step(),
        percent_text(f.percent_of_step(us)));
    finding.figures = {{"units_never_hidden", static_cast<double>(rows.size()), ""},
                       {"exposed_gathers", us, "us/step"},
                       {"limiter_before_them", f.per_step_us(limiter), "us/step"}};
    const bool forward = worst->phase == schema::Phase::forward;
    finding.change = "Gather earlier, or split the unit so that others compute while its parts are gathered.";
    if (forward) {
        finding.job_setting = Settings(f).add("fsdp.forward_prefetch", "true").text;
        finding.pytorch =
            "FSDP(model, forward_prefetch=True)  # fully_shard: "
            "layer.set_modules_to_forward_prefetch([next_layer])";
    } else {
        finding.job_setting = Settings(f).add("fsdp.backward_prefetch", "BACKWARD_PRE").text;
        finding.pytorch = "layer.set_modules_to_backward_prefetch([previous_layer])";
    }
    const auto never_hidden = [&](const UnitCollective& c) {
        return rows.contains({name_of(f, c), c.phase});
    };
    if (finding.job_setting.empty()) {  // the job already issues them that early
        finding.change = "Split the unit, so that others compute while its parts are gathered.";
        finding.job_setting = "fsdp.wrap = ... (smaller modules)";
        finding.pytorch = "fully_shard(each smaller module); ModuleWrapPolicy({SmallerModule})";
        f.predict_in_parts(finding, 2, never_hidden, "If these units were gathered in two parts,");
    } else {
        predict_early(f, finding, never_hidden);
    }
    if (f.percent_of_step(*finding.gain_us) < kWorthPercent) return;  // the link is always busy
    found.push_back(std::move(finding));
}

void limiter_stall(const AdviceFacts& f, Findings& found) {
    if (f.unit_ranges.limiters.empty()) return;
    std::int64_t limiter = 0, wait = 0;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.sum.limiter_ns <= 0) continue;
        limiter += row.sum.limiter_ns;
        wait += row.sum.wait_ns;  // for gathers that the limiter delayed
    }
    const double limiter_us = f.per_step_us(limiter), wait_us = f.per_step_us(wait);
    if (f.percent_of_step(limiter_us) <= kLimiterPercent || f.percent_of_step(wait_us) <= kLimiterPercent)
        return;
    PathChange change;  // the host does not wait, and its work starts when the stream is free
    std::vector<bool> is_limiter(f.trace.ranges.size(), false);
    for (const std::int32_t range : f.unit_ranges.limiters)
        is_limiter[static_cast<std::size_t>(range)] = true;
    change.unheld.assign(f.trace.runtime.size(), false);
    for (std::size_t call = 0; call < f.trace.runtime.size(); ++call) {
        const std::int32_t range = f.trace.runtime.range[call];
        change.unheld[call] = range >= 0 && is_limiter[static_cast<std::size_t>(range)];
    }
    change.apart = f.host_time([&](std::size_t i) { return is_limiter[i]; });
    change.apart_factor = 0;
    change.alone.assign(f.trace.device.size(), false);
    for (const UnitCollective& c : f.collectives) change.alone[c.event] = c.gather;
    Finding finding;
    f.predict(finding, change, "Without the limiter");
    // Running ahead gains nothing if the link is always busy.
    if (f.percent_of_step(finding.gain_us.value_or(0)) < kWorthPercent) return;
    finding.what = fmt::format(
        "The limiter blocks the host for {}{}, and compute then waits {} ({}) for the units that it delayed.",
        us_text(limiter_us), f.a_step(), us_text(wait_us), percent_text(f.percent_of_step(wait_us)));
    finding.figures = {{"limiter", limiter_us, "us/step"}, {"wait_for_gathers", wait_us, "us/step"}};
    finding.change = "If memory allows, let gathers run further ahead.";
    finding.job_setting = "fsdp.limit_all_gathers = false";
    finding.pytorch = "FSDP(model, limit_all_gathers=False)";
    found.push_back(std::move(finding));
}

// --- reductions after the backward -------------------------------------------------------------------------

void late_reduction(const AdviceFacts& f, Findings& found) {
    if (f.config("parallel.mode") == "fsdp") return;  // handled by wrap-too-coarse
    std::int64_t reductions = 0, bytes = 0;
    for (const UnitCollective& c : f.collectives) {
        if (c.gather) return;
        ++reductions;
        bytes += c.bytes;
    }
    const double each_step =
        static_cast<double>(reductions) / static_cast<double>(std::max<std::int64_t>(1, f.units.rank_steps));
    if (reductions == 0 || each_step > kFewReductions ||
        f.percent_of_step(f.exposed.reductions_us) <= kLatePercent) {
        return;
    }
    Finding finding;
    finding.what = fmt::format(
        "All gradients are reduced in {:.3g} {}{} of {}, {} of it exposed: reduction begins only when the "
        "backward is over.",
        each_step, each_step == 1 ? "collective" : "collectives", f.a_step(), bytes_text(bytes / reductions),
        us_text(f.exposed.reductions_us));
    finding.figures = {{"exposed_reductions", f.exposed.reductions_us, "us/step"},
                       {"reductions", each_step, "times/step"}};
    finding.change = "Reduce in smaller buckets, during the backward.";
    finding.job_setting = Settings(f).add("ddp.bucket_cap_mb", "25").text;
    finding.pytorch = "DistributedDataParallel(model, bucket_cap_mb=25)";
    f.predict_in_parts(
        finding, kBuckets, [](const UnitCollective&) { return true; },
        fmt::format("In {} buckets", kBuckets));
    if (f.percent_of_step(*finding.gain_us) < kWorthPercent) return;
    found.push_back(std::move(finding));
}

// --- on host threads ---------------------------------------------------------------------------------------

void host_threads_communicate(const AdviceFacts& f, Findings& found) {
    const HostCommunication& c = f.on_host;
    const double share = f.percent_of_any_step(c.us);
    if (c.library.empty() || share <= kHostCommunicationPercent) return;
    Finding finding;
    finding.what = fmt::format("{} communicates on host threads for {} of {} ({}), in {:.3g} collectives",
                               c.library, us_text(c.us), f.each_step(), percent_text(share), c.count);
    if (c.bytes > 0) finding.what += fmt::format(" of {} together", bytes_text(c.bytes));
    finding.what += ".";
    finding.figures = {{"host_communication", c.us, "us/step"},
                       {"share_of_step", share, "%"},
                       {"collectives", c.count, "times/step"}};
    if (c.bytes > 0) finding.figures.push_back({"bytes", static_cast<double>(c.bytes), "bytes/step"});
    if (c.waiting_us > 0) {
        finding.what += fmt::format(" On average a rank waits {} of it for others.", us_text(c.waiting_us));
        finding.figures.push_back({"waiting", c.waiting_us, "us/step"});
    }
    if (c.waited_for >= 0 && c.most_waiting_us - c.least_waiting_us >= kUnevenWaiting * c.most_waiting_us) {
        finding.what += fmt::format(" Rank {} waits least: the others wait for it.", c.waited_for);
        finding.figures.push_back({"last_rank", static_cast<double>(c.waited_for), ""});
    }
    finding.change =
        "Reduce less often (accumulate gradients over several batches), in smaller types, and leave cores to "
        "the threads that communicate.";
    finding.pytorch =
        "with model.no_sync(): loss.backward()  # all batches but the last; fully_shard: "
        "model.set_requires_gradient_sync(False)";
    finding.expected =
        "Unknown, because host threads execute the collectives, and a replay moves only device work.";
    found.push_back(std::move(finding));
}

constexpr AdviceRule kCommunicationRules[] = {
    {"exposed-communication", "Communication is exposed", exposed_communication},
    {"host-communication", "Host threads communicate", host_threads_communicate},
    {"slow-link", "A link is slow", slow_link},
    {"prefetch-off", "Backward prefetching is off", prefetch_off},
    {"prefetch-miss", "A gather is never overlapped", gather_never_hidden},
    {"prefetch-mistarget", "Prefetching comes too late", prefetch_mistarget},
    {"limiter-stall", "The all-gather limiter stalls compute", limiter_stall},
    {"late-reduction", "Gradients are reduced after the backward", late_reduction},
};

}  // namespace

std::span<const AdviceRule> communication_rules() {
    return kCommunicationRules;
}

}  // namespace shardscope::traces::analysis
