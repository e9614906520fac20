#include "trainer/executor/out_of_memory.h"

#include <fmt/core.h>

#include "trainer/executor/run.h"

namespace shardscope::trainer::executor {

void throw_out_of_memory(const plan::Plan& plan, const plan::Op& op, const MemoryShortage& shortage) {
    const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
    std::string held;
    const plan::CategoryBytes& live = shortage.counter.live_by_category();
    for (std::size_t c = 0; c < live.size(); ++c) {
        if (live[c] == 0) continue;
        held += fmt::format("{}{} {}", held.empty() ? "" : ", ", live[c],
                            traces::schema::kMemoryCategoryNames[c]);
    }
    std::string moment = std::string(traces::schema::name(op.phase));
    if (op.unit >= 0) {
        const bool gathering = buffer.category == plan::MemoryCategory::unsharded_parameters ||
                               buffer.category == plan::MemoryCategory::communication;
        moment += fmt::format(", {} unit {} ({})", gathering ? "gathering" : "in", op.unit, shortage.unit);
    }
    const bool of_disk = buffer.space == plan::MemorySpace::disk;
    if (of_disk || shortage.of_host) {
        throw OutOfMemory(fmt::format(
            "step {}, rank {}: the {} is full: {} bytes for {} ({}) do not fit {}; {} or make the model "
            "smaller",
            shortage.step, shortage.rank, of_disk ? "disk" : "host's memory", buffer.bytes, buffer.name,
            moment, shortage.place,
            of_disk
                ? "free space there, name a folder on another disk"
                : "leave more on the device (memory.offload, fsdp.cpu_offload), use files (memory.nvme)"));
    }
    const std::string sentence = fmt::format(
        "step {}, rank {}: out of memory: {} bytes for {} ({}) do not fit {}; allocated are {} bytes ({}) of "
        "{} reserved; {}make the units (fsdp.wrap), the batch (data.batch) or the model smaller",
        shortage.step, shortage.rank, buffer.bytes, buffer.name, moment, shortage.place,
        shortage.counter.live_bytes(), held.empty() ? "nothing" : held, shortage.reserved, shortage.remedy);
    throw OutOfMemory(sentence, shortage.room);
}

}  // namespace shardscope::trainer::executor
