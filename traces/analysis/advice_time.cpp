// Rules about time: what a step waits for that it need not.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "traces/analysis/advice_facts.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

using Findings = std::vector<Finding>;

// A rule fires beyond these shares of a step.
constexpr double kExposedPercent = 10, kLoaderPercent = 5, kHostPercent = 10, kWaitingPercent = 5,
                 kCopyPercent = 5, kLimiterPercent = 5;
constexpr double kNeverHidden = 0.95;        // of a gather's time, exposed
constexpr double kLowOccupancyPercent = 25;  // of the compute time's mean
constexpr double kComputePercent = 5;        // of a step: less compute tells nothing of occupancy
constexpr double kUnusedDevicePercent = 20;  // busy less than this
constexpr double kStragglerShare = 0.5;      // of all waiting, for one rank

// --- exposed communication ---------------------------------------------------------------------------------

void exposed_communication(const AdviceFacts& f, Findings& found) {
    std::int64_t ns = 0, gathers = 0, reductions = 0;
    for (const RankOverlap& rank : f.overlap.ranks) ns += rank.sum.exposed_communication;
    const double us = f.per_step_us(ns), share = f.percent_of_step(us);
    if (share <= kExposedPercent) return;
    Finding finding;
    finding.what = fmt::format("{} of each step ({}) is communication that no compute hides.", us_text(us),
                               percent_text(share));
    finding.figures = {{"exposed_communication", us, "us/step"}, {"share_of_step", share, "%"}};
    for (const UnitPhase& row : f.units.all_ranks) {
        gathers += row.sum.gather_exposed_ns;
        reductions += row.sum.reduce_exposed_ns;
    }
    if (f.units.any_unit && gathers + reductions > 0) {
        const auto most = std::max_element(
            f.units.all_ranks.begin(), f.units.all_ranks.end(),
            [](const auto& a, const auto& b) { return a.sum.exposed_ns() < b.sum.exposed_ns(); });
        finding.figures.push_back({"exposed_gathers", f.per_step_us(gathers), "us/step"});
        finding.figures.push_back({"exposed_reductions", f.per_step_us(reductions), "us/step"});
        finding.what +=
            fmt::format(" Gathers are exposed for {}, reductions for {}; most comes from {} in {} ({}).",
                        us_text(f.per_step_us(gathers)), us_text(f.per_step_us(reductions)),
                        shown(most->name), name(most->phase), us_text(f.per_step_us(most->sum.exposed_ns())));
    }
    finding.change =
        "Give the collectives compute to hide behind (a larger batch, prefetching), or move fewer bytes "
        "(bf16, "
        "sharding within a node).";
    if (f.config("parallel.mode") == "ddp") {
        finding.job_setting =
            "data.batch = ... (larger), ddp.bucket_cap_mb = ..., precision.reduce = \"bf16\"";
        finding.pytorch = "DistributedDataParallel(model, bucket_cap_mb=..., gradient_as_bucket_view=True)";
    } else {
        finding.job_setting =
            "data.batch = ... (larger), precision.param = \"bf16\", fsdp.sharding_strategy = "
            "\"HYBRID_SHARD\"";
        finding.pytorch =
            "fully_shard(model, mesh=mesh_2d, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))";
    }
    finding.expected =
        f.expect(PathKind::communication, 0, "Were collectives free once all ranks take part,");
    found.push_back(std::move(finding));
}

// The first gather of a step has nothing to hide behind: the rows of the unit that is used first.
bool first_of_forward(const AdviceFacts& f, const UnitPhase& row) {
    const auto first = std::find_if(f.units.all_ranks.begin(), f.units.all_ranks.end(), [](const auto& r) {
        return r.phase == Phase::forward && r.sum.gathers > 0;
    });
    return first != f.units.all_ranks.end() && &*first == &row;
}

void gather_never_hidden(const AdviceFacts& f, Findings& found) {
    const UnitPhase* worst = nullptr;
    std::int64_t rows = 0, exposed = 0, limiter = 0;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.sum.gathers == 0 || row.sum.gather_ns <= 0 || row.name == "(no unit)") continue;
        if (first_of_forward(f, row)) continue;
        if (static_cast<double>(row.sum.gather_exposed_ns) <
            kNeverHidden * static_cast<double>(row.sum.gather_ns)) {
            continue;
        }
        ++rows;
        exposed += row.sum.gather_exposed_ns;
        limiter += row.sum.limiter_ns;
        if (worst == nullptr || row.sum.gather_exposed_ns > worst->sum.gather_exposed_ns) worst = &row;
    }
    const double us = f.per_step_us(exposed);
    if (!f.units.any_unit || worst == nullptr || f.percent_of_step(us) < 1) return;
    Finding finding;
    finding.what = fmt::format(
        "The gather of {} in {} is never overlapped: {} of its {} are exposed. With all such gathers (phases "
        "of "
        "units: {}) that is {} a step ({}).",
        shown(worst->name), name(worst->phase), us_text(f.per_step_us(worst->sum.gather_exposed_ns)),
        us_text(f.per_step_us(worst->sum.gather_ns)), rows, us_text(us), percent_text(f.percent_of_step(us)));
    finding.figures = {{"units_never_hidden", static_cast<double>(rows), ""},
                       {"exposed_gathers", us, "us/step"},
                       {"limiter_before_them", f.per_step_us(limiter), "us/step"}};
    const bool forward = worst->phase == Phase::forward;
    if (f.config("fsdp.backward_prefetch") == "NONE" && !forward) {
        finding.change = "Backward prefetching is off: gather the next unit while this one computes.";
        finding.job_setting = "fsdp.backward_prefetch = \"BACKWARD_PRE\"";
        finding.pytorch = "FSDP(model, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)";
    } else if (static_cast<double>(limiter) > 0.5 * static_cast<double>(exposed)) {
        finding.change =
            "The limiter holds these gathers until it is too late: let it go or make units smaller.";
        finding.job_setting = "fsdp.limit_all_gathers = false";
        finding.pytorch = "FSDP(model, limit_all_gathers=False)";
    } else {
        finding.change =
            "Gather earlier, or split the unit so that others compute while its parts are gathered.";
        finding.job_setting = forward ? "fsdp.forward_prefetch = true" : "fsdp.wrap = \"module:Block\"";
        finding.pytorch = forward ? "FSDP(model, forward_prefetch=True)  # fully_shard: "
                                    "layer.set_modules_to_forward_prefetch([next_layer])"
                                  : "layer.set_modules_to_backward_prefetch([previous_layer])";
    }
    finding.expected =
        f.expect(PathKind::communication, 0, "Were collectives free once all ranks take part,");
    found.push_back(std::move(finding));
}

void prefetch_mistarget(const AdviceFacts& f, Findings& found) {
    if (f.config("fsdp.backward_prefetch") != "BACKWARD_POST") return;
    std::int64_t gather = 0, exposed = 0;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.phase != Phase::backward) continue;
        gather += row.sum.gather_ns;
        exposed += row.sum.gather_exposed_ns;
    }
    if (gather <= 0 || 10 * exposed <= gather) return;
    Finding finding;
    const double share = 100 * static_cast<double>(exposed) / static_cast<double>(gather);
    finding.what = fmt::format(
        "With BACKWARD_POST {} of the backward gathers' time is exposed: the next unit is asked for only "
        "after "
        "this one's backward.",
        percent_text(share));
    finding.figures = {{"exposed_backward_gathers", f.per_step_us(exposed), "us/step"},
                       {"share_of_backward_gathers", share, "%"}};
    finding.change = "Ask for the next unit before this one's backward; that holds one more unit in memory.";
    finding.job_setting = "fsdp.backward_prefetch = \"BACKWARD_PRE\"";
    finding.pytorch = "FSDP(model, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)";
    found.push_back(std::move(finding));
}

void limiter_stall(const AdviceFacts& f, Findings& found) {
    std::int64_t limiter = 0, wait = 0;
    for (const UnitPhase& row : f.units.all_ranks) {
        if (row.sum.limiter_ns <= 0) continue;
        limiter += row.sum.limiter_ns;
        wait += row.sum.wait_ns;  // of gathers that the limiter held
    }
    const double limiter_us = f.per_step_us(limiter), wait_us = f.per_step_us(wait);
    if (f.percent_of_step(limiter_us) <= kLimiterPercent || f.percent_of_step(wait_us) <= kLimiterPercent)
        return;
    Finding finding;
    finding.what = fmt::format(
        "The limiter holds the host for {} a step, and compute then waits {} ({}) for the units that it held "
        "up.",
        us_text(limiter_us), us_text(wait_us), percent_text(f.percent_of_step(wait_us)));
    finding.figures = {{"limiter", limiter_us, "us/step"}, {"wait_for_gathers", wait_us, "us/step"}};
    finding.change = "Where memory allows, let gathers run further ahead.";
    finding.job_setting = "fsdp.limit_all_gathers = false";
    finding.pytorch = "FSDP(model, limit_all_gathers=False)";
    found.push_back(std::move(finding));
}

// --- who else is waited for
// ---------------------------------------------------------------------------------

void straggling_rank(const AdviceFacts& f, Findings& found) {
    std::map<int, double> waited;
    double all = 0, paths = 0;
    for (const RankPath& rank : f.path.ranks) {
        if (rank.steps.empty()) continue;
        ++paths;
        for (const RankTime& other : rank.ranks) {
            waited[other.rank] += other.us;
            all += other.us;
        }
    }
    if (paths < 2 || all <= 0) return;
    const auto most = std::max_element(waited.begin(), waited.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const double mean = all / paths, share = most->second / all;
    if (f.percent_of_step(mean) <= kWaitingPercent || share <= kStragglerShare) return;
    // Two ranks wait for each other half the time each, by chance.
    if (paths < 3 && share < 0.75) return;
    Finding finding;
    finding.what = fmt::format(
        "Rank {} comes last: on their critical paths the ranks wait {} a step ({}) for others, {} of it for "
        "this "
        "one.",
        most->first, us_text(mean), percent_text(f.percent_of_step(mean)), percent_text(100 * share));
    finding.figures = {{"rank", static_cast<double>(most->first), ""},
                       {"waiting", mean, "us/step"},
                       {"share_for_this_rank", 100 * share, "%"}};
    finding.change =
        "Look at what that rank does longer (compare --by kernel, its host and device): uneven "
        "batches, a slower device or host, another job on it.";
    finding.job_setting = "data.batch, data.workers; run.processes where ranks share cores";
    finding.pytorch = "DataLoader(dataset, batch_sampler=a sampler that gives every rank as many tokens)";
    finding.expected = f.expect(PathKind::waiting, 0, "Were no rank waited for,");
    found.push_back(std::move(finding));
}

void slow_data_loader(const AdviceFacts& f, Findings& found) {
    double us = 0, ranks = 0;
    for (const RankSummary& rank : f.summary.ranks) {
        if (rank.steps.empty()) continue;
        us += rank.average_us[static_cast<std::size_t>(TimeCategory::data_loader)];
        ++ranks;
    }
    if (ranks > 0) us /= ranks;
    if (f.percent_of_step(us) <= kLoaderPercent) return;
    Finding finding;
    finding.what = fmt::format("{} of each step ({}) the device has nothing to do and the host loads data.",
                               us_text(us), percent_text(f.percent_of_step(us)));
    finding.figures = {{"data_loader", us, "us/step"}, {"share_of_step", f.percent_of_step(us), "%"}};
    finding.change = "Load batches beside the training.";
    finding.job_setting = "data.workers = 2";
    finding.pytorch =
        "DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True, "
        "prefetch_factor=4)";
    found.push_back(std::move(finding));
}

void host_bound(const AdviceFacts& f, Findings& found) {
    double idle = 0, span = 0;
    for (const RankIdle& rank : f.idle.ranks) {
        idle += static_cast<double>(rank.device.gap(GapKind::host_wait).ns);
        span += static_cast<double>(rank.device.span);
    }
    const double share = span > 0 ? 100 * idle / span : 0;
    if (share <= kHostPercent) return;
    Finding finding;
    finding.what = fmt::format(
        "{} of the devices' time they stand still because the host has launched nothing yet; on the critical "
        "path "
        "the host takes {} a step ({}).",
        percent_text(share), us_text(f.on_path_us(PathKind::host)),
        percent_text(f.percent_of_step(f.on_path_us(PathKind::host))));
    finding.figures = {{"host_wait", share, "%"}, {"host_on_path", f.on_path_us(PathKind::host), "us/step"}};
    finding.change =
        "Launch less and larger work, let the host run ahead (no .item() or print in the loop), "
        "compile or capture the step.";
    finding.job_setting = "data.batch = ... (larger), train.clip_norm = 0";
    finding.pytorch = "model = torch.compile(model, mode=\"reduce-overhead\")";
    finding.expected = f.expect(PathKind::host, 0.5, "Were the host twice as fast,");
    found.push_back(std::move(finding));
}

void offload_copies(const AdviceFacts& f, Findings& found) {
    const double us = f.on_path_us(PathKind::memcpy);
    const bool offload = f.config("fsdp.cpu_offload") == "true";
    if (f.percent_of_step(us) <= kCopyPercent) return;
    Finding finding;
    finding.what = fmt::format("Copies lie on the critical path for {} a step ({}){}.", us_text(us),
                               percent_text(f.percent_of_step(us)),
                               offload ? "; parameters and gradients are offloaded to the host" : "");
    finding.figures = {{"copies_on_path", us, "us/step"}, {"share_of_step", f.percent_of_step(us), "%"}};
    finding.change = offload ? "Keep the shards on the device if they fit, or shard over more ranks instead."
                             : "Copy from pinned memory on a stream of its own, before the data is needed.";
    finding.job_setting = offload ? "fsdp.cpu_offload = false" : "data.workers = 2";
    finding.pytorch = offload ? "fully_shard(model, offload_policy=OffloadPolicy())"
                              : "DataLoader(dataset, pin_memory=True); batch.to(device, non_blocking=True)";
    finding.expected = f.expect(PathKind::memcpy, 0, "Were copies free,");
    found.push_back(std::move(finding));
}

// --- the device
// ----------------------------------------------------------------------------------------------

void low_occupancy(const AdviceFacts& f, Findings& found) {
    double weighted = 0, known = 0, all = 0, most = 0;
    std::string_view largest;
    for (const RankKernels& rank : f.kernels.ranks) {
        for (const KernelStats& kernel : rank.kernels) {
            if (kernel.communication) continue;
            const auto total = static_cast<double>(kernel.total);
            all += total;
            if (!kernel.occupancy_percent) continue;
            known += total;
            weighted += total * *kernel.occupancy_percent;
            if (*kernel.occupancy_percent < kLowOccupancyPercent && total > most) {
                most = total;
                largest = kernel.name;
            }
        }
    }
    if (f.percent_of_step(f.per_step_us(static_cast<std::int64_t>(all))) < kComputePercent) return;
    if (known < 0.5 * all || known <= 0 || weighted / known >= kLowOccupancyPercent) return;
    Finding finding;
    finding.what = fmt::format(
        "The compute kernels' achieved occupancy is {} in the mean; the longest of those that stay low is "
        "{}.",
        percent_text(weighted / known), shown(largest));
    finding.figures = {{"occupancy", weighted / known, "%"}};
    finding.change =
        "Give kernels more work at once: a larger batch or sequence, fused kernels. (Matrix kernels on "
        "tensor cores may run well at low occupancy: look at their rate first.)";
    finding.job_setting = "data.batch = ... (larger)";
    finding.pytorch = "model = torch.compile(model)";
    found.push_back(std::move(finding));
}

void idle_device(const AdviceFacts& f, Findings& found) {
    // A memory snapshot knows nothing of what devices did.
    if (std::none_of(f.idle.ranks.begin(), f.idle.ranks.end(),
                     [](const RankIdle& r) { return r.device.busy > 0; })) {
        return;
    }
    for (const RankMemory& memory : f.memory.ranks) {
        if (memory.peak_bytes <= 0) continue;
        const auto rank = std::find_if(f.idle.ranks.begin(), f.idle.ranks.end(),
                                       [&](const RankIdle& r) { return r.rank == memory.rank; });
        const auto steps = std::find_if(f.summary.ranks.begin(), f.summary.ranks.end(),
                                        [&](const RankSummary& r) { return r.rank == memory.rank; });
        if (steps == f.summary.ranks.end() || steps->steps.empty()) continue;
        double windows = 0;
        for (const StepSummary& s : steps->steps) {
            windows += static_cast<double>(s.window_end - s.window_start);
        }
        const double busy = rank == f.idle.ranks.end() ? 0 : static_cast<double>(rank->device.busy);
        const double share = windows > 0 ? std::min(100.0, 100 * busy / windows) : 100;
        if (share >= kUnusedDevicePercent) continue;
        Finding finding;
        finding.what = fmt::format("Rank {}'s device holds {} and works {} of the time.", memory.rank,
                                   bytes_text(memory.peak_bytes), percent_text(share));
        finding.figures = {{"rank", static_cast<double>(memory.rank), ""},
                           {"busy", share, "%"},
                           {"peak", static_cast<double>(memory.peak_bytes), "bytes"}};
        finding.change = "Use fewer devices, or give each more work.";
        finding.job_setting = "run.ranks = ... (fewer), data.batch = ... (larger)";
        finding.pytorch = "torchrun --nproc-per-node=... (fewer)";
        found.push_back(std::move(finding));
    }
}

constexpr AdviceRule kRules[] = {
    {"exposed-communication", "Communication is exposed", exposed_communication},
    {"prefetch-miss", "A gather is never overlapped", gather_never_hidden},
    {"prefetch-mistarget", "Prefetching comes too late", prefetch_mistarget},
    {"limiter-stall", "The all-gather limiter stalls compute", limiter_stall},
    {"straggler", "A rank is waited for", straggling_rank},
    {"data-loader", "The data loader is slow", slow_data_loader},
    {"host-bound", "The host does not keep up", host_bound},
    {"copies-on-path", "Copies hold up the step", offload_copies},
    {"low-occupancy", "Kernels leave the device half empty", low_occupancy},
    {"idle-device", "A device that holds memory idles", idle_device},
};

}  // namespace

std::span<const AdviceRule> time_rules() {
    return kRules;
}

}  // namespace shardscope::traces
