// What each figure of a UtilizationReport is called, and its unit.
#include <string>
#include <variant>
#include <vector>

#include "traces/analysis/job/utilization.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::string_view kGpu = "gpu", kCores = "cores";

std::string list_of(const std::vector<int>& numbers) {
    return store::number_list(std::vector<std::int64_t>(numbers.begin(), numbers.end()));
}

template <auto Figure, class Row>
store::Cell gbps_of(const Row& row) {
    const std::optional<double>& value = row.*Figure;
    return value ? store::Cell(*value * 1e-9) : store::Cell();
}

// The mean or the 95th percentile of one of the sampled figures, in GB/s.
store::Cell rate(const DeviceUse& use, std::string_view name, double SampledFigure::*member) {
    const SampledFigure* figure = find_figure(use.sampled, name);
    return figure == nullptr ? store::Cell() : store::Cell(figure->*member * 1e-9);
}
template <auto Member>
store::Cell nvlink_sent(const DeviceUse& use) {
    return rate(use, "nvlink_sent_bytes_per_second", Member);
}
template <auto Member>
store::Cell nvlink_received(const DeviceUse& use) {
    return rate(use, "nvlink_received_bytes_per_second", Member);
}
template <auto Member>
store::Cell pcie_sent(const DeviceUse& use) {
    return rate(use, "pcie_sent_bytes_per_second", Member);
}
template <auto Member>
store::Cell pcie_received(const DeviceUse& use) {
    return rate(use, "pcie_received_bytes_per_second", Member);
}

// A column in a unit that Unit does not have; the title names it.
constexpr ResultColumn own_unit(std::string_view key, std::string_view title, std::string_view meaning,
                                int decimals, std::uint8_t shown = everywhere) {
    return {key, title, Unit::number, meaning, shown, static_cast<std::int8_t>(decimals), true, false, true};
}
constexpr ResultColumn where_known(ResultColumn column) {
    column.where_known = true;
    return column;
}

}  // namespace

Fields<SampledFigure> sampled_fields() {
    using S = SampledFigure;
    static constexpr Field<S> kFields[] = {
        {{"name", "Figure", Unit::text, "The counter's name without what it is of; it ends with its unit."},
         value_of<&S::name>},
        {{"mean", "Mean", Unit::number, "Mean over its time."}, value_of<&S::mean>},
        {{"p95", "p95", Unit::number, "95 % of its time it is at most this."}, value_of<&S::p95>},
        {{"lowest", "Lowest", Unit::number, "The lowest sample."}, value_of<&S::lowest>},
        {{"highest", "Highest", Unit::number, "The highest sample."}, value_of<&S::highest>},
        {{"zero_percent", "At zero", Unit::percent, "The share of its time at 0."},
         value_of<&S::zero_percent>},
        {{"seconds", "Seconds", Unit::number, "Its time: without gaps of over three sampling intervals."},
         value_of<&S::seconds>},
        {{"samples", "Samples", Unit::count, "How many."}, value_of<&S::samples>},
    };
    return kFields;
}

Fields<DeviceUse> device_use_fields() {
    using D = DeviceUse;
    static constexpr Field<D> kFields[] = {
        {{"host", "Host", Unit::text, "Its machine."}, [](const D& d) { return known_text(d.host); }},
        {{"device", "Device", Unit::index, "Its number on its machine; 0 for the cores.", in_programs},
         value_of<&D::device>},
        {{"kind", "Kind", Unit::text, "gpu, or cores: all processors of a machine.", in_programs},
         [](const D& d) { return to_cell(d.kind == UsedDevice::gpu ? kGpu : kCores); }},
        {{"title", "Device", Unit::text, "What it is.", in_table},
         [](const D& d) { return to_cell(d.title()); }},
        {{"rank", "Rank", Unit::index, "The first rank that uses it; none: no rank does.", in_programs},
         [](const D& d) { return d.ranks.empty() ? store::Cell() : to_cell(d.ranks.front()); }},
        {{"ranks", "Ranks", Unit::text, "All ranks that use it."},
         [](const D& d) { return known_text(list_of(d.ranks)); }},
        {{"name", "Name", Unit::text, "Its model."}, [](const D& d) { return known_text(d.name); }},
        {{"visible", "Visible", Unit::text, "Whether the job may use it.", in_programs},
         value_of<&D::visible>},
        {{"utilization_percent", "Util.", Unit::percent,
          "Mean utilization. Of a GPU: the time in which a kernel ran, as NVML measures it; of cores: those "
          "that "
          "the job's processes used, of those that they may use.",
          everywhere, 1},
         value_of<&D::utilization_percent>},
        {{"utilization_p95_percent", "Util. p95", Unit::percent, "95 % of the time it is at most this.",
          everywhere, 1},
         value_of<&D::utilization_p95_percent>},
        {{"idle_percent", "Idle", Unit::percent, "The share of the time with a utilization of 0.", everywhere,
          1},
         value_of<&D::idle_percent>},
        {{"memory_mean_bytes", "Memory", Unit::bytes, "Mean of its memory in use.", in_programs},
         value_of<&D::memory_mean_bytes>},
        {{"memory_peak_bytes", "Memory peak", Unit::bytes,
          "The most memory in use, by all its processes; of cores: resident, of the job's processes.",
          everywhere, 0},
         value_of<&D::memory_peak_bytes>},
        {{"memory_bytes", "Memory has", Unit::bytes, "The memory that it has.", in_programs},
         known_value_of<&D::memory_bytes>},
        {own_unit("power_watts", "Power (W)", "Mean power in W.", 1), value_of<&D::power_watts>},
        {own_unit("power_p95_watts", "Power p95 (W)", "95 % of the time its power is at most this, in W.", 1),
         value_of<&D::power_p95_watts>},
        {own_unit("power_limit_watts", "Power limit (W)", "The power that it may draw, in W.", 0,
                  in_programs),
         known_value_of<&D::power_limit_watts>},
        {own_unit("energy_j", "Energy (J)", "Its energy in J.", 1), value_of<&D::energy_j>},
        {{"energy_from", "Energy from", Unit::text,
          "counter: the device's own counter of energy; power: the integral of its power.", in_programs},
         [](const D& d) {
             return d.energy_j ? to_cell(std::string_view(d.energy_from_counter ? "counter" : "power"))
                               : store::Cell();
         }},
        {own_unit("sm_clock_mhz", "SM clock (MHz)", "Mean clock of the multiprocessors in MHz.", 0),
         value_of<&D::sm_clock_mhz>},
        {own_unit("memory_clock_mhz", "Memory clock (MHz)", "Mean clock of the memory in MHz.", 0,
                  in_programs),
         value_of<&D::memory_clock_mhz>},
        {{"throttled_percent", "Throttled", Unit::percent,
          "The share of the time in which power or temperature held its clocks down.", everywhere, 1},
         value_of<&D::throttled_percent>},
        {{"throttled_by", "Throttled by", Unit::text, "What held them down, each with its share of the time.",
          in_programs},
         [](const D& d) { return known_text(d.throttled_by); }},
        {own_unit("temperature_celsius", "Temperature (°C)", "Mean temperature in °C.", 1, in_programs),
         value_of<&D::temperature_celsius>},
        {own_unit("temperature_highest_celsius", "Hottest (°C)", "Highest temperature in °C.", 0),
         value_of<&D::temperature_highest_celsius>},
        {where_known(
             {"nvlink_sent_gbps", "NVLink out", Unit::gbps, "Mean rate sent over NVLink.", everywhere, 2}),
         nvlink_sent<&SampledFigure::mean>},
        {{"nvlink_sent_p95_gbps", "NVLink out p95", Unit::gbps, "95 % of the time it is at most this.",
          in_programs},
         nvlink_sent<&SampledFigure::p95>},
        {where_known({"nvlink_received_gbps", "NVLink in", Unit::gbps, "Mean rate received over NVLink.",
                      everywhere, 2}),
         nvlink_received<&SampledFigure::mean>},
        {{"nvlink_received_p95_gbps", "NVLink in p95", Unit::gbps, "95 % of the time it is at most this.",
          in_programs},
         nvlink_received<&SampledFigure::p95>},
        {where_known({"pcie_sent_gbps", "PCIe out", Unit::gbps, "Mean rate sent over PCIe.", everywhere, 2}),
         pcie_sent<&SampledFigure::mean>},
        {{"pcie_sent_p95_gbps", "PCIe out p95", Unit::gbps, "95 % of the time it is at most this.",
          in_programs},
         pcie_sent<&SampledFigure::p95>},
        {where_known(
             {"pcie_received_gbps", "PCIe in", Unit::gbps, "Mean rate received over PCIe.", everywhere, 2}),
         pcie_received<&SampledFigure::mean>},
        {{"pcie_received_p95_gbps", "PCIe in p95", Unit::gbps, "95 % of the time it is at most this.",
          in_programs},
         pcie_received<&SampledFigure::p95>},
        {{"sampled", "Sampled", Unit::text, "All figures that were sampled.", in_json}, nested<D>},
    };
    return kFields;
}

Fields<RankUse> rank_use_fields() {
    using R = RankUse;
    static constexpr Field<R> kFields[] = {
        {kRankColumn, value_of<&R::rank>},
        {{"host", "Host", Unit::text, "Its machine."}, [](const R& r) { return known_text(r.host); }},
        {{"devices", "GPUs", Unit::text, "The GPUs that it uses, by their numbers on the machine."},
         [](const R& r) { return known_text(list_of(r.devices)); }},
        {own_unit("cores", "Cores", "Mean of the processor cores that its process used.", 2),
         value_of<&R::cores>},
        {own_unit("cores_p95", "Cores p95", "95 % of the time they are at most this.", 2),
         value_of<&R::cores_p95>},
        {{"cores_idle_percent", "No core", Unit::percent, "The share of the time in which it used none.",
          everywhere, 1},
         value_of<&R::cores_idle_percent>},
        {{"allowed_cores", "May use", Unit::count, "Logical processors that its process may run on."},
         known_value_of<&R::allowed_cores>},
        {{"resident_mean_bytes", "Resident", Unit::bytes, "Mean of its resident memory.", in_programs},
         value_of<&R::resident_mean_bytes>},
        {{"resident_peak_bytes", "Resident peak", Unit::bytes, "The most resident memory.", everywhere, 0},
         value_of<&R::resident_peak_bytes>},
        {where_known(
             {"swap_peak_bytes", "Swapped out", Unit::bytes, "The most of its memory that was in swap."}),
         value_of<&R::swap_peak_bytes>},
        {where_known({"read_gbps", "Disk read", Unit::gbps, "Mean rate read from disks."}),
         gbps_of<&R::read_bytes_per_second, R>},
        {where_known({"written_gbps", "Disk written", Unit::gbps, "Mean rate written to disks."}),
         gbps_of<&R::written_bytes_per_second, R>},
        {{"sampled", "Sampled", Unit::text, "All figures that were sampled.", in_json}, nested<R>},
    };
    return kFields;
}

Fields<AdapterUse> adapter_use_fields() {
    using A = AdapterUse;
    static constexpr Field<A> kFields[] = {
        {{"host", "Host", Unit::text, "Its machine."}, [](const A& a) { return known_text(a.host); }},
        {{"kind", "Kind", Unit::text, "infiniband or ethernet."}, value_of<&A::kind>},
        {{"number", "Number", Unit::index, "Its number among those of its kind on its machine.", in_programs},
         value_of<&A::number>},
        {{"name", "Adapter", Unit::text, "Its name."}, [](const A& a) { return known_text(a.name); }},
        {{"bandwidth_gbps", "Can", Unit::gbps, "What it can, in one direction."},
         [](const A& a) { return known_cell(a.bytes_per_second * 1e-9); }},
        {{"sent_gbps", "Sent", Unit::gbps, "Mean rate sent."}, gbps_of<&A::sent, A>},
        {{"sent_p95_gbps", "Sent p95", Unit::gbps, "95 % of the time it is at most this."},
         gbps_of<&A::sent_p95, A>},
        {{"received_gbps", "Received", Unit::gbps, "Mean rate received."}, gbps_of<&A::received, A>},
        {{"received_p95_gbps", "Received p95", Unit::gbps, "95 % of the time it is at most this."},
         gbps_of<&A::received_p95, A>},
        {{"idle_percent", "Idle", Unit::percent, "The share of the time in which it carried nothing.",
          everywhere, 1},
         value_of<&A::idle_percent>},
        {{"near_limit_percent", "Near limit", Unit::percent,
          "The share of the time at 80 % of what it can or more, in one direction.", everywhere, 1},
         value_of<&A::near_limit_percent>},
        {{"sampled", "Sampled", Unit::text, "All figures that were sampled.", in_json}, nested<A>},
    };
    return kFields;
}

Fields<HostUse> host_use_fields() {
    using H = HostUse;
    static constexpr Field<H> kFields[] = {
        {{"host", "Host", Unit::text, "The machine; none: unknown."},
         [](const H& h) { return known_text(h.host); }},
        {{"ranks", "Ranks", Unit::text, "Its ranks."},
         [](const H& h) { return known_text(list_of(h.ranks)); }},
        {{"device_count", "Devices", Unit::count, "Its devices."}, value_of<&H::devices>},
        {{"unused_devices", "Unused", Unit::count,
          "Those that the job may use and that were idle throughout."},
         value_of<&H::unused_devices>},
        {{"utilization_percent", "Util.", Unit::percent, "Mean utilization of its devices.", everywhere, 1},
         value_of<&H::utilization_percent>},
        {{"cpus", "CPUs", Unit::count, "Its logical processors."}, known_value_of<&H::cpus>},
        {where_known(
             own_unit("cpu_limit_cores", "Limit (cores)", "Cores that the job's control group allows.", 1)),
         known_value_of<&H::cpu_limit_cores>},
        {own_unit("busy_cores", "Busy cores", "Mean of its busy cores, of all programs.", 2),
         value_of<&H::busy_cores>},
        {own_unit("busy_cores_p95", "Busy cores p95", "95 % of the time they are at most this.", 2,
                  in_programs),
         value_of<&H::busy_cores_p95>},
        {own_unit("job_cores", "The job's", "Mean of the cores that the job's processes used.", 2),
         value_of<&H::job_cores>},
        {own_unit("job_cores_p95", "The job's p95", "95 % of the time they are at most this.", 2),
         value_of<&H::job_cores_p95>},
        {{"job_resident_peak_bytes", "Resident peak", Unit::bytes,
          "The most resident memory of the job's processes together.", everywhere, 0},
         value_of<&H::job_resident_peak_bytes>},
        {{"memory_bytes", "Memory", Unit::bytes, "The memory that it has.", everywhere, 0},
         known_value_of<&H::memory_bytes>},
        {{"memory_available_least_bytes", "Free, least", Unit::bytes, "The least memory that was available.",
          everywhere, 0},
         value_of<&H::memory_available_least_bytes>},
        {where_known({"swap_in_gbps", "Swapped in", Unit::gbps, "Mean rate of pages from swap."}),
         gbps_of<&H::swap_in_bytes_per_second, H>},
        {where_known({"swap_out_gbps", "Swapped out", Unit::gbps, "Mean rate of pages to swap."}),
         gbps_of<&H::swap_out_bytes_per_second, H>},
        {where_known({"cgroup_throttled_percent", "Held by cgroup", Unit::percent,
                      "The share of the time in which the control group's limit stopped the job's processes.",
                      everywhere, 1}),
         value_of<&H::cgroup_throttled_percent>},
        {own_unit("energy_j", "Energy (J)", "Energy of its devices in J.", 1), value_of<&H::energy_j>},
        {{"devices", "Devices", Unit::text, "Its devices.", in_json}, nested<H>},
        {{"adapters", "Adapters", Unit::text, "Its network adapters.", in_json}, nested<H>},
        {{"sampled", "Sampled", Unit::text, "All figures that were sampled of the machine.", in_json},
         nested<H>},
    };
    return kFields;
}

Fields<JobUse> job_use_fields() {
    using J = JobUse;
    static constexpr Field<J> kFields[] = {
        {own_unit("seconds", "Time (s)", "The selected time in s.", 3), value_of<&J::seconds>},
        {{"hosts", "Hosts", Unit::count, "Its machines."}, value_of<&J::hosts>},
        {{"devices", "Devices", Unit::count, "Devices that it may use."}, value_of<&J::devices>},
        {{"sampled_devices", "Sampled", Unit::count, "Those of which there are samples."},
         value_of<&J::sampled_devices>},
        {{"unused_devices", "Unused", Unit::count, "Those that were idle throughout."},
         value_of<&J::unused_devices>},
        {{"utilization_percent", "Utilization", Unit::percent, "Mean over the devices."},
         value_of<&J::utilization_percent>},
        {{"idle_percent", "Idle", Unit::percent, "Mean over the devices of their share of the time at 0."},
         value_of<&J::idle_percent>},
        {own_unit("energy_j", "Energy (J)", "Energy of the devices in J.", 1), value_of<&J::energy_j>},
        {{"energy_devices", "Energy of", Unit::count, "The number of devices whose energy is known."},
         value_of<&J::energy_devices>},
        {{"steps", "Steps", Unit::count, "Steps in this time."}, known_value_of<&J::steps>},
        {own_unit("step_seconds", "Steps' time (s)",
                  "From the first step's start to the last one's end, in s.", 3),
         known_value_of<&J::step_seconds>},
        {own_unit("samples_per_step", "Samples per step", "Of all ranks, by the configuration.", 0),
         value_of<&J::samples_per_step>},
        {own_unit("tokens_per_step", "Tokens per step", "The same in tokens.", 0),
         value_of<&J::tokens_per_step>},
        {own_unit("energy_per_step_j", "J per step", "Energy in the steps' time by the number of steps.", 2),
         value_of<&J::energy_per_step_j>},
        {own_unit("energy_per_sample_j", "J per sample", "The same by samples.", 4),
         value_of<&J::energy_per_sample_j>},
        {own_unit("energy_per_token_j", "J per token", "The same by tokens.", 6),
         value_of<&J::energy_per_token_j>},
        {own_unit("device_hours", "Device hours",
                  "Devices x time in hours; where the cores are the device, ranks x time.", 4),
         value_of<&J::device_hours>},
        {own_unit("price_per_device_hour", "Price per device hour",
                  "What a device costs for an hour; none: neither given nor in the trace.", 2),
         value_of<&J::price_per_device_hour>},
        {own_unit("cost", "Cost", "Device hours x price.", 2), value_of<&J::cost>},
        {own_unit("cost_per_million_tokens", "Cost per million tokens", "Cost by the tokens of the steps.",
                  4),
         value_of<&J::cost_per_million_tokens>},
        {own_unit("cost_per_million_samples", "Cost per million samples", "Cost by the samples of the steps.",
                  4),
         value_of<&J::cost_per_million_samples>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
