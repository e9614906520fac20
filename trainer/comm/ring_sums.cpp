#include "trainer/comm/ring_sums.h"

#include <algorithm>
#include <array>

#include "trainer/collective/pieces.h"
#include "trainer/comm/block_sums.h"
#include "trainer/comm/message_line.h"
#include "trainer/comm/message_tag.h"
#include "trainer/comm/ring_order.h"

namespace shardscope::trainer::comm {

namespace {

constexpr std::int64_t kSegment = 256 << 10;
constexpr std::int64_t kGroup = MessageLine::kDepth;  // segments
// Slots for sums that are received and not yet sent on: two rounds of a group's segments, because those of
// the next round arrive while those of this one leave.
constexpr std::int64_t kRingSlots = 2 * kGroup;

class RingSums : public Transfer {
  public:
    explicit RingSums(const TransferContext& context)
        : context_(context),
          members_(static_cast<std::int64_t>(context.members())),
          all_reduce_(context.launch.call.operation == plan::Operation::all_reduce),
          order_{blocks_of(0).count(), members_ - 1, kGroup},
          next_(context.after(1)),
          previous_(context.after(context.members() - 1)),
          send_sums_(line_to(MessageStream::inputs, [this](std::int64_t i) { return outgoing_sum(i); })),
          receive_sums_(line_from(MessageStream::inputs, [this](std::int64_t i) { return slot(i); })),
          send_results_(
              line_to(MessageStream::results,
                      [this](std::int64_t i) -> std::span<const std::byte> { return result(i, 0); })),
          receive_results_(
              line_from(MessageStream::results, [this](std::int64_t i) { return result(i, 1); })) {}

    bool advance() override {
        if (members_ == 1) return sum_alone();
        bool changed = false;
        if (context_.may_send(next_, blocks_of(0).bytes)) changed |= send_sums_.advance(sums_to_send());
        if (get_ready()) {
            changed |= receive_sums_.advance(sums_to_receive());
            changed |= sum_next();
        }
        if (all_reduce_) {
            changed |= send_results_.advance(results_to_send());
            changed |= receive_results_.advance(results_to_receive());
        }
        return changed;
    }

    bool ended() const override {
        return summed_ == sums() && (members_ == 1 || (send_sums_.ended() && receive_sums_.ended())) &&
               (!all_reduce_ || members_ == 1 || (send_results_.ended() && receive_results_.ended()));
    }
    std::optional<std::size_t> awaits() const override {
        if (members_ == 1) return std::nullopt;
        if (!receive_sums_.ended() || (all_reduce_ && !receive_results_.ended())) return previous_;
        if (!send_sums_.ended() || (all_reduce_ && !send_results_.ended())) return next_;
        return std::nullopt;
    }

  private:
    MessageLine line_to(MessageStream stream, MessageLine::Outgoing memory) {
        return MessageLine::sends(context_.wire, context_.ranks[next_], tag(stream), order_.count(),
                                  std::move(memory));
    }
    MessageLine line_from(MessageStream stream, MessageLine::Incoming memory) {
        return MessageLine::receives(context_.wire, context_.ranks[previous_], tag(stream), order_.count(),
                                     std::move(memory));
    }
    std::uint32_t tag(MessageStream stream) const {
        return message_tag(context_.launch.communicator, context_.launch.sequence, stream);
    }

    // --- where things are -------------------------------------------------------------------------------
    std::int64_t begin_of(std::size_t place) const {
        const collective::CollectiveCall& call = context_.launch.call;
        return collective::piece_of(call.full_elements, context_.members(), place).begin *
               size_of(call.dtype);
    }
    Blocks blocks_of(std::size_t place) const {
        const collective::CollectiveCall& call = context_.launch.call;
        return {
            collective::piece_of(call.full_elements, context_.members(), place).count() * size_of(call.dtype),
            kSegment};
    }
    // The place `steps` before this member's.
    std::size_t before(std::int64_t steps) const {
        const auto place = static_cast<std::int64_t>(context_.place());
        return static_cast<std::size_t>(((place - steps) % members_ + members_) % members_);
    }
    std::span<const std::byte> input(std::size_t place, std::int64_t segment) const {
        const auto* data = static_cast<const std::byte*>(context_.launch.call.input);
        return blocks_of(place).of(data + begin_of(place), segment);
    }
    std::span<std::byte> output(std::size_t place, std::int64_t segment) const {
        auto* data = static_cast<std::byte*>(context_.launch.call.output);
        return blocks_of(place).of(data + (all_reduce_ ? begin_of(place) : 0), segment);
    }
    // Sums: round r sends segments of piece place - 1 - r and receives those of the piece before.
    std::size_t piece_received(const RingOrder::Message& message) const { return before(message.round + 2); }
    std::span<std::byte> slot(std::int64_t index) const {
        const RingOrder::Message message = order_.at(index);
        const Blocks blocks = blocks_of(piece_received(message));
        return {scratch_->data() + index % kRingSlots * slot_bytes(),
                static_cast<std::size_t>(blocks.size(message.segment))};
    }
    std::int64_t slot_bytes() const { return std::min(kSegment, blocks_of(0).bytes); }
    std::span<const std::byte> outgoing_sum(std::int64_t index) const {
        const RingOrder::Message message = order_.at(index);
        if (message.round == 0) return input(before(1), message.segment);
        return slot(order_.received_as(index));
    }
    // Results: round r sends segments of piece place - r and receives those of the piece before.
    std::span<std::byte> result(std::int64_t index, std::int64_t back) const {
        const RingOrder::Message message = order_.at(index);
        return output(before(message.round + back), message.segment);
    }

    // --- which messages may proceed: all below the number returned -----------------------------------------
    // Continues from the last answer, so that no message is checked again once it is ready.
    template <class Ready>
    std::int64_t extend(std::int64_t& known, Ready ready) const {
        while (known < order_.count() && ready(known)) ++known;
        return known;
    }
    std::int64_t sums_to_send() {
        return extend(sums_to_send_, [&](std::int64_t i) {
            return order_.at(i).round == 0 || order_.received_as(i) < summed_;
        });
    }
    // The slots are reused once their earlier sums are summed and sent on.
    std::int64_t sums_to_receive() {
        return extend(sums_to_receive_, [&](std::int64_t i) {
            const std::int64_t earlier = i - kRingSlots;
            if (earlier < 0) return true;
            if (order_.at(earlier).round == order_.rounds - 1) return earlier < summed_;
            return order_.sent_on_as(earlier) < send_sums_.over();
        });
    }
    std::int64_t results_to_send() {
        return extend(results_to_send_, [&](std::int64_t i) {
            return order_.at(i).round == 0 ? order_.last_of(i) < summed_
                                           : order_.received_as(i) < receive_results_.over();
        });
    }
    // In place, a result overwrites an input, so no message of its group may need its inputs any more.
    std::int64_t results_to_receive() {
        return extend(results_to_receive_, [&](std::int64_t i) {
            const std::int64_t end = order_.group_end(i);
            return end <= summed_ && end <= send_sums_.over();
        });
    }

    // Neighbours wait for each other's scratch memory: the pool must not be bounded.
    bool get_ready() {
        if (summed_ == sums()) return false;
        if (scratch_) return true;
        if (!context_.may_receive(previous_)) return false;
        scratch_ = context_.scratch.take(kRingSlots * slot_bytes());
        return scratch_.has_value();
    }

    // --- sums --------------------------------------------------------------------------------------------
    std::int64_t sums() const { return members_ == 1 ? order_.segments : order_.count(); }
    bool sum_next() {
        if (summed_ == receive_sums_.over()) return false;
        if (context_.delays) context_.delays->maybe_sleep();
        const RingOrder::Message message = order_.at(summed_);
        const std::span<std::byte> received = slot(summed_);
        const std::array<const std::byte*, 2> addends = {
            received.data(), input(piece_received(message), message.segment).data()};
        const bool last = message.round == order_.rounds - 1;
        std::byte* to = last ? output(context_.place(), message.segment).data() : received.data();
        sum_blocks(context_.launch.call.dtype, addends, to, static_cast<std::int64_t>(received.size()),
                   last ? context_.launch.call.divisor : 1, context_.launch.call.reduction);
        ++summed_;
        return true;
    }
    bool sum_alone() {
        if (summed_ == sums()) return false;
        const std::span<const std::byte> own = input(0, summed_);
        const std::array<const std::byte*, 1> addends = {own.data()};
        sum_blocks(context_.launch.call.dtype, addends, output(0, summed_).data(),
                   static_cast<std::int64_t>(own.size()), context_.launch.call.divisor,
                   context_.launch.call.reduction);
        ++summed_;
        return true;
    }

    TransferContext context_;
    std::int64_t members_;
    bool all_reduce_;
    RingOrder order_;
    std::size_t next_, previous_;  // places
    MessageLine send_sums_, receive_sums_, send_results_, receive_results_;
    std::optional<ScratchPool::Lease> scratch_;
    std::int64_t summed_ = 0;  // received messages that are summed
    std::int64_t sums_to_send_ = 0, sums_to_receive_ = 0, results_to_send_ = 0, results_to_receive_ = 0;
};

}  // namespace

std::unique_ptr<Transfer> make_ring_sums(const TransferContext& context) {
    return std::make_unique<RingSums>(context);
}

}  // namespace shardscope::trainer::comm
