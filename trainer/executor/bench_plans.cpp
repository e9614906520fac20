#include "trainer/executor/bench_plans.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "trainer/plan/builder.h"

namespace shardscope::trainer::executor {

namespace {

constexpr std::array kOperations = {plan::Operation::all_gather, plan::Operation::reduce_scatter,
                                    plan::Operation::all_reduce, plan::Operation::broadcast,
                                    plan::Operation::all_to_all};
// Most per measurement. Of messages more: each moves its bytes once, and the first find cold caches.
constexpr std::int64_t kRepeatedBytes = 64 << 20, kSentBytes = 256 << 20;
constexpr std::int64_t kSentByPair = 32 << 20;  // of the others than ranks 0 and 1, which may be many
constexpr int kMostRepeats = 100, kFewestRepeats = 3;
constexpr std::int64_t kElement = 4;  // bytes: everything is fp32
constexpr plan::BufferId kAll = 0, kOwn = 1;

int repeats_of(std::int64_t bytes, std::int64_t most) {
    return static_cast<int>(std::clamp<std::int64_t>(most / bytes, kFewestRepeats, kMostRepeats));
}

// The host waits for what the streams have.
void wait_for(plan::PlanBuilder& builder, std::initializer_list<plan::Stream> streams) {
    for (const plan::Stream stream : streams) {
        const plan::EventId over = builder.new_event();
        builder.record(over, stream);
        builder.host_wait(over);
    }
}

}  // namespace

std::vector<std::int64_t> bench_sizes(std::int64_t smallest, std::int64_t largest) {
    std::vector<std::int64_t> sizes = {smallest};
    std::int64_t power = 1;
    while (power <= smallest) power *= 4;
    for (; power < largest; power *= 4) sizes.push_back(power);
    if (largest > smallest) sizes.push_back(largest);
    return sizes;
}

std::vector<CollectiveRate> collective_rates(int ranks, const CollectiveBenchOptions& options) {
    std::vector<CollectiveRate> rates;
    if (!options.collectives) return rates;
    for (const plan::Operation operation : kOperations) {
        std::int64_t before = 0;
        for (const std::int64_t wanted : bench_sizes(options.smallest, options.largest)) {
            // As in nccl-tests: whole pieces of whole elements.
            const std::int64_t piece = kElement * ranks;
            const std::int64_t bytes = std::max<std::int64_t>(1, wanted / piece) * piece;
            if (std::exchange(before, bytes) == bytes) continue;
            rates.push_back(
                {.operation = operation, .bytes = bytes, .repeats = repeats_of(bytes, kRepeatedBytes)});
        }
    }
    return rates;
}

std::vector<MessageRate> message_rates(int talkers, const CollectiveBenchOptions& options) {
    std::vector<MessageRate> rates;
    if (talkers < 2) return rates;
    const auto add = [&](int from, int to, const std::vector<std::int64_t>& sizes, std::int64_t most) {
        std::set<std::int64_t> known;
        for (const std::int64_t wanted : sizes) {
            const std::int64_t bytes = std::max(kElement, wanted / kElement * kElement);
            if (!known.insert(bytes).second) continue;
            rates.push_back({.from = from, .to = to, .bytes = bytes, .repeats = repeats_of(bytes, most)});
        }
    };
    add(0, 1, bench_sizes(options.smallest, options.largest), kSentBytes);
    if (!options.pairs) return rates;
    const std::vector<std::int64_t> both = {options.smallest,
                                            std::clamp(kPairBytes, options.smallest, options.largest)};
    for (int from = 0; from < talkers; ++from) {
        for (int to = 0; to < talkers; ++to) {
            if (from != to && !(from == 0 && to == 1)) add(from, to, both, kSentByPair);
        }
    }
    return rates;
}

BenchPlans::BenchPlans(const plan::Mesh& mesh, const CollectiveBenchOptions& options) : ranks_(mesh.ranks) {
    // Of the smallest collectives every rank has an element.
    const std::int64_t room = std::max(options.largest, kElement * ranks_);
    for (const char* name : {"all ranks' elements", "own elements"})
        buffers_.push_back(
            {name, plan::MemoryCategory::communication, plan::MemorySpace::device, room, -1, -1});
    plan::PlanBuilder begin(plan::PlanKind::setup, buffers_), end(plan::PlanKind::finish, buffers_);
    for (const plan::BufferId buffer : {kAll, kOwn}) {
        begin.allocate(buffer, plan::Stream::compute);
        begin.memset(begin.whole(buffer));
        end.free(buffer);
    }
    begin_ = begin.take();
    end_ = end.take();
    for (const CollectiveRate& rate : collective_rates(ranks_, options))
        collectives_.push_back({rate, collective(rate, 1), collective(rate, rate.repeats)});
    for (const MessageRate& rate : message_rates(mesh.talkers, options)) {
        OfMessage& measure = messages_.emplace_back();
        measure.rate = rate;
        for (int place = 0; place < 2; ++place) {
            const auto at = static_cast<std::size_t>(place);
            measure.round_trips[at] = round_trips(rate, place);
            measure.one_way[at] = one_way(rate, place);
            measure.both_ways[at] = both_ways(rate, place);
        }
    }
}

plan::Plan BenchPlans::collective(const CollectiveRate& rate, int repeats) const {
    plan::PlanBuilder builder(plan::PlanKind::steady, buffers_);
    const std::int64_t bytes = rate.bytes;
    const bool gathers = rate.operation == plan::Operation::all_gather;
    const bool pieces = gathers || rate.operation == plan::Operation::reduce_scatter;
    const plan::Arg all{kAll, 0, bytes, 0}, own{kOwn, 0, pieces ? bytes / ranks_ : bytes, 0};
    {
        const plan::PlanBuilder::Range range(builder,
                                             fmt::format("{} of {} bytes", name(rate.operation), bytes));
        for (int i = 0; i < repeats; ++i) {
            builder.collective({.operation = rate.operation}, gathers ? all : own, gathers ? own : all, bytes,
                               plan::Stream::unshard);
        }
        wait_for(builder, {plan::Stream::unshard});
    }
    return builder.take();
}

// --- messages --------------------------------------------------------------------------------------------

void BenchPlans::message(plan::PlanBuilder& builder, plan::Operation operation, const MessageRate& rate,
                         int place, plan::Stream stream) const {
    const plan::Arg buffer{operation == plan::Operation::send ? kOwn : kAll, 0, rate.bytes, 0};
    // A message has one buffer.
    builder
        .collective({.operation = operation, .peer = place == 0 ? rate.to : rate.from}, buffer, buffer,
                    rate.bytes, stream)
        .args.resize(1);
}

// One stream, so that each message is sent when the one before it has come.
plan::Plan BenchPlans::round_trips(const MessageRate& rate, int place) const {
    plan::PlanBuilder builder(plan::PlanKind::steady, buffers_);
    {
        const plan::PlanBuilder::Range range(builder, fmt::format("round trips of {} bytes", rate.bytes));
        for (int i = 0; i < rate.repeats; ++i) {
            for (const int sender : {0, 1})
                message(builder, sender == place ? plan::Operation::send : plan::Operation::recv, rate, place,
                        plan::Stream::unshard);
        }
        wait_for(builder, {plan::Stream::unshard});
    }
    return builder.take();
}

plan::Plan BenchPlans::one_way(const MessageRate& rate, int place) const {
    plan::PlanBuilder builder(plan::PlanKind::steady, buffers_);
    {
        const plan::PlanBuilder::Range range(builder, fmt::format("messages of {} bytes", rate.bytes));
        for (int i = 0; i < rate.repeats; ++i)
            message(builder, place == 0 ? plan::Operation::send : plan::Operation::recv, rate, place,
                    plan::Stream::unshard);
        wait_for(builder, {plan::Stream::unshard});
    }
    return builder.take();
}

plan::Plan BenchPlans::both_ways(const MessageRate& rate, int place) const {
    plan::PlanBuilder builder(plan::PlanKind::steady, buffers_);
    {
        const plan::PlanBuilder::Range range(builder,
                                             fmt::format("messages of {} bytes both ways", rate.bytes));
        for (int i = 0; i < rate.repeats; ++i) {
            message(builder, plan::Operation::send, rate, place, plan::Stream::unshard);
            message(builder, plan::Operation::recv, rate, place, plan::Stream::post_backward);
        }
        wait_for(builder, {plan::Stream::unshard, plan::Stream::post_backward});
    }
    return builder.take();
}

std::vector<const plan::Plan*> BenchPlans::all() const {
    std::vector<const plan::Plan*> all = {&begin_, &end_};
    for (const OfCollective& measure : collectives_) {
        all.push_back(&measure.once);
        all.push_back(&measure.many);
    }
    for (const OfMessage& measure : messages_) {
        for (const OfMessage::Ends* ends : {&measure.round_trips, &measure.one_way, &measure.both_ways})
            for (const plan::Plan& plan : *ends) all.push_back(&plan);
    }
    return all;
}

}  // namespace shardscope::trainer::executor
