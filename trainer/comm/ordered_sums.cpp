#include "trainer/comm/ordered_sums.h"

#include <algorithm>

#include "trainer/collective/pieces.h"
#include "trainer/comm/block_sums.h"
#include "trainer/comm/message_line.h"
#include "trainer/comm/message_tag.h"
#include "trainer/kernels/streaming.h"

namespace shardscope::trainer::comm {

namespace {

// Blocks this small stay in the L2 cache from their arrival until they are summed.
constexpr std::int64_t kLargestBlock = 256 << 10;
constexpr std::int64_t kSmallestBlock = 16 << 10;
// Limits what is received and not yet summed, over all peers (unless there are very many).
constexpr std::int64_t kScratch = 8 << 20;
// Blocks per peer that are being received or wait for the other peers' blocks.
constexpr std::int64_t kSlots = MessageLine::kDepth;

class OrderedSums : public Transfer {
  public:
    explicit OrderedSums(const TransferContext& context)
        : context_(context),
          all_reduce_(context.launch.call.operation == plan::Operation::all_reduce),
          past_caches_(!all_reduce_ && static_cast<std::size_t>(context.launch.call.full_elements *
                                                                size_of(context.launch.call.dtype)) >
                                           kernels::cached_bytes()),
          own_(blocks_of(context.place())) {
        const collective::CollectiveCall& call = context.launch.call;
        const auto* input = static_cast<const std::byte*>(call.input);
        own_input_ = input + begin_of(context.place());
        own_output_ = static_cast<std::byte*>(call.output) + (all_reduce_ ? begin_of(context.place()) : 0);
        addends_.resize(context.members());
        for (std::size_t i = 1; i < context.members(); ++i) add_peer(context.after(i), i - 1);
    }

    bool advance() override {
        bool changed = false;
        for (Peer& peer : peers_) {
            if (context_.may_send(peer.place, peer.blocks.bytes))
                changed |= peer.send_inputs.advance(peer.blocks.count());
        }
        if (get_ready()) {
            for (Peer& peer : peers_) changed |= peer.receive_inputs.advance(summed_ + kSlots);
            changed |= sum_next();
        }
        if (!all_reduce_) return changed;
        for (Peer& peer : peers_) changed |= peer.send_results.advance(summed_);
        for (Peer& peer : peers_) {
            // In place, a result overwrites the input of the same block, which must have been sent.
            if (context_.may_receive(peer.place))
                changed |= peer.receive_results.advance(peer.send_inputs.over());
        }
        return changed;
    }

    bool ended() const override {
        return summed_ == own_.count() && std::all_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
                   return peer.send_inputs.ended() &&
                          (!all_reduce_ || (peer.send_results.ended() && peer.receive_results.ended()));
               });
    }

    std::optional<std::size_t> awaits() const override {
        for (const Peer& peer : peers_) {
            if (peer.receive_inputs.over() <= summed_ && summed_ < own_.count()) return peer.place;
        }
        for (const Peer& peer : peers_) {
            if (all_reduce_ && !peer.receive_results.ended()) return peer.place;
            if (!peer.send_inputs.ended() || (all_reduce_ && !peer.send_results.ended())) return peer.place;
        }
        return std::nullopt;
    }

  private:
    struct Peer {
        std::size_t place;
        Blocks blocks;  // of its piece
        MessageLine send_inputs, receive_inputs;
        MessageLine send_results, receive_results;  // all_reduce
    };

    std::int64_t begin_of(std::size_t place) const {
        const collective::CollectiveCall& call = context_.launch.call;
        return collective::piece_of(call.full_elements, context_.members(), place).begin *
               size_of(call.dtype);
    }
    // All members cut a piece into the same blocks.
    Blocks blocks_of(std::size_t place) const {
        const collective::CollectiveCall& call = context_.launch.call;
        const std::int64_t peers =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(context_.members()) - 1);
        const std::int64_t fitting = kScratch / kSlots / peers / kSmallestBlock * kSmallestBlock;
        return {
            collective::piece_of(call.full_elements, context_.members(), place).count() * size_of(call.dtype),
            std::clamp(fitting, kSmallestBlock, kLargestBlock)};
    }

    void add_peer(std::size_t place, std::size_t number) {
        const device::CollectiveLaunch& launch = context_.launch;
        const auto tag = [&](MessageStream stream) {
            return message_tag(launch.communicator, launch.sequence, stream);
        };
        Wire& wire = context_.wire;
        const int rank = context_.ranks[place];
        const Blocks theirs = blocks_of(place);
        const auto* input = static_cast<const std::byte*>(launch.call.input) + begin_of(place);
        auto* output = static_cast<std::byte*>(launch.call.output) + (all_reduce_ ? begin_of(place) : 0);
        peers_.push_back(
            {place, theirs,
             MessageLine::sends(wire, rank, tag(MessageStream::inputs), theirs.count(),
                                [theirs, input](std::int64_t i) { return theirs.of(input, i); }),
             MessageLine::receives(wire, rank, tag(MessageStream::inputs), own_.count(),
                                   [this, number](std::int64_t i) {
                                       return std::span(slot(number, i),
                                                        static_cast<std::size_t>(own_.size(i)));
                                   }),
             MessageLine::sends(
                 wire, rank, tag(MessageStream::results), own_.count(),
                 [this](std::int64_t i) { return std::span<const std::byte>(own_.of(own_output_, i)); }),
             MessageLine::receives(wire, rank, tag(MessageStream::results), theirs.count(),
                                   [theirs, output](std::int64_t i) { return theirs.of(output, i); })});
    }
    std::byte* slot(std::size_t peer, std::int64_t index) const {
        const std::int64_t slots = static_cast<std::int64_t>(peer) * kSlots + index % kSlots;
        return scratch_->data() + slots * slot_bytes();
    }
    std::int64_t slot_bytes() const { return std::min(own_.block, own_.bytes); }

    // Scratch memory is taken once all members have begun. They then send without waiting for others, so a
    // collective that has scratch memory ends, and frees it for those that wait for it.
    bool get_ready() {
        if (summed_ == own_.count()) return false;
        if (scratch_ || peers_.empty()) return true;
        if (!context_.headers.all_begun()) return false;
        scratch_ = context_.scratch.take(static_cast<std::int64_t>(peers_.size()) * kSlots * slot_bytes());
        return scratch_.has_value();
    }

    // Sums one block, so that other messages need not wait long.
    bool sum_next() {
        if (std::any_of(peers_.begin(), peers_.end(),
                        [&](const Peer& peer) { return peer.receive_inputs.over() <= summed_; }))
            return false;
        if (context_.delays) context_.delays->maybe_sleep();
        addends_[context_.place()] = own_input_ + own_.begin(summed_);
        for (std::size_t i = 0; i < peers_.size(); ++i) addends_[peers_[i].place] = slot(i, summed_);
        sum_blocks(context_.launch.call.dtype, addends_, own_output_ + own_.begin(summed_),
                   own_.size(summed_), context_.launch.call.divisor, context_.launch.call.reduction,
                   past_caches_);
        if (++summed_ == own_.count()) scratch_.reset();
        return true;
    }

    TransferContext context_;
    bool all_reduce_;
    bool past_caches_;  // of sums; not in an all_reduce, which sends them on
    Blocks own_;
    const std::byte* own_input_ = nullptr;
    std::byte* own_output_ = nullptr;
    std::vector<Peer> peers_;
    std::optional<ScratchPool::Lease> scratch_;
    std::vector<const std::byte*> addends_;  // of the block being summed, by place
    std::int64_t summed_ = 0;                // number of blocks of the own piece
};

}  // namespace

std::unique_ptr<Transfer> make_ordered_sums(const TransferContext& context) {
    return std::make_unique<OrderedSums>(context);
}

}  // namespace shardscope::trainer::comm
