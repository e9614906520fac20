// The header by which a member tells the others which collective it begins, and its wording in messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/device/device.h"

namespace shardscope::trainer::comm {

// Sent as it lies in memory, because all processes of a job run the same program.
struct CallHeader {
    std::int64_t sequence = 0, step = 0, full_elements = 0;
    plan::CommunicatorId communicator = plan::CommunicatorId::world;
    std::int32_t unit = -1, divisor = 1;
    plan::Operation operation = plan::Operation::barrier;
    plan::DType dtype = plan::DType::fp32;
    plan::Phase phase = plan::Phase::none;
    plan::Reduction reduction = plan::Reduction::sum;

    friend bool operator==(const CallHeader&, const CallHeader&) = default;
};
static_assert(sizeof(CallHeader) == 40);

// Whether two members call the same collective. The two ends of a message may belong to different units and
// phases: those of their own stage.
bool agree(const CallHeader& a, const CallHeader& b);

CallHeader header_of(const device::CollectiveLaunch& launch);

using UnitName = std::function<std::string(int unit)>;

// "step 3, unit 2 "net.4", backward": what the collective belongs to.
std::string where(const CallHeader& header, const UnitName& unit_name);
// "all_gather number 12 of communicator 0 (step 3, unit 2 "net.4")"; of a message, whose `ends` are the ranks
// that send and receive it, "message number 12 from rank 0 to rank 4 (step 3)".
std::string title(const CallHeader& header, const UnitName& unit_name, const std::vector<int>& ends = {});
// What follows "rank 1 ": "calls all_gather of 1024 fp32 (...) where rank 0 calls ...: number 12 of ...".
std::string divergence(const CallHeader& theirs, int reference_rank, const CallHeader& reference,
                       const UnitName& unit_name, const std::vector<int>& ends = {});

}  // namespace shardscope::trainer::comm
