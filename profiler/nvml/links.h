// How the GPUs and adapters of a host reach each other: NVLinks and peer access by NVML, PCIe by /sys. The
// calls may take tens of milliseconds (library.h).
#pragma once

#include <string>
#include <vector>

#include "profiler/nvml/library.h"
#include "traces/schema/rows.h"

namespace shardscope::profiler::nvml {

// A GPU or an adapter, with its place in the table of links.
struct LinkEnd {
    std::string label;        // "GPU0", "NIC1"
    std::string bus;          // its PCI address; empty: unknown
    Device device = nullptr;  // of a GPU
};

// Each pair once, in the order of `ends`; the hosts are left to the caller. What cannot be read stays
// unknown. `nvml`: null where there is none. `root`: put before /sys, for tests.
std::vector<traces::schema::TopologyRow> links_between(const Library* nvml, const std::vector<LinkEnd>& ends,
                                                       const std::string& root = "");

// The link that PCIe makes between two devices, by the folders of both under /sys/devices and their NUMA
// nodes (-1: unknown): "PIX", "PXB", "PHB", "NODE", "SYS"; empty: unknown.
std::string pcie_link(const std::string& a, int a_numa, const std::string& b, int b_numa);

}  // namespace shardscope::profiler::nvml
