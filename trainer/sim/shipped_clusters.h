// The cost models that ship with the tools, generated from samples/clusters at build time. Constant data.
#pragma once

#include <string_view>
#include <vector>

namespace shardscope::trainer::sim {

struct ShippedCluster {
    std::string_view name;  // "h200_nvlink"
    std::string_view toml;
};
const std::vector<ShippedCluster>& shipped_cluster_files();

}  // namespace shardscope::trainer::sim
