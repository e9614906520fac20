#include "trainer/executor/wire_bench.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include <fmt/core.h>
#include <unistd.h>

#include "trainer/comm/message_bench.h"
#include "trainer/executor/host_memory.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::executor {

namespace {

struct GiveBack {
    void operator()(std::byte* data) const { give_back_host_memory(data); }
};
using Memory = std::unique_ptr<std::byte, GiveBack>;

Memory take(std::int64_t bytes) {
    Memory memory(take_host_memory(static_cast<std::size_t>(bytes)));
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), 1, static_cast<std::size_t>(bytes));
    return memory;
}

MessageTimes measure(comm::MessageBench& bench, const MessageRate& rate, int rank) {
    const bool first = rank == rate.from;
    const int peer = first ? rate.to : rate.from;
    MessageTimes times;
    times.latency_us = bench.latency_us(peer, first, rate.bytes);
    times.us = bench.one_way_us(peer, first, rate.bytes);
    times.both_us = bench.both_ways_us(peer, first, rate.bytes);
    return times;
}

}  // namespace

void measure_on_wire(Processes& processes, const CollectiveBenchOptions& options, double timeout_s,
                     std::vector<MessageRate>& messages) {
    if (messages.empty()) return;
    world::World& world = *processes.world;
    std::int64_t largest = 0;
    for (const MessageRate& rate : messages) largest = std::max(largest, rate.bytes);
    const Memory out = take(largest), in = take(largest);
    const auto size = static_cast<std::size_t>(largest);
    const std::unique_ptr<comm::Wire> wire = processes.open_wire();
    comm::MessageBenchOptions own;
    own.timeout_s = timeout_s > 0 ? timeout_s : own.timeout_s;
    // A wire whose engine's threads move the data needs the core for them.
    own.polls = wire->moves_in_progress() && ::sysconf(_SC_NPROCESSORS_ONLN) > 1;
    comm::MessageBench bench(*wire, {out.get(), size}, {in.get(), size}, own);
    world::MessageWriter mine;
    for (const MessageRate& rate : messages) {
        world.barrier();  // a pair is measured while the other ranks sleep
        if (world.rank() == 0 && options.on_progress)
            options.on_progress(fmt::format("messages of {} bytes over the wire", rate.bytes));
        MessageTimes times;
        if (world.rank() == rate.from || world.rank() == rate.to) times = measure(bench, rate, world.rank());
        mine.add(times.latency_us).add(times.us).add(times.both_us);
    }
    const std::vector<std::string> texts = world.gather(mine.text());
    if (world.rank() != 0) return;
    for (const std::string& text : texts) {  // only the sender knows; the others have 0
        world::MessageReader message(text);
        for (MessageRate& rate : messages) {
            MessageTimes& known = rate.on_wire;
            known.latency_us = std::max(known.latency_us, message.number<double>());
            known.us = std::max(known.us, message.number<double>());
            known.both_us = std::max(known.both_us, message.number<double>());
        }
    }
}

}  // namespace shardscope::trainer::executor
