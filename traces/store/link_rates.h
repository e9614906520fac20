// What links between devices can carry in one direction, by what they are.
#pragma once

#include <string_view>

namespace shardscope::traces::store {

// Bytes per second of PCIe, after its line code: "32.0 GT/s PCIe" (as the kernel writes it) and 16 lanes. -1:
// the text is not a speed.
double pcie_bytes_per_second(std::string_view speed, int lanes);

// Bytes per second of one NVLink of a GPU by its compute capability (90: 9.0), by NVIDIA's data sheets:
// NVLink 1 (P100), 2 to 4 (V100, A100, H100), 5 (B100). -1: it has none.
double nvlink_bytes_per_second(int capability);

}  // namespace shardscope::traces::store
