#include "traces/analysis/advice_facts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

const RankPath* main_path(const CriticalPathReport& report) {
    if (report.job && !report.job->steps.empty()) return &*report.job;
    return report.ranks.empty() ? nullptr : &report.ranks.front();
}

}  // namespace

AdviceFacts::AdviceFacts(const Trace& t, const Selection& s)
    : trace(t),
      selection(s),
      summary(summarize(t, s)),
      overlap(overlap_report(t, s)),
      units(units_report(t, s)),
      idle(idle_report(t, s)),
      kernels(kernels_report(t, s)),
      memory(memory_report(t, s)),
      collectives(collectives_report(t, s)),
      path(critical_path(t, s)) {
    if (trace.device.size() == 0) return;  // nothing can be said of what the device did in a step
    double ranks = 0;
    for (const RankSummary& rank : summary.ranks) {
        if (rank.steps.empty()) continue;
        step_us += rank.average_step_us;
        ++ranks;
    }
    if (ranks > 0) step_us /= ranks;
}

std::string_view AdviceFacts::config(std::string_view key) const {
    return trace.config_value(key);
}

const RankMemory* AdviceFacts::highest_peak() const {
    const auto most =
        std::max_element(memory.ranks.begin(), memory.ranks.end(),
                         [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
    return most == memory.ranks.end() || most->peak_bytes <= 0 ? nullptr : &*most;
}

double AdviceFacts::per_step_us(std::int64_t ns) const {
    std::size_t steps = 0;
    for (const RankSummary& rank : summary.ranks) steps += rank.steps.size();
    return steps > 0 ? static_cast<double>(ns) * 1e-3 / static_cast<double>(steps) : 0;
}

double AdviceFacts::on_path_us(PathKind kind) const {
    const RankPath* main = main_path(path);
    return main != nullptr ? main->average_us[static_cast<std::size_t>(kind)] : 0;
}

std::string AdviceFacts::expect(PathKind kind, double factor, std::string_view in_words) const {
    PathFactors factors = kUnscaled;
    factors[static_cast<std::size_t>(kind)] = factor;
    const CriticalPathReport scaled = critical_path(trace, selection, factors);
    const RankPath* main = main_path(scaled);
    if (main == nullptr || main->whole_step_us <= 0) return {};
    const double change = 100 * (main->predicted_step_us - main->whole_step_us) / main->whole_step_us;
    if (std::abs(change) < 0.5) return {};
    return fmt::format("{} a step would take {} instead of {} ({:+.1f} %), by the critical path's what-if.",
                       in_words, us_text(main->predicted_step_us), us_text(main->whole_step_us), change);
}

std::string us_text(double us) {
    if (us >= 1e6) return fmt::format("{:.2f} s", us * 1e-6);
    if (us >= 1e4) return fmt::format("{:.1f} ms", us * 1e-3);
    return fmt::format("{:.1f} us", us);
}

std::string bytes_text(std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (value >= 1 << 30) return fmt::format("{:.2f} GB", value / (1 << 30));
    if (value >= 1 << 20) return fmt::format("{:.1f} MB", value / (1 << 20));
    if (value >= 1 << 10) return fmt::format("{:.1f} KB", value / (1 << 10));
    return fmt::format("{} bytes", bytes);
}

std::string percent_text(double percent) {
    return fmt::format("{:.1f} %", percent);
}

std::string shown(std::string_view name) {
    constexpr std::size_t kMost = 72;  // bytes; names of templates run to thousands
    if (name.size() > kMost) {
        std::size_t end = kMost;
        while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // a whole character
        return fmt::format("\"{}…\"", name.substr(0, end));
    }
    return fmt::format("\"{}\"", name);
}

}  // namespace shardscope::traces
