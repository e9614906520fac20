#include "traces/store/link_rates.h"

#include <charconv>

namespace shardscope::traces::store {

double pcie_bytes_per_second(std::string_view speed, int lanes) {
    constexpr double kMostTransfers = 1000;  // GT/s; more is damage
    double transfers = 0;
    std::from_chars(speed.data(), speed.data() + speed.size(), transfers);
    if (!(transfers > 0 && transfers <= kMostTransfers) || lanes <= 0) return -1;
    const double code = transfers < 8 ? 8.0 / 10 : 128.0 / 130;  // of PCIe 1 and 2, and since
    return transfers * 1e9 * lanes / 8 * code;
}

double nvlink_bytes_per_second(int capability) {
    if (capability >= 100) return 50e9;
    if (capability == 86) return 14.0625e9;  // four links, 112.5 GB/s in both directions together
    if (capability >= 70) return 25e9;
    return capability >= 60 ? 20e9 : -1;
}

}  // namespace shardscope::traces::store
