// Rules about time other than communication: ranks, hosts, loaders and copies that delay a step, and idle
// devices.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/base/percentile.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

using Findings = std::vector<Finding>;

// A rule fires above these shares of a step.
constexpr double kLoaderPercent = 5, kHostPercent = 10, kWaitingPercent = 5, kCopyPercent = 5;
constexpr double kLowOccupancyPercent = 25;  // mean over the compute time
constexpr double kComputePercent = 5;        // of a step: with less compute, occupancy is not judged
constexpr double kUnusedDevicePercent = 20;  // devices that are busy less than this count as unused
// Share of all waiting that is for one rank; the second applies to two ranks.
constexpr double kStragglerShare = 0.5, kStragglerShareOfTwo = 0.75;
constexpr double kSlower = 1.05;  // factor over the other ranks' median

// --- the rank that the others wait for ---------------------------------------------------------------------

void straggling_rank(const AdviceFacts& f, Findings& found) {
    const std::optional<WaitingForOne> waiting = waiting_for_one(f);
    // `stragglers` determines which rank arrives last; if the two differ, what_cannot_be_said() names both.
    if (!waiting || waiting->rank != latest_rank(f.stragglers)) return;
    const store::RankIndex at = f.trace.rank_of_number(waiting->rank);
    if (!at.known()) return;
    const std::size_t slow = at.at();
    const Slowness slowness = slowness_of(f, slow);
    Finding finding;
    finding.what = fmt::format(
        "Rank {} arrives last: on their critical paths, the ranks wait {}{} ({}) for others, {} of that for "
        "rank {}. Compared with the others' median, {}.",
        waiting->rank, us_text(waiting->mean_us), f.a_step(),
        percent_text(f.percent_of_step(waiting->mean_us)), percent_text(100 * waiting->share), waiting->rank,
        slowness.words.empty() ? "its compute, copies and host take no longer: the cause is unknown"
                               : slowness.words);
    finding.figures = {{"rank", static_cast<double>(waiting->rank), ""},
                       {"waiting", waiting->mean_us, "us/step"},
                       {"share_for_this_rank", 100 * waiting->share, "%"}};
    finding.change =
        "Find what takes longer on that rank (compare --by kernel, its host and device): uneven "
        "batches, a slower device or host, another job on it.";
    finding.job_setting = "data.batch, data.workers; run.processes where ranks share cores";
    finding.pytorch = "DataLoader(dataset, batch_sampler=a sampler that gives every rank as many tokens)";
    PathChange change;
    if (slowness.words.empty()) {
        change.factors[static_cast<std::size_t>(PathKind::waiting)] = 0;
    } else {
        change.ranks.assign(f.trace.ranks.size(), kUnscaled);
        change.ranks[slow] = slowness.factors;
    }
    f.predict(finding, change, fmt::format("If rank {} were as fast as the others,", waiting->rank));
    found.push_back(std::move(finding));
}

// --- the host ----------------------------------------------------------------------------------------------

void slow_data_loader(const AdviceFacts& f, Findings& found) {
    if (!f.device_work) return;  // without device work it is unknown what the device waits for
    double us = 0, ranks = 0;
    for (const RankSummary& rank : f.summary.ranks) {
        if (rank.steps.empty()) continue;
        us += rank.average_us[static_cast<std::size_t>(TimeCategory::data_loader)];
        ++ranks;
    }
    if (ranks > 0) us /= ranks;
    if (f.percent_of_step(us) <= kLoaderPercent) return;
    Finding finding;
    finding.what = fmt::format("For {} of {} ({}) the device is idle and the host loads data.", us_text(us),
                               f.each_step(), percent_text(f.percent_of_step(us)));
    finding.figures = {{"data_loader", us, "us/step"}, {"share_of_step", f.percent_of_step(us), "%"}};
    const std::string_view own_workers = f.config("data.workers");
    const bool workers = f.ours() && !own_workers.empty() && own_workers != "0";
    finding.change = workers
                         ? "The loader cannot keep up with its workers: give it more workers, or less work."
                         : "Load batches in parallel with training.";
    finding.job_setting = workers ? "data.workers = ... (more)" : "data.workers = 2";
    finding.pytorch =
        "DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True, "
        "prefetch_factor=4)";
    PathChange change;
    change.apart = f.loader_time();
    change.apart_factor = 0;
    f.predict(finding, change, "If batches were ready immediately,");
    found.push_back(std::move(finding));
}

bool offloads(const AdviceFacts& f) {
    return f.config("fsdp.cpu_offload") == "true";
}

// With offloading, the optimizer's step is work of the host.
bool is_optimizer(const AdviceFacts& f, std::size_t range) {
    return f.trace.strings[f.trace.ranges.name[range]].starts_with("Optimizer.step");
}

void host_bound(const AdviceFacts& f, Findings& found) {
    double idle = 0, span = 0;
    for (const RankIdle& rank : f.idle.ranks) {
        idle += static_cast<double>(rank.device.gap(GapKind::host_wait).ns);
        span += static_cast<double>(rank.device.span);
    }
    const double share = span > 0 ? 100 * idle / span : 0;
    if (share <= kHostPercent) return;
    if (2 * f.percent_of_step(f.file_waits_us) > share) return;  // file_waits tells it
    Finding finding;
    finding.what = fmt::format(
        "For {} of the time the devices are idle because the host has launched nothing yet; on the critical "
        "path the host takes {}{} ({}).",
        percent_text(share), us_text(f.on_path_us(PathKind::host)), f.a_step(),
        percent_text(f.percent_of_step(f.on_path_us(PathKind::host))));
    finding.figures = {{"host_wait", share, "%"}, {"host_on_path", f.on_path_us(PathKind::host), "us/step"}};
    const store::RuntimeCalls& calls = f.trace.runtime;
    const auto graph = std::find_if(calls.name.begin(), calls.name.end(), [&](schema::StringId name) {
        return f.trace.strings[name].find("GraphLaunch") != std::string_view::npos;
    });
    const bool captured = graph != calls.name.end();
    finding.change = captured
                         ? "The step launches captured graphs already: let the host run ahead of them (no "
                           ".item() or print in the loop), and check what it does between them."
                         : "Launch less and larger work, let the host run ahead (no .item() or print in the "
                           "loop), compile or capture the step.";
    Settings settings(f);
    settings.add("data.batch", "", "data.batch = ... (larger)");
    if (f.ours()) settings.add("train.clip_norm", "0");
    finding.job_setting = settings.text;
    if (!captured) finding.pytorch = "model = torch.compile(model, mode=\"reduce-overhead\")";
    // Loading data and offloaded work have rules of their own.
    PathChange change;
    change.factors[static_cast<std::size_t>(PathKind::host)] = 0.5;
    change.apart = f.host_time([&](std::size_t i) {
        return f.trace.ranges.kind[i] == store::RangeKind::data_loader || (offloads(f) && is_optimizer(f, i));
    });
    f.predict(finding, change, "If the host were twice as fast,");
    found.push_back(std::move(finding));
}

void file_waits(const AdviceFacts& f, Findings& found) {
    const double us = f.file_waits_us;
    if (f.percent_of_step(us) <= kCopyPercent) return;
    Finding finding;
    finding.what = fmt::format("The host waits {}{} ({}) for files while no kernel runs.", us_text(us),
                               f.a_step(), percent_text(f.percent_of_step(us)));
    finding.figures = {{"file_waits", us, "us/step"}, {"share_of_step", f.percent_of_step(us), "%"}};
    finding.change =
        "Keep in memory what fits there, or read from a faster disk or several as one; more work for each "
        "update (a larger batch, or more micro-batches) hides more.";
    finding.job_setting = Settings(f)
                              .add("memory.nvme", "", "memory.nvme = \"\"")
                              .add("data.batch", "", "data.batch = ... (larger)")
                              .text;
    finding.pytorch = "DeepSpeed: \"offload_optimizer\": {\"device\": \"cpu\"}";
    finding.expected = "Unknown: the replay does not make disks faster.";
    found.push_back(std::move(finding));
}

void offload_copies(const AdviceFacts& f, Findings& found) {
    const double us = f.on_path_us(PathKind::memcpy);
    if (2 * f.file_waits_us > us) return;  // file_waits tells it
    const bool offload = offloads(f);
    PathChange change;
    change.factors[static_cast<std::size_t>(PathKind::memcpy)] = 0;
    if (offload) {
        change.apart = f.host_time([&](std::size_t i) { return is_optimizer(f, i); });
        change.apart_factor = 0;
    }
    Finding finding;
    f.predict(finding, change,
              offload ? "If copies and the optimizer on the host were free," : "If copies were free,");
    const double gain = f.percent_of_step(finding.gain_us.value_or(0));
    if (f.percent_of_step(us) <= kCopyPercent && !(offload && gain > kCopyPercent)) return;
    finding.what = fmt::format("Copies are on the critical path for {}{} ({}){}.", us_text(us), f.a_step(),
                               percent_text(f.percent_of_step(us)),
                               offload ? "; parameters and gradients are offloaded to the host" : "");
    finding.figures = {{"copies_on_path", us, "us/step"}, {"share_of_step", f.percent_of_step(us), "%"}};
    finding.change = offload ? "Keep the shards on the device if they fit, or shard over more ranks instead."
                             : "Copy from pinned memory on a stream of its own, before the data is needed.";
    finding.job_setting = offload ? "fsdp.cpu_offload = false" : Settings(f).add("data.workers", "2").text;
    finding.pytorch = offload ? "fully_shard(model, offload_policy=OffloadPolicy())"
                              : "DataLoader(dataset, pin_memory=True); batch.to(device, non_blocking=True)";
    found.push_back(std::move(finding));
}

// --- the device --------------------------------------------------------------------------------------------

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
        "The compute kernels' achieved occupancy is {} on average, below {:.0f} %; the longest kernel below "
        "it is "
        "{}.",
        percent_text(weighted / known), kLowOccupancyPercent, shown(largest));
    finding.figures = {{"occupancy", weighted / known, "%"}};
    finding.change =
        "Give kernels more work at once: a larger batch or sequence, fused kernels. (Matrix kernels on "
        "tensor cores may run well at low occupancy: check their rate first.)";
    finding.job_setting = "data.batch = ... (larger)";
    finding.pytorch = "model = torch.compile(model)";
    finding.expected = "Unknown, because the trace does not show how kernels' times depend on their size.";
    found.push_back(std::move(finding));
}

void idle_device(const AdviceFacts& f, Findings& found) {
    if (!f.device_work) return;  // a memory snapshot does not record what devices did
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
        finding.expected = "Unknown, because there is no run with fewer devices.";
        found.push_back(std::move(finding));
    }
}

constexpr AdviceRule kTimeRules[] = {
    {"straggler", "Ranks wait for one rank", straggling_rank},
    {"data-loader", "The data loader is slow", slow_data_loader},
    {"host-bound", "The host does not keep up", host_bound},
    {"file-waits", "The host waits for files", file_waits},
    {"copies-on-path", "Copies delay the step", offload_copies},
    {"low-occupancy", "Kernels leave most of the device unused", low_occupancy},
    {"idle-device", "A device with allocated memory is idle", idle_device},
};

}  // namespace

Slowness slowness_of(const AdviceFacts& f, std::size_t slow) {
    const std::size_t ranks = f.trace.ranks.size();
    std::array<std::vector<double>, kPathKinds> times;
    for (auto& kind : times) kind.resize(ranks);
    const store::DeviceEvents& device = f.trace.device;
    const std::vector<bool> selected = selected_events(f.trace, f.replay.sources().steps, f.selection);
    const auto kind_at = [&](PathKind kind, std::size_t rank) -> double& {
        return times[static_cast<std::size_t>(kind)][rank];
    };
    std::vector<double> steps(ranks);
    for (std::size_t r = 0; r < ranks; ++r)
        steps[r] = static_cast<double>(std::max<std::size_t>(
            1, selected_windows(f.replay.sources().steps.ranks[r], f.selection).size()));
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!selected[i] || device.kind[i] == store::DeviceKind::communication) continue;
        const PathKind kind =
            device.kind[i] == store::DeviceKind::kernel ? PathKind::compute : PathKind::memcpy;
        const std::size_t rank = device.rank[i];
        kind_at(kind, rank) += static_cast<double>(device.end[i] - device.start[i]) * 1e-3 / steps[rank];
    }
    for (const RankPath& path : f.path.ranks) {
        if (const store::RankIndex at = f.trace.rank_of_number(path.rank); at.known())
            kind_at(PathKind::host, at.at()) = path.average_us[static_cast<std::size_t>(PathKind::host)];
    }
    Slowness found;
    for (const PathKind kind : {PathKind::compute, PathKind::memcpy, PathKind::host}) {
        std::vector<double> others;
        for (std::size_t r = 0; r < ranks; ++r) {
            if (r != slow) others.push_back(kind_at(kind, r));
        }
        const double own = kind_at(kind, slow), usual = upper_median(others);
        if (own <= kSlower * usual || f.percent_of_step(own) < 1) continue;
        found.factors[static_cast<std::size_t>(kind)] = usual / own;
        std::string_view name = kPathKindNames[static_cast<std::size_t>(kind)];
        if (kind == PathKind::memcpy) name = "copying";
        found.words += found.words.empty() ? "its " : ", its ";
        found.words += usual > 0 ? fmt::format("{} takes {:.3g} times as long", name, own / usual)
                                 : fmt::format("{} takes time, and the others' none", name);
    }
    return found;
}

std::optional<WaitingForOne> waiting_of_ranks(const AdviceFacts& f) {
    std::map<int, double> waited;
    double all = 0;
    std::size_t paths = 0;
    for (const RankPath& rank : f.path.ranks) {
        if (rank.steps.empty()) continue;
        ++paths;
        for (const RankTime& other : rank.ranks) {
            waited[other.rank] += other.us;
            all += other.us;
        }
    }
    if (paths < 2 || all <= 0) return {};
    const auto most = std::max_element(waited.begin(), waited.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return WaitingForOne{all / static_cast<double>(paths), most->first, most->second / all, paths};
}

std::optional<WaitingForOne> waiting_for_one(const AdviceFacts& f) {
    const std::optional<WaitingForOne> found = waiting_of_ranks(f);
    if (!found || f.percent_of_step(found->mean_us) <= kWaitingPercent || found->share <= kStragglerShare)
        return {};
    // Of two ranks, each waits for the other half the time by chance.
    if (found->paths < 3 && found->share < kStragglerShareOfTwo) return {};
    return found;
}

std::span<const AdviceRule> time_rules() {
    return kTimeRules;
}

}  // namespace shardscope::traces::analysis
