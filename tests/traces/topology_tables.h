// Tables as nvidia-smi topo prints them: cells between tabs, the head underlined on a terminal.
#pragma once

#include <string_view>

namespace shardscope::traces {

// Two GPUs on each of two processors, a network adapter next to each pair.
inline constexpr std::string_view kFourGpus =
    "\t\x1B[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1B[0m\n"
    "GPU0\t X \tNV4\tSYS\tSYS\tPIX\tSYS\t0-15,32-47\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\tSYS\tPXB\tSYS\t0-15,32-47\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tNV4\tSYS\tPHB\t16-31,48-63\t1\t\tN/A\n"
    "GPU3\tSYS\tSYS\tNV4\t X \tSYS\tNODE\t16-31,48-63\t1\t\tN/A\n"
    "NIC0\tPIX\tPXB\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tPHB\tNODE\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  NV#  = some NVLinks\n"
    "\n"
    "NIC Legend:\n"
    "\n"
    "  NIC0: mlx5_0\n"
    "  NIC1: mlx5_1\n";

// Peer access on a board without NVLink: neighbours alone reach each other.
inline constexpr std::string_view kNeighbours =
    " \tGPU0\tGPU1\tGPU2\tGPU3\t\n"
    " GPU0\tX\tOK\tCNS\tCNS\t\n"
    " GPU1\tOK\tX\tCNS\tCNS\t\n"
    " GPU2\tCNS\tCNS\tX\tOK\t\n"
    " GPU3\tCNS\tCNS\tOK\tX\t\n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  OK   = Status Ok\n";

// Peer access on a board whose GPUs all reach one another.
inline constexpr std::string_view kAllReach =
    " \tGPU0\tGPU1\tGPU2\tGPU3\t\n"
    " GPU0\tX\tOK\tOK\tOK\t\n"
    " GPU1\tOK\tX\tOK\tOK\t\n"
    " GPU2\tOK\tOK\tX\tOK\t\n"
    " GPU3\tOK\tOK\tOK\tX\t\n";

}  // namespace shardscope::traces
