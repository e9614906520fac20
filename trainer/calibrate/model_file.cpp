// A cost model as TOML, with its sources.
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "trainer/calibrate/calibration.h"
#include "trainer/job/value.h"

namespace shardscope::trainer::calibrate {

namespace {

using sim::Curve;

class ModelText {
  public:
    explicit ModelText(const Calibration& calibration) : notes_(calibration.notes) {}

    void comment(const std::string& text) { out_ += fmt::format("# {}\n", text); }
    void section(const std::string& name) {
        section_ = name;
        out_ += fmt::format("\n[{}]\n", name);
        if (const auto note = notes_.find(name); note != notes_.end()) comment(note->second);
    }
    void text(std::string_view key, const std::string& value) { line(key, job::toml_text(value)); }
    void count(std::string_view key, int value) { line(key, std::to_string(value)); }
    void figure(std::string_view key, double value) { line(key, fmt::format("{:.5g}", value)); }
    void flag(std::string_view key) { line(key, "true"); }
    void word(std::string_view key, std::string_view value) { line(key, fmt::format("\"{}\"", value)); }
    void curve(std::string_view key, const Curve& curve) {
        if (curve.points.empty()) return;
        std::string points;
        for (const Curve::Point& point : curve.points) {
            points += fmt::format("{}[{:.5g}, {:.4g}]", points.empty() ? "" : ", ", point.size,
                                  std::max(1e-6, point.share));
        }
        line(key, fmt::format("[{}]", points));
    }
    void pairs(std::string_view key, const sim::PairFigures& pairs) {
        if (!pairs.known()) return;
        const std::string start = fmt::format("{} = [", key), indent(start.size(), ' ');
        for (int from = 0; from < pairs.size; ++from) {
            std::string row;
            for (int to = 0; to < pairs.size; ++to)
                row += fmt::format("{}{:.5g}", to == 0 ? "" : ", ", from == to ? 0 : pairs.of(from, to));
            out_ += fmt::format("{}[{}]{}\n", from == 0 ? start : indent, row,
                                from + 1 == pairs.size ? "]" : ",");
        }
    }
    void rates(const sim::ClassRates& rates) {
        for (std::size_t a = 0; a < sim::kArithmetics; ++a) {  // omitted if equal to fp32
            if (a == 0 || rates.flops[a] != rates.flops[0]) figure(sim::kArithmeticNames[a], rates.flops[a]);
        }
        curve("efficiency", rates.efficiency);
        curve("bandwidth_share", rates.bandwidth_share);
    }
    std::string take() { return std::move(out_); }

  private:
    void line(std::string_view key, const std::string& value) {
        const std::string start = fmt::format("{} = {}", key, value);
        const auto note = notes_.find(fmt::format("{}.{}", section_, key));
        out_ += note == notes_.end() ? start + "\n" : fmt::format("{:<25} # {}\n", start, note->second);
    }

    const std::map<std::string, std::string>& notes_;
    std::string section_, out_;
};

void write_link(ModelText& out, const sim::Link& link) {
    out.figure("latency", link.latency);
    out.figure("bandwidth", link.bandwidth);
    out.curve("bandwidth_share", link.bandwidth_share);
}

}  // namespace

std::string model_file(const Calibration& calibration) {
    const sim::Cluster& cluster = calibration.cluster;
    const sim::DeviceModel& device = cluster.device;
    ModelText out(calibration);
    out.comment("A cost model fitted by `shardscope-train calibrate` to what these traces measured:");
    for (const std::string& file : calibration.files) out.comment("  " + file);
    out.comment(
        fmt::format("Other figures are from the model {}. Times are seconds, rates per "
                    "second, sizes",
                    calibration.base));
    out.comment(
        "bytes; a curve's points are [size, share of the rate]: operations for efficiency, else bytes.");
    out.section("cluster");
    out.text("name", cluster.name);
    if (cluster.nodes > 0) out.count("nodes", cluster.nodes);
    out.count("devices", cluster.devices);

    out.section("device");
    out.text("name", device.name);
    out.word("type", device.type == sim::DeviceType::cpu ? "cpu" : "gpu");
    if (device.cores > 0) out.count("cores", device.cores);
    out.curve("busy_share", device.busy_share);
    out.figure("memory", device.memory);
    out.figure("memory_bandwidth", device.memory_bandwidth);
    out.figure("kernel_latency", device.kernel_latency);
    out.figure("wake", device.wake);
    if (device.reserve > 0) out.figure("reserve", device.reserve);
    if (device.price_per_hour > 0) out.figure("price_per_hour", device.price_per_hour);

    for (std::size_t c = 0; c < plan::kKernelClasses; ++c) {
        out.section(fmt::format("operators.{}", plan::kKernelClassNames[c]));
        out.rates(device.classes[c]);
    }
    for (const auto& [kernel, rates] : device.kernels) {
        out.section(fmt::format("kernels.{}", kernel_info(kernel).name));
        out.rates(rates);
    }

    const sim::HostModel& host = cluster.host;
    out.section("host");
    out.figure("operation", host.operation);
    out.figure("launch", host.launch);
    out.figure("event", host.event);
    out.figure("wake", host.wake);
    out.figure("allocate", host.allocate);
    out.figure("grow", host.grow);
    out.figure("flops", host.flops);
    out.figure("memory_bandwidth", host.memory_bandwidth);
    out.figure("batch_bandwidth", host.batch_bandwidth);

    const sim::CopyModel& copy = cluster.copy;
    out.section("copy");
    out.figure("latency", copy.latency);
    out.figure("to_device", copy.to_device);
    out.figure("to_host", copy.to_host);
    out.figure("pageable_share", copy.pageable_share);
    out.curve("bandwidth_share", copy.bandwidth_share);
    out.figure("on_device", copy.on_device);

    const sim::DiskModel& disk = cluster.disk;
    out.section("disk");
    out.figure("read", disk.read);
    out.figure("write", disk.write);
    if (disk.capacity > 0) out.figure("capacity", disk.capacity);

    const auto algorithm = [](sim::Algorithm which) {
        return sim::kAlgorithmNames[static_cast<std::size_t>(which)];
    };
    out.section("collectives");
    out.figure("latency", cluster.collectives.latency);
    out.word("inside", algorithm(cluster.collectives.inside));
    if (cluster.nodes != 1) out.word("across", algorithm(cluster.collectives.across));
    out.section("intra");
    write_link(out, cluster.intra);
    if (cluster.nodes != 1) {
        out.section("inter");
        write_link(out, cluster.inter);
        if (cluster.inter.shared) out.flag("shared");
    }
    if (const sim::PairLinks& links = cluster.links; links != sim::PairLinks()) {
        out.section("links");
        out.pairs("bandwidth", links.bandwidth);
        out.pairs("latency", links.latency);
        out.pairs("node_bandwidth", links.node_bandwidth);
        out.pairs("node_latency", links.node_latency);
    }
    return out.take();
}

}  // namespace shardscope::trainer::calibrate
