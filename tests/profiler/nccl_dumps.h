// What NCCL's first communicator writes on a host of two GPUs with an adapter, by its rules (NVIDIA/nccl,
// src/graph/topo.cc, search.cc and xml.cc): the rank of the communicator that NCCL_TOPO_DUMP_FILE_RANK and
// NCCL_GRAPH_DUMP_FILE_RANK say, or 0, opens the files anew; one that cannot be opened is a warning.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace shardscope::profiler::testing {

inline constexpr const char* kNcclSystem =
    "<system version=\"1\">\n"
    "  <cpu host_hash=\"0x5ca1ab1e\" numaid=\"0\" affinity=\"00000000,0000000f\" arch=\"x86_64\">\n"
    "    <pci busid=\"0000:10:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "      <pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">\n"
    "          <nvlink target=\"0000:12:00.0\" count=\"18\" tclass=\"0x030200\"/>\n"
    "        </gpu>\n"
    "      </pci>\n"
    "      <pci busid=\"0000:12:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\">\n"
    "          <nvlink target=\"0000:11:00.0\" count=\"18\" tclass=\"0x030200\"/>\n"
    "        </gpu>\n"
    "      </pci>\n"
    "      <pci busid=\"0000:13:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <nic>\n"
    "          <net name=\"mlx5_0\" dev=\"0\" latency=\"0.000000\" speed=\"400000\" port=\"1\" gdr=\"1\"/>\n"
    "        </nic>\n"
    "      </pci>\n"
    "    </pci>\n"
    "  </cpu>\n"
    "</system>\n";
inline constexpr const char* kNcclGraphs =
    "<graphs version=\"1\">\n"
    "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" typeintra=\"NVL\">\n"
    "    <channel>\n"
    "      <gpu dev=\"0\"/>\n"
    "      <gpu dev=\"1\"/>\n"
    "    </channel>\n"
    "  </graph>\n"
    "</graphs>\n";

// `part`: how much of a file is there when the process ends.
inline void write_nccl_dumps(int rank, double part = 1) {
    const auto write = [&](const std::string& variable, const std::string& text) {
        const char* path = std::getenv(variable.c_str());
        const char* by = std::getenv((variable + "_RANK").c_str());
        if (path == nullptr || (by == nullptr ? 0 : std::atoi(by)) != rank) return;
        std::FILE* file = std::fopen(path, "w");
        if (file == nullptr) {
            std::fprintf(stderr, "NCCL WARN Unable to open %s, not dumping topology.\n", path);
            return;
        }
        std::fwrite(text.data(), 1, static_cast<std::size_t>(part * static_cast<double>(text.size())), file);
        std::fclose(file);
    };
    write("NCCL_TOPO_DUMP_FILE", kNcclSystem);
    write("NCCL_GRAPH_DUMP_FILE", kNcclGraphs);
}

}  // namespace shardscope::profiler::testing
