#include "trainer/comm/moves.h"

#include <algorithm>
#include <cstring>

#include "trainer/collective/pieces.h"
#include "trainer/comm/message_line.h"
#include "trainer/comm/message_tag.h"
#include "trainer/kernels/streaming.h"

namespace shardscope::trainer::comm {

namespace {

// A copy within this member's memory, one slice per call, so that messages go on meanwhile.
class SlicedCopy {
  public:
    // `all`: bytes of the collective's output, of which this is a part.
    SlicedCopy(const void* from, void* to, std::int64_t bytes, std::int64_t all)
        : from_(static_cast<const std::byte*>(from)),
          to_(static_cast<std::byte*>(to)),
          left_(from == to ? 0 : bytes),
          past_caches_(static_cast<std::size_t>(all) > kernels::cached_bytes()) {}
    bool advance() {
        constexpr std::int64_t kSlice = 1 << 20;
        const auto slice = static_cast<std::size_t>(std::min(kSlice, left_));
        if (slice == 0) return false;
        if (past_caches_) {
            kernels::streaming_copy(from_, to_, slice);
        } else {
            std::memcpy(to_, from_, slice);
        }
        from_ += slice;
        to_ += slice;
        left_ -= static_cast<std::int64_t>(slice);
        return true;
    }
    bool ended() const { return left_ == 0; }

  private:
    const std::byte* from_;
    std::byte* to_;
    std::int64_t left_;
    bool past_caches_;
};

// One message for each piece.
class Exchange : public Transfer {
  public:
    explicit Exchange(const TransferContext& context) : context_(context), copy_(own_copy(context)) {
        const device::CollectiveLaunch& launch = context.launch;
        const std::uint32_t tag = message_tag(launch.communicator, launch.sequence, MessageStream::results);
        auto* output = static_cast<std::byte*>(launch.call.output);
        for (std::size_t i = 1; i < context.members(); ++i) {
            const std::size_t to = context.after(i);
            const std::span<const std::byte> input = input_for(context, to);
            const Piece theirs = piece(context, to, false);
            const std::span<std::byte> place(output + theirs.begin, static_cast<std::size_t>(theirs.bytes));
            peers_.push_back({to, std::ssize(input),
                              MessageLine::sends(context.wire, context.ranks[to], tag, 1,
                                                 [input](std::int64_t) { return input; }),
                              MessageLine::receives(context.wire, context.ranks[to], tag, 1,
                                                    [place](std::int64_t) { return place; })});
        }
    }

    bool advance() override {
        bool changed = false;
        // Sends first: a receive may copy all its data before it returns, and the others should receive, too.
        for (Peer& peer : peers_) {
            if (context_.may_send(peer.place, peer.bytes)) changed |= peer.send.advance(1);
        }
        for (Peer& peer : peers_) {
            if (context_.may_receive(peer.place)) changed |= peer.receive.advance(1);
        }
        changed |= copy_.advance();
        return changed;
    }
    bool ended() const override {
        return copy_.ended() && std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
                   return peer.send.ended() && peer.receive.ended();
               });
    }
    std::optional<std::size_t> awaits() const override {
        for (const Peer& peer : peers_) {
            if (!peer.receive.ended()) return peer.place;
        }
        for (const Peer& peer : peers_) {
            if (!peer.send.ended()) return peer.place;
        }
        return std::nullopt;
    }

  private:
    struct Piece {
        std::int64_t begin, bytes;
    };
    // The piece of the member at a place, in the input if it is `sent` to it, else in the output.
    static Piece piece(const TransferContext& context, std::size_t place, bool sent) {
        const collective::CollectiveCall& call = context.launch.call;
        const std::size_t members = context.members();
        const collective::ElementRange range = call.operation != plan::Operation::all_to_all
                                                   ? collective::piece_of(call.full_elements, members, place)
                                               : sent ? collective::sent_piece(call, members, place)
                                                      : collective::received_piece(call, members, place);
        return {range.begin * size_of(call.dtype), range.count() * size_of(call.dtype)};
    }
    // What the member at a place gets.
    static std::span<const std::byte> input_for(const TransferContext& context, std::size_t to) {
        const collective::CollectiveCall& call = context.launch.call;
        const bool gathers = call.operation == plan::Operation::all_gather;
        const Piece own = piece(context, gathers ? context.place() : to, true);
        return {static_cast<const std::byte*>(call.input) + (gathers ? 0 : own.begin),
                static_cast<std::size_t>(own.bytes)};
    }
    static SlicedCopy own_copy(const TransferContext& context) {
        const collective::CollectiveCall& call = context.launch.call;
        const std::span<const std::byte> own = input_for(context, context.place());
        return {own.data(),
                static_cast<std::byte*>(call.output) + piece(context, context.place(), false).begin,
                std::ssize(own), call.full_elements * size_of(call.dtype)};
    }

    struct Peer {
        std::size_t place;
        std::int64_t bytes;  // bytes sent to it
        MessageLine send, receive;
    };
    TransferContext context_;
    std::vector<Peer> peers_;
    SlicedCopy copy_;
};

class Broadcast : public Transfer {
  public:
    explicit Broadcast(const TransferContext& context)
        : context_(context),
          blocks_{context.launch.call.full_elements * size_of(context.launch.call.dtype), kBlock},
          copy_(own_copy(context)) {
        const device::CollectiveLaunch& launch = context.launch;
        const std::uint32_t tag = message_tag(launch.communicator, launch.sequence, MessageStream::results);
        auto* output = static_cast<std::byte*>(launch.call.output);
        const std::size_t place = context.place(), members = context.members();
        const bool chain = blocks_.bytes > TransferContext::kLittle;
        if (place > 0) {
            from_ = chain ? place - 1 : 0;
            receive_.push_back(MessageLine::receives(
                context.wire, context.ranks[from_], tag, blocks_.count(),
                [output, blocks = blocks_](std::int64_t i) { return blocks.of(output, i); }));
        }
        const auto* data = place > 0 ? output : static_cast<const std::byte*>(launch.call.input);
        const std::size_t last = chain ? std::min(place + 2, members) : place == 0 ? members : 0;
        for (std::size_t to = place + 1; to < last; ++to) {
            targets_.push_back({to, MessageLine::sends(context.wire, context.ranks[to], tag, blocks_.count(),
                                                       [data, blocks = blocks_](std::int64_t i) {
                                                           return blocks.of(data, i);
                                                       })});
        }
    }

    bool advance() override {
        bool changed = false;
        for (MessageLine& line : receive_) {
            if (context_.may_receive(from_)) changed |= line.advance(blocks_.count());
        }
        const std::int64_t here = receive_.empty() ? blocks_.count() : receive_[0].over();
        for (Target& target : targets_) {
            if (context_.may_send(target.place, blocks_.bytes)) changed |= target.send.advance(here);
        }
        changed |= copy_.advance();
        return changed;
    }
    bool ended() const override {
        return copy_.ended() &&
               std::all_of(receive_.begin(), receive_.end(),
                           [](const MessageLine& line) { return line.ended(); }) &&
               std::all_of(targets_.begin(), targets_.end(),
                           [](const Target& target) { return target.send.ended(); });
    }
    std::optional<std::size_t> awaits() const override {
        if (!receive_.empty() && !receive_[0].ended()) return from_;
        for (const Target& target : targets_) {
            if (!target.send.ended()) return target.place;
        }
        return std::nullopt;
    }

  private:
    static constexpr std::int64_t kBlock = 512 << 10;

    static SlicedCopy own_copy(const TransferContext& context) {
        const collective::CollectiveCall& call = context.launch.call;
        const std::int64_t bytes = context.place() == 0 ? call.full_elements * size_of(call.dtype) : 0;
        return {call.input, call.output, bytes, bytes};
    }

    struct Target {
        std::size_t place;
        MessageLine send;
    };
    TransferContext context_;
    Blocks blocks_;
    std::size_t from_ = 0;
    std::vector<MessageLine> receive_;  // one line; none at place 0
    std::vector<Target> targets_;
    SlicedCopy copy_;
};

class Message : public Transfer {
  public:
    explicit Message(const TransferContext& context)
        : context_(context),
          bytes_(context.launch.call.full_elements * size_of(context.launch.call.dtype)),
          line_(line(context, static_cast<std::size_t>(bytes_))) {}

    bool advance() override {
        const bool may = sends(context_) ? context_.may_send(1, bytes_) : context_.may_receive(0);
        return may && line_.advance(1);
    }
    bool ended() const override { return line_.ended(); }
    std::optional<std::size_t> awaits() const override {
        return ended() ? std::nullopt : std::optional<std::size_t>(sends(context_) ? 1 : 0);
    }

  private:
    static bool sends(const TransferContext& context) { return context.place() == 0; }
    static MessageLine line(const TransferContext& context, std::size_t bytes) {
        const device::CollectiveLaunch& launch = context.launch;
        const std::uint32_t tag = message_tag(launch.communicator, launch.sequence, MessageStream::results);
        if (sends(context)) {
            const std::span data(static_cast<const std::byte*>(launch.call.input), bytes);
            return MessageLine::sends(context.wire, context.ranks[1], tag, 1,
                                      [data](std::int64_t) { return data; });
        }
        const std::span place(static_cast<std::byte*>(launch.call.output), bytes);
        return MessageLine::receives(context.wire, context.ranks[0], tag, 1,
                                     [place](std::int64_t) { return place; });
    }

    TransferContext context_;
    std::int64_t bytes_;
    MessageLine line_;
};

}  // namespace

std::unique_ptr<Transfer> make_exchange(const TransferContext& context) {
    return std::make_unique<Exchange>(context);
}

std::unique_ptr<Transfer> make_broadcast(const TransferContext& context) {
    return std::make_unique<Broadcast>(context);
}

std::unique_ptr<Transfer> make_message(const TransferContext& context) {
    return std::make_unique<Message>(context);
}

}  // namespace shardscope::trainer::comm
