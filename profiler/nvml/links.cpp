#include "profiler/nvml/links.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "traces/store/link_rates.h"

namespace shardscope::profiler::nvml {

namespace fs = std::filesystem;

namespace {

// Numbers from the NVML API reference.
constexpr unsigned kMostNvlinks = 36;
constexpr int kRemoteIsGpu = 0, kRemoteIsSwitch = 2;
constexpr unsigned kNvlinkMegabytesPerSecond = 90;  // field: speed of each active link
constexpr int kReads = 0, kWrites = 1, kOverNvlink = 2, kAtomics = 3;

using CommonAncestor = Result(Device, Device, int*);
using PeerStatus = Result(Device, Device, int, int*);
using NvlinkState = Result(Device, unsigned, int*);
using RemotePci = Result(Device, unsigned, PciInfo*);
using RemoteType = Result(Device, unsigned, int*);

std::string line_of(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}
int number_of(const fs::path& path) {
    const std::string line = line_of(path);
    int number = -1;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    return error == std::errc() && end != line.data() ? number : -1;
}

// What /sys says of a device.
struct Place {
    std::string folder;  // "/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0"; empty: unknown
    int numa = -1, lanes = -1;
    double bytes_per_second = -1;
};

Place place_of(const std::string& bus, const std::string& root) {
    Place place;
    if (bus.empty()) return place;
    std::error_code error;
    const fs::path folder = fs::canonical(root + "/sys/bus/pci/devices/" + bus, error);
    if (error) return place;
    place.folder = folder.string();
    place.numa = number_of(folder / "numa_node");
    // A device is as fast as the slot above it: the speed of the moment says less, since idle links slow
    // down.
    for (const fs::path& end : {folder, folder.parent_path()}) {
        const int lanes = number_of(end / "max_link_width");
        const double speed = traces::store::pcie_bytes_per_second(line_of(end / "max_link_speed"), lanes);
        if (speed <= 0) continue;
        if (place.lanes < 0 || lanes < place.lanes) place.lanes = lanes;
        if (place.bytes_per_second < 0 || speed < place.bytes_per_second) place.bytes_per_second = speed;
    }
    return place;
}

std::string link_of_level(int level) {
    static constexpr std::pair<int, const char*> kLevels[] = {{0, "PIX"},  {10, "PIX"},  {20, "PXB"},
                                                              {30, "PHB"}, {40, "NODE"}, {50, "SYS"}};
    for (const auto& [number, link] : kLevels)
        if (number == level) return link;
    return {};
}

std::string status_text(int status) {
    static constexpr const char* kStatuses[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS", "U"};
    return status >= 0 && status < static_cast<int>(std::size(kStatuses)) ? kStatuses[status] : "U";
}

std::string bus_text(const PciInfo& pci) {
    return fmt::format("{:x}:{:02x}:{:02x}", pci.domain, pci.bus, pci.device);
}

// The NVLinks of a GPU.
struct Nvlinks {
    std::string own;                // its address, as bus_text() writes it
    std::map<std::string, int> to;  // by the address of the GPU at the other end
    int to_switch = 0;
    double each = -1;  // bytes per second of one
};

class Nvlink {
  public:
    explicit Nvlink(const Library& nvml)
        : nvml_(nvml),
          state_(nvml.find<NvlinkState>("nvmlDeviceGetNvLinkState")),
          pci_(nvml.find<RemotePci>("nvmlDeviceGetNvLinkRemotePciInfo_v2")),
          type_(nvml.find<RemoteType>("nvmlDeviceGetNvLinkRemoteDeviceType")) {}

    Nvlinks of(Device device) const {
        Nvlinks links;
        PciInfo pci{};
        const Functions& call = nvml_.call();
        if (call.pci != nullptr && call.pci(device, &pci) == kSuccess) links.own = bus_text(pci);
        if (state_ == nullptr || pci_ == nullptr) return links;
        for (unsigned link = 0; link < kMostNvlinks; ++link) {
            int active = 0;
            const Result result = state_(device, link, &active);
            if (result != kSuccess) break;  // the GPU has no such link
            PciInfo remote{};
            if (active == 0 || pci_(device, link, &remote) != kSuccess) continue;
            int type = kRemoteIsGpu;
            if (type_ != nullptr) type_(device, link, &type);
            if (type == kRemoteIsSwitch)
                ++links.to_switch;
            else
                ++links.to[bus_text(remote)];
        }
        FieldValue speed{};
        speed.field = kNvlinkMegabytesPerSecond;
        if (call.fields != nullptr && call.fields(device, 1, &speed) == kSuccess &&
            speed.result == kSuccess) {
            const auto megabytes = speed.value_type == kTypeUnsigned ? speed.value.small : speed.value.number;
            if (megabytes > 0) links.each = static_cast<double>(megabytes) * 1e6;
        }
        return links;
    }

  private:
    const Library& nvml_;
    NvlinkState* state_;
    RemotePci* pci_;
    RemoteType* type_;
};

// Facts about two GPUs.
class Peers {
  public:
    explicit Peers(const Library& nvml)
        : ancestor_(nvml.find<CommonAncestor>("nvmlDeviceGetTopologyCommonAncestor")),
          status_(nvml.find<PeerStatus>("nvmlDeviceGetP2PStatus")) {}

    std::string pcie(Device a, Device b) const {
        int level = -1;
        return ancestor_ != nullptr && ancestor_(a, b, &level) == kSuccess ? link_of_level(level) : "";
    }
    std::string status(Device a, Device b, int what) const {
        int status = -1;
        return status_ != nullptr && status_(a, b, what, &status) == kSuccess ? status_text(status) : "";
    }

  private:
    CommonAncestor* ancestor_;
    PeerStatus* status_;
};

void add_peers(const Peers& peers, Device a, Device b, traces::schema::TopologyRow& row) {
    row.read = peers.status(a, b, kReads);
    row.write = peers.status(a, b, kWrites);
    row.nvlink = peers.status(a, b, kOverNvlink);
    row.atomics = peers.status(a, b, kAtomics);
}

void add_nvlinks(const Nvlinks& a, const Nvlinks& b, traces::schema::TopologyRow& row) {
    int count = std::min(a.to_switch, b.to_switch);
    if (const auto direct = a.to.find(b.own); direct != a.to.end()) count += direct->second;
    if (count == 0) return;
    row.link = fmt::format("NV{}", count);
    row.lanes = count;
    row.bytes_per_second = a.each > 0 && b.each > 0 ? std::min(a.each, b.each) * count : -1;
}

}  // namespace

std::string pcie_link(const std::string& a, int a_numa, const std::string& b, int b_numa) {
    const fs::path a_path(a), b_path(b);
    if (a.empty() || b.empty()) return {};
    const std::vector<fs::path> a_parts(a_path.begin(), a_path.end()), b_parts(b_path.begin(), b_path.end());
    std::size_t same = 0;
    while (same < a_parts.size() && same < b_parts.size() && a_parts[same] == b_parts[same]) ++same;
    const auto is_root = [](const fs::path& part) { return part.string().starts_with("pci"); };
    const auto below_root = [&](const std::vector<fs::path>& parts) {
        const auto root = std::find_if(parts.begin(), parts.end(), is_root);
        return static_cast<std::size_t>(root - parts.begin()) + 1;
    };
    const std::size_t shared = below_root(a_parts);
    if (shared > a_parts.size() || below_root(b_parts) > b_parts.size()) return {};  // not PCI
    if (same < shared) {                                                             // another host bridge
        if (a_numa < 0 || b_numa < 0) return {};
        return a_numa == b_numa ? "NODE" : "SYS";
    }
    if (same == shared) return "PHB";  // ports of one host bridge
    // What is left to each: the port of a switch and the device itself.
    constexpr std::size_t kBelowSwitch = 2;
    return a_parts.size() - same <= kBelowSwitch && b_parts.size() - same <= kBelowSwitch ? "PIX" : "PXB";
}

std::vector<traces::schema::TopologyRow> links_between(const Library* nvml, const std::vector<LinkEnd>& ends,
                                                       const std::string& root) {
    std::vector<Place> places;
    std::vector<Nvlinks> nvlinks;
    for (const LinkEnd& end : ends) {
        places.push_back(place_of(end.bus, root));
        nvlinks.push_back(nvml != nullptr && end.device != nullptr ? Nvlink(*nvml).of(end.device)
                                                                   : Nvlinks());
    }
    std::vector<traces::schema::TopologyRow> rows;
    for (std::size_t a = 0; a < ends.size(); ++a) {
        for (std::size_t b = a + 1; b < ends.size(); ++b) {
            traces::schema::TopologyRow row;
            row.from = ends[a].label;
            row.to = ends[b].label;
            row.source = "sys";
            const bool gpus = nvml != nullptr && ends[a].device != nullptr && ends[b].device != nullptr;
            if (gpus) {
                const Peers peers(*nvml);
                row.source = "nvml";
                row.link = peers.pcie(ends[a].device, ends[b].device);
                add_peers(peers, ends[a].device, ends[b].device, row);
            }
            if (row.link.empty())
                row.link = pcie_link(places[a].folder, places[a].numa, places[b].folder, places[b].numa);
            if (places[a].lanes > 0 && places[b].lanes > 0)
                row.lanes = std::min(places[a].lanes, places[b].lanes);
            if (places[a].bytes_per_second > 0 && places[b].bytes_per_second > 0)
                row.bytes_per_second = std::min(places[a].bytes_per_second, places[b].bytes_per_second);
            if (gpus) add_nvlinks(nvlinks[a], nvlinks[b], row);
            if (!row.link.empty() || !row.read.empty()) rows.push_back(std::move(row));
        }
    }
    return rows;
}

}  // namespace shardscope::profiler::nvml
