#include "trainer/cli/what_fits.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/core.h>

#include "traces/report/text_table.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::cli {

namespace {

// Small values to a KiB.
std::string mb_words(std::int64_t bytes) {
    const double number = static_cast<double>(bytes) / (1 << 20);
    return traces::store::grouped(number, number < 10 ? 3 : 1) + " MiB";
}

std::string switches(const std::vector<job::Override>& changes) {
    std::string text;
    for (const job::Override& change : changes) {
        const bool plain = change.value.find_first_of(" ;'\"") == std::string::npos;
        text += fmt::format("{}--{}={}", text.empty() ? "" : " ", change.key,
                            plain ? change.value : "'" + change.value + "'");
    }
    return text;
}

std::string time_words(double slower, const std::string& cluster) {
    if (slower <= 0) return "";
    const double percent = 100 * (slower - 1);
    if (std::abs(percent) < 1) return fmt::format(", same step time on {}", cluster);
    return fmt::format(", step {:+.0f} % on {}", percent, cluster);
}

std::string largest_category(const plan::CategoryBytes& bytes) {
    const auto most = static_cast<std::size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
    return fmt::format("{} of it {}", mb_words(bytes[most]), traces::schema::kMemoryCategoryNames[most]);
}

// The cluster whose times compare configurations: the job's own choice; without one, a GPU cluster for a GPU
// job.
std::string cluster_name(const job::Job& job) {
    const bool own = job.run.device != job::DeviceKind::cuda || job.origins.contains("sim.cluster");
    return own ? job.sim.cluster : "h100_ib";
}

}  // namespace

std::string fits_text(const planner::NearestFits& found, std::int64_t limit, const std::string& cluster) {
    std::string text;
    std::vector<std::string> lines;
    std::size_t width = 0;
    for (const planner::NearestFit& fit : found.fits) {
        lines.push_back(switches(fit.changes));
        width = std::max(width, lines.back().size());
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const planner::NearestFit& fit = found.fits[i];
        text += fmt::format("  fits: {:<{}}  (peak {} of {}{})\n", lines[i], width, mb_words(fit.peak.bytes),
                            mb_words(limit), time_words(fit.slower, cluster));
    }
    const planner::NearestFit& least = found.smallest;
    if (!text.empty() || least.peak.bytes == 0) return text;
    const std::string smallest = fmt::format(
        "the smallest peak is {} ({}), {}", mb_words(least.peak.bytes), largest_category(least.peak.at_peak),
        least.changes.empty() ? "without changes" : "with " + switches(least.changes));
    if (found.complete)
        return fmt::format("  nothing that the planner tries fits {}; {}\n", mb_words(limit), smallest);
    return fmt::format(
        "  no configuration that fits {} was found in the short search ({} tried); {}; shardscope-train plan "
        "tries all\n",
        mb_words(limit), found.tried, smallest);
}

void tell_what_fits(const job::Job& job, std::int64_t limit, bool among_processes) noexcept {
    try {
        if (limit <= 0) return;
        if (among_processes) std::signal(SIGTERM, SIG_IGN);
        planner::NearestOptions options;
        // mpirun kills a process one second after asking it to end.
        options.seconds = among_processes ? 0.7 : 1.5;
        sim::Cluster cluster = sim::load_cluster(cluster_name(job));
        if (cluster.device.type == sim::DeviceType::gpu) cluster.ranks_per_device = job.run.ranks_per_device;
        fmt::print(stderr, "{}",
                   fits_text(planner::nearest_fits(job, limit, cluster, options), limit, cluster.name));
        std::fflush(stderr);
    } catch (const std::exception&) {  // only this advice is lost; the failure itself has been reported
    }
}

void warn_of_memory(const sharding::Program& program, std::int64_t limit) {
    const std::int64_t peak = program.predict_largest().peak.bytes;
    if (limit == 0 || peak <= limit) return;
    std::fflush(stdout);
    fmt::print(
        stderr,
        "shardscope-train: note: the predicted peak of {} bytes exceeds the {} bytes that a rank has\n",
        traces::store::grouped(peak), traces::store::grouped(limit));
    tell_what_fits(program.job(), limit);
}

}  // namespace shardscope::trainer::cli
