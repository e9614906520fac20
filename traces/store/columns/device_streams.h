// Stream numbers of a rank that uses several devices (one process with two GPUs): each device after the first
// has its own range of stream numbers, so that a stream's number identifies the device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace shardscope::traces::store {

inline constexpr int kStreamsOfDevice = 1'000'000;
inline constexpr int kFurtherDevices = 2000;  // any beyond share the last one's numbers

// `nth`: 0 the rank's first device, whose streams keep their numbers.
inline int stream_of_device(std::size_t nth, int stream) {
    if (nth == 0) return stream;
    return static_cast<int>(std::min<std::size_t>(nth, kFurtherDevices)) * kStreamsOfDevice +
           std::clamp(stream, 0, kStreamsOfDevice - 1);
}
inline std::uint16_t device_of_stream(int stream) {
    return static_cast<std::uint16_t>(std::clamp(stream / kStreamsOfDevice, 0, kFurtherDevices));
}

// An active device and its process (0: unknown) in an export that does not name ranks.
using DeviceOfProcess = std::pair<std::int64_t, std::int64_t>;

// The export's ranks: each process is one, whatever devices it uses, and is listed with the lowest of them; a
// device whose process is unknown is a rank, too. Sorted by device, then by process.
inline std::vector<DeviceOfProcess> ranks_of_processes(const std::set<DeviceOfProcess>& all) {
    std::map<std::int64_t, std::int64_t> lowest;  // device by process; the set is sorted by device
    for (const auto& [device, process] : all) lowest.try_emplace(process, device);
    std::vector<DeviceOfProcess> ranks;
    for (const auto& [device, process] : all) {
        if (process == 0 || lowest.at(process) == device) ranks.emplace_back(device, process);
    }
    return ranks;
}

}  // namespace shardscope::traces::store
