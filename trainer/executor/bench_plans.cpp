#include "trainer/executor/bench_plans.h"

#include <algorithm>
#include <initializer_list>
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
    if (options.collectives) add_collectives(options);
    if (mesh.talkers < 2) return;
    add_messages(0, 1, bench_sizes(options.smallest, options.largest));
    if (!options.pairs) return;
    const std::vector<std::int64_t> both = {options.smallest,
                                            std::clamp(kPairBytes, options.smallest, options.largest)};
    for (int from = 0; from < mesh.talkers; ++from) {
        for (int to = 0; to < mesh.talkers; ++to) {
            if (from != to) add_messages(from, to, both);
        }
    }
}

void BenchPlans::add_collectives(const CollectiveBenchOptions& options) {
    for (const plan::Operation operation : kOperations) {
        std::int64_t before = 0;
        for (const std::int64_t wanted : bench_sizes(options.smallest, options.largest)) {
            OfCollective measure;
            // As in nccl-tests: whole pieces of whole elements.
            const std::int64_t piece = kElement * ranks_;
            measure.rate.operation = operation;
            measure.rate.bytes = std::max<std::int64_t>(1, wanted / piece) * piece;
            if (std::exchange(before, measure.rate.bytes) == measure.rate.bytes) continue;
            measure.rate.repeats = repeats_of(measure.rate.bytes, kRepeatedBytes);
            measure.once = collective(measure.rate, 1);
            measure.many = collective(measure.rate, measure.rate.repeats);
            collectives_.push_back(std::move(measure));
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

void BenchPlans::add_messages(int from, int to, const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t wanted : sizes) {
        OfMessage measure;
        measure.rate.from = from;
        measure.rate.to = to;
        measure.rate.bytes = std::max(kElement, wanted / kElement * kElement);
        measure.rate.repeats = repeats_of(measure.rate.bytes, kSentBytes);
        const auto known = [&](const OfMessage& other) {
            return other.rate.from == from && other.rate.to == to && other.rate.bytes == measure.rate.bytes;
        };
        if (std::any_of(messages_.begin(), messages_.end(), known)) continue;
        for (int place = 0; place < 2; ++place) {
            const auto at = static_cast<std::size_t>(place);
            measure.round_trips[at] = round_trips(measure.rate, place);
            measure.one_way[at] = one_way(measure.rate, place);
            measure.both_ways[at] = both_ways(measure.rate, place);
        }
        messages_.push_back(std::move(measure));
    }
}

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
