// The job as a whole, from its devices: energy, work, cost. See job_use.h.
#include "traces/analysis/job/job_use.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/core.h>

#include "traces/analysis/base/percentile.h"
#include "traces/analysis/job/device_figures.h"
#include "traces/analysis/job/work_size.h"
#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

class Job {
  public:
    Job(const JobSource& source, UtilizationReport& report) : source_(source), report_(report) {}

    void add_job() {
        JobUse& job = report_.job;
        job.seconds = static_cast<double>(report_.time.length()) * 1e-9;
        job.hosts = static_cast<std::int64_t>(report_.hosts.size());
        std::int64_t priced = 0;
        std::vector<double> utilizations, idle;
        for (const DeviceUse& device : report_.devices) {
            if (!device.visible.value_or(false)) continue;  // another job's
            ++job.devices;
            priced += device.kind == UsedDevice::gpu || source_.selection.rank
                          ? 1
                          : static_cast<std::int64_t>(device.ranks.size());
            job.unused_devices += device.unused() ? 1 : 0;
            job.sampled_devices += device.utilization_percent || device.power_watts ? 1 : 0;
            if (device.utilization_percent) utilizations.push_back(*device.utilization_percent);
            if (device.idle_percent) idle.push_back(*device.idle_percent);
            add(job.energy_j, device.energy_j);
            job.energy_devices += device.energy_j ? 1 : 0;
        }
        const auto mean = [](const std::vector<double>& all) {
            return all.empty() ? Known() : mean_over(all, [](double value) { return value; });
        };
        job.utilization_percent = mean(utilizations);
        job.idle_percent = mean(idle);
        job.device_hours = static_cast<double>(priced) * job.seconds / 3600;
        add_steps();
        double price = source_.options.price_per_device_hour;
        if (price <= 0) {
            price = schema::number_of<double>(source_.trace.config_value("sim.price_per_device_hour"))
                        .value_or(0);
        }
        if (!(price > 0) || !std::isfinite(price)) return;
        job.price_per_device_hour = price;
        job.cost = price * job.device_hours;
        const auto steps = static_cast<double>(job.steps);
        if (source_.selection.rank) return;  // one rank's cost, and the work of all
        if (job.tokens_per_step && steps > 0)
            job.cost_per_million_tokens = *job.cost / (*job.tokens_per_step * steps) * 1e6;
        if (job.samples_per_step && steps > 0)
            job.cost_per_million_samples = *job.cost / (*job.samples_per_step * steps) * 1e6;
    }

    void add_notes() {
        std::vector<std::string>& notes = report_.notes;
        for (const auto& [name, count] : source_.unusable)
            notes.push_back(fmt::format("{} of {} left out: not a number, negative, or more than can be.",
                                        store::counted(count, "sample", "samples"),
                                        count == 1 ? name + " is" : name + " are"));
        const JobUse& job = report_.job;
        if (!report_.any_sample()) {
            notes.emplace_back(
                "The trace has no samples of devices, hosts or processes. shardscope-record and "
                "shardscope-train take them while they record (--no-counters turns that off).");
            return;
        }
        std::int64_t gpus = 0, foreign = 0;
        for (const DeviceUse& device : report_.devices) {
            gpus += device.kind == UsedDevice::gpu ? 1 : 0;
            foreign += device.visible.value_or(false) ? 0 : 1;
        }
        if (foreign > 0)
            notes.push_back(fmt::format("{} not known to be the job's: no figure of the job counts {}.",
                                        store::counted(foreign, "device is", "devices are"),
                                        foreign == 1 ? "it" : "them"));
        if (gpus > 0 && job.energy_devices < job.devices && job.energy_j)
            notes.push_back(
                fmt::format("Energy is known of {} of {} devices.", job.energy_devices, job.devices));
        for (const DeviceUse& device : report_.devices) {
            if (!device.energy_j || device.energy_from_counter) continue;
            const OwnedCurves* own = this->owned(device);
            const SampledCurve* power = own == nullptr ? nullptr : own->find("power_watts");
            constexpr double kMostMissing = 0.05;
            if (power != nullptr && power->seconds() < (1 - kMostMissing) * job.seconds) {
                notes.push_back(fmt::format(
                    "The power of {}{}{} was sampled for {} of {} s; its energy is that of this time.",
                    device.title(), device.host.empty() ? "" : " of ", device.host,
                    store::grouped(power->seconds(), 1), store::grouped(job.seconds, 1)));
            }
        }
        constexpr std::size_t kMostNotes = 12;
        if (notes.size() > kMostNotes) {
            const std::size_t more = notes.size() - kMostNotes;
            notes.resize(kMostNotes);
            notes.push_back(fmt::format("{} more of this kind.", more));
        }
    }

  private:
    void add_steps() {
        JobUse& job = report_.job;
        std::set<std::int64_t> numbers;
        Interval span{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
        for (const store::Step& step : source_.trace.steps) {
            if (!source_.selection.has_step(step.number) || step.start < report_.time.start ||
                step.start >= report_.time.end)
                continue;
            numbers.insert(step.number);
            span.start = std::min(span.start, step.start);
            span.end = std::max(span.end, std::min(step.end, report_.time.end));
        }
        job.steps = static_cast<std::int64_t>(numbers.size());
        if (numbers.empty()) return;
        job.step_seconds = static_cast<double>(span.length()) * 1e-9;
        const WorkSize work = work_of_step(source_.trace);
        if (work.samples > 0) job.samples_per_step = work.samples;
        if (work.tokens > 0) job.tokens_per_step = work.tokens;
        if (source_.selection.rank) return;  // the energy of one rank's devices, and the work of all
        Known joules;
        for (const DeviceUse& device : report_.devices) {
            if (!device.visible.value_or(false) || device.kind != UsedDevice::gpu) continue;
            const OwnedCurves* own = this->owned(device);
            if (own != nullptr) add(joules, energy_of(*own, &span).first);
        }
        if (!joules) return;
        job.energy_per_step_j = *joules / static_cast<double>(job.steps);
        if (work.samples > 0) job.energy_per_sample_j = *job.energy_per_step_j / work.samples;
        if (work.tokens > 0) job.energy_per_token_j = *job.energy_per_step_j / work.tokens;
    }

    const OwnedCurves* owned(const DeviceUse& device) const {
        if (device.kind != UsedDevice::gpu) return nullptr;
        const auto found = source_.owned.find({device.host, CounterOwner::gpu, device.device});
        return found == source_.owned.end() ? nullptr : &found->second;
    }

    const JobSource& source_;
    UtilizationReport& report_;
};

}  // namespace

void add_job(const JobSource& source, UtilizationReport& report) {
    Job job(source, report);
    job.add_job();
    job.add_notes();
}

}  // namespace shardscope::traces::analysis
