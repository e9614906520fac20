#include "traces/import/topology/nccl_topology.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "traces/import/topology/xml_tree.h"
#include "traces/schema/joined.h"
#include "traces/schema/text.h"
#include "traces/store/error.h"
#include "traces/store/link_rates.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::string_view kNccl = "nccl";
constexpr std::string_view kNvswitch = "0x068000";  // PCI class of a bridge that is none of the usual ones
constexpr std::string_view kRingPattern = "4";      // NCCL's number of the pattern "ring"
constexpr std::size_t kMostOfHost = 1024, kMostRings = 64, kMostCpus = 1 << 16;

[[noreturn]] void fail_at(const std::string& name, const XmlElement& at, const std::string& what) {
    throw store::StoreError(fmt::format(
        "{}, line {}: {}; let NCCL write the file again (NCCL_TOPO_DUMP_FILE, NCCL_GRAPH_DUMP_FILE)", name,
        at.line, what));
}

std::optional<int> number(std::string_view text) {
    const auto value = schema::number_of<int>(text);
    return value && *value >= 0 && *value < 1'000'000 ? value : std::nullopt;
}

// "0000ffff,00000000" (hexadecimal words of 32 bits, the highest first) as "32-47".
std::string processors_of_mask(std::string_view mask) {
    std::vector<std::int64_t> cpus;
    std::int64_t first = 0;
    while (!mask.empty() && first < static_cast<std::int64_t>(kMostCpus)) {
        const std::size_t comma = mask.rfind(',');
        const std::string_view word = comma == mask.npos ? mask : mask.substr(comma + 1);
        std::uint32_t bits = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bits, 16);
        if (error != std::errc() || end != word.data() + word.size()) return {};
        for (int bit = 0; bit < 32; ++bit)
            if ((bits >> bit & 1) != 0) cpus.push_back(first + bit);
        first += 32;
        mask = comma == mask.npos ? std::string_view() : mask.substr(0, comma);
    }
    return store::number_list(cpus);
}

struct NcclDevice {
    schema::DeviceRow row;
    std::string label;                   // "GPU0", "NIC0"; empty: not in the table of links
    std::vector<const XmlElement*> way;  // from its processor to its own PCI function
    int capability = 0, lanes = -1;
    double pcie = -1;
    std::map<std::string, int> nvlinks;  // by the PCI address of the other end
    int to_switch = 0;                   // NVLinks to switches
};

class NcclReader {
  public:
    NcclReader(const std::string& name, const std::string& host) : name_(name), host_(host) {}

    Topology read(const XmlElement& root) {
        if (root.name == "graphs") {
            graphs(root);
        } else if (root.name == "system") {
            for (const XmlElement& cpu : root.children)
                if (cpu.name == "cpu") processor(cpu);
            pairs();
        } else {
            fail_at(name_, root,
                    fmt::format("\"{}\" is neither a system nor graphs", root.name.substr(0, 32)));
        }
        return std::move(result_);
    }

  private:
    void processor(const XmlElement& cpu) {
        numa_ = number(cpu.attribute("numaid")).value_or(-1);
        cpus_ = processors_of_mask(cpu.attribute("affinity"));
        if (numa_ >= 0 && !cpus_.empty()) {
            schema::DeviceRow row;
            row.host = host_;
            row.kind = "numa";
            row.number = row.numa = numa_;
            row.cpus = cpus_;
            result_.devices.push_back(std::move(row));
        }
        way_ = {&cpu};
        children(cpu);
    }

    void children(const XmlElement& parent) {
        for (const XmlElement& child : parent.children) {
            if (child.name == "pci") {
                way_.push_back(&child);
                children(child);
                way_.pop_back();
            } else if (child.name == "gpu") {
                gpu(child);
            } else if (child.name == "nic") {
                for (const XmlElement& net : child.children)
                    if (net.name == "net") adapter(net);
            }
        }
    }

    NcclDevice& add(const char* kind, const char* label, int number) {
        if (devices_.size() >= kMostOfHost)
            throw store::StoreError(
                fmt::format("{} has more than {} devices; it is damaged", name_, kMostOfHost));
        NcclDevice& device = devices_.emplace_back();
        device.row.host = host_;
        device.row.kind = kind;
        device.row.number = number;
        device.row.numa = numa_;
        if (*label != '\0') device.label = fmt::format("{}{}", label, number);
        device.way = way_;
        const XmlElement& own = *way_.back();
        if (own.name == "pci") {
            device.row.bus = own.attribute("busid");
            device.lanes = number_or(own.attribute("link_width"), -1);
            device.pcie = store::pcie_bytes_per_second(own.attribute("link_speed"), device.lanes);
        }
        return device;
    }
    static int number_or(std::string_view text, int otherwise) { return number(text).value_or(otherwise); }

    void gpu(const XmlElement& element) {
        const auto dev = number(element.attribute("dev"));
        if (!dev) fail_at(name_, element, "a gpu has no number (dev)");
        if (!gpus_.insert(*dev).second) fail_at(name_, element, fmt::format("gpu {} is there twice", *dev));
        NcclDevice& device = add("gpu", "GPU", *dev);
        device.row.cpus = cpus_;
        device.capability = number_or(element.attribute("sm"), 0);
        for (const XmlElement& link : element.children) {
            if (link.name != "nvlink") continue;
            const auto count = number(link.attribute("count"));
            if (!count || *count < 1 || *count > 1000) fail_at(name_, link, "an nvlink has no count");
            if (link.attribute("tclass") == kNvswitch) {
                device.to_switch += *count;
            } else {
                device.nvlinks[std::string(link.attribute("target"))] += *count;
            }
        }
    }

    void adapter(const XmlElement& net) {
        const auto dev = number(net.attribute("dev"));
        if (!dev) fail_at(name_, net, "a net has no number (dev)");
        const std::string_view name = net.attribute("name");
        // NCCL's sockets name an interface of the kernel, which SHARD_DEVICES numbers by themselves.
        const bool socket = name.starts_with("eth") || name.starts_with("en") || name.starts_with("ib") ||
                            name.starts_with("lo") || name.starts_with("bond");
        if (!nets_.insert(*dev).second) return;  // another port or a virtual one
        NcclDevice& device = add(socket ? "ethernet" : "infiniband", socket ? "" : "NIC", *dev);
        device.row.name = name;
        double megabits = 0;
        const std::string_view speed = net.attribute("speed");
        std::from_chars(speed.data(), speed.data() + speed.size(), megabits);
        if (megabits > 0 && megabits < 1e9) device.row.bytes_per_second = megabits * 1e6 / 8;
    }

    void pairs() {
        if (devices_.empty())
            throw store::StoreError(fmt::format(
                "{} has no gpu; let NCCL write it on a host with GPUs (NCCL_TOPO_DUMP_FILE)", name_));
        std::sort(devices_.begin(), devices_.end(), [](const NcclDevice& a, const NcclDevice& b) {
            return std::tuple(a.row.kind != "gpu", a.row.number) <
                   std::tuple(b.row.kind != "gpu", b.row.number);
        });
        for (std::size_t a = 0; a < devices_.size(); ++a) {
            for (std::size_t b = a + 1; b < devices_.size(); ++b)
                if (!devices_[a].label.empty() && !devices_[b].label.empty()) pair(devices_[a], devices_[b]);
        }
        for (NcclDevice& device : devices_) result_.devices.push_back(std::move(device.row));
    }

    void pair(const NcclDevice& a, const NcclDevice& b) {
        schema::TopologyRow row;
        row.host = row.to_host = host_;
        row.from = a.label;
        row.to = b.label;
        row.source = kNccl;
        int nvlinks = std::min(a.to_switch, b.to_switch);
        if (const auto direct = a.nvlinks.find(b.row.bus); direct != a.nvlinks.end() && !b.row.bus.empty())
            nvlinks += direct->second;
        if (nvlinks > 0) {
            row.link = fmt::format("NV{}", nvlinks);
            row.lanes = nvlinks;
            const double each = store::nvlink_bytes_per_second(std::min(a.capability, b.capability));
            if (each > 0) row.bytes_per_second = each * nvlinks;
        } else {
            row.link = through_pcie(a.way, b.way);
            row.lanes = a.lanes > 0 && b.lanes > 0 ? std::min(a.lanes, b.lanes) : -1;
            if (a.pcie > 0 && b.pcie > 0) row.bytes_per_second = std::min(a.pcie, b.pcie);
        }
        result_.topology.push_back(std::move(row));
    }

    // By the nearest part that both ways share: the bridge above both, one farther up, or the processor.
    static const char* through_pcie(const std::vector<const XmlElement*>& a,
                                    const std::vector<const XmlElement*>& b) {
        std::size_t same = 0;
        while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
        if (same == 0) return "SYS";
        if (same == 1) return "PHB";
        // The ports of one adapter share even their own function.
        return same + 1 >= a.size() && same + 1 >= b.size() ? "PIX" : "PXB";
    }

    void graphs(const XmlElement& root) {
        std::vector<std::string> rings;
        for (const XmlElement& graph : root.children) {
            if (graph.name != "graph" || graph.attribute("pattern") != kRingPattern) continue;
            for (const XmlElement& channel : graph.children) {
                if (channel.name != "channel") continue;
                std::string ring;
                for (const XmlElement& gpu : channel.children) {
                    if (gpu.name != "gpu") continue;
                    const auto dev = number(gpu.attribute("dev"));
                    if (!dev) fail_at(name_, gpu, "a gpu has no number (dev)");
                    ring += fmt::format("{}{}", ring.empty() ? "" : ",", *dev);
                }
                const bool known = std::find(rings.begin(), rings.end(), ring) != rings.end();
                if (!ring.empty() && !known && rings.size() < kMostRings) rings.push_back(std::move(ring));
            }
        }
        if (rings.empty())
            throw store::StoreError(fmt::format(
                "{} has no ring; let NCCL write it at the start of the job (NCCL_GRAPH_DUMP_FILE)", name_));
        result_.facts.emplace_back("nccl.rings." + host_, schema::joined(rings, ";"));
    }

    const std::string& name_;
    const std::string& host_;
    Topology result_;
    std::vector<NcclDevice> devices_;
    std::set<int> gpus_, nets_;
    std::vector<const XmlElement*> way_;
    int numa_ = -1;
    std::string cpus_;
};

}  // namespace

Topology read_nccl_topology(std::string_view text, const std::string& name, const std::string& host) {
    return NcclReader(name, host).read(read_xml(text, name));
}

bool is_nccl_topology(std::string_view head) {
    const std::string_view text = schema::trimmed(head);
    constexpr std::size_t kStart = 4096;  // after a declaration and comments
    const std::string_view start = text.substr(0, kStart);
    return text.starts_with('<') &&
           (start.find("<system") != start.npos || start.find("<graphs") != start.npos);
}

}  // namespace shardscope::traces::importer
