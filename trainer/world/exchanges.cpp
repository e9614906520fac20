#include "trainer/world/exchanges.h"

#include <utility>

#include <fmt/core.h>

#include "profiler/base/clock.h"

namespace shardscope::trainer::world {

using profiler::MonotonicTime;

Exchanges::Exchanges(const Place& place, Links& links, Board& board, Events events)
    : place_(place),
      links_(links),
      board_(board),
      events_(std::move(events)),
      turns_(
          place.ranks, [this](int rank) { links_.to(rank).send(FrameKind::clock_turn); },
          [this] {
              links_.send_to_all(FrameKind::clock_end, MessageWriter().add(clock_call_).take());
              board_.put(clock_call_, {});
          }) {}

void Exchanges::on_frame(int from, const Frame& frame) {
    first() ? on_frame_at_first(from, frame) : on_frame_from_first(frame);
}

void Exchanges::on_frame_at_first(int from, const Frame& frame) {
    MessageReader reader(frame.text);
    switch (frame.kind) {
        case FrameKind::gather: {
            const Call call = reader.number<Call>();
            return add_part(from, call, reader.rest());
        }
        case FrameKind::tell:
            return deliver(from, frame.text);
        case FrameKind::clock_ready:
            return turns_.ready();
        case FrameKind::clock_ask:
            return links_.to(from).send(FrameKind::clock_tell,
                                        MessageWriter().add(MonotonicTime::now().ns).take());
        case FrameKind::clock_done:
            return turns_.done(from);
        default:
            throw MessageError();
    }
}

void Exchanges::on_frame_from_first(const Frame& frame) {
    MessageReader reader(frame.text);
    switch (frame.kind) {
        case FrameKind::gathered: {
            const Call call = reader.number<Call>();
            Texts texts;
            for (int rank = 0; rank < place_.ranks; ++rank) texts.emplace_back(reader.text());
            return board_.put(call, std::move(texts));
        }
        case FrameKind::broadcast: {
            const Call call = reader.number<Call>();
            return board_.put(call, {std::string(reader.rest())});
        }
        case FrameKind::tell:
            return deliver(0, frame.text);
        case FrameKind::clock_turn:
            measurement_.begin();
            return links_.to_first().send(FrameKind::clock_ask);
        case FrameKind::clock_tell:
            return links_.to_first().send(measurement_.answer(MonotonicTime(reader.number<std::int64_t>()))
                                              ? FrameKind::clock_ask
                                              : FrameKind::clock_done);
        case FrameKind::clock_end:
            return board_.put(reader.number<Call>(), {});
        default:
            throw MessageError();
    }
}

void Exchanges::gather(Call call, std::string_view text) {
    if (first()) return add_part(0, call, text);
    MessageWriter writer;
    writer.reserve(text.size() + sizeof call);
    links_.to_first().send(FrameKind::gather, writer.add(call).rest(text).take());
}

void Exchanges::broadcast(Call call, std::string_view text) {
    links_.send_to_all(FrameKind::broadcast, MessageWriter().add(call).rest(text).take());
}

void Exchanges::measure_clock(Call call) {
    clock_call_ = call;
    if (first()) {
        turns_.ready();
    } else {
        links_.to_first().send(FrameKind::clock_ready);
    }
}

void Exchanges::tell(const std::string& topic, std::string_view text) {
    std::string told = MessageWriter().add(topic).rest(text).take();
    if (first()) {
        deliver(0, told);
    } else {
        links_.to_first().send(FrameKind::tell, std::move(told));
    }
}

void Exchanges::tell_all(const std::string& topic, std::string_view text) {
    links_.send_to_all(FrameKind::tell, MessageWriter().add(topic).rest(text).take());
}

void Exchanges::listen(const std::string& topic, Handler handler) {
    Topic& entry = topics_[topic];
    entry.handler = std::move(handler);
    if (!entry.handler) return;
    events_.guarded([&] {
        for (const auto& [from, text] : std::exchange(entry.kept, {})) entry.handler(from, text);
    });
}

void Exchanges::deliver(int from, std::string_view told) {
    if (!delivers_) return;
    MessageReader reader(told);
    const std::string_view name = reader.text();
    auto found = topics_.find(name);
    if (found == topics_.end()) found = topics_.try_emplace(std::string(name)).first;
    Topic& topic = found->second;
    if (!topic.handler) return void(topic.kept.emplace_back(from, reader.rest()));
    events_.guarded([&] { topic.handler(from, reader.rest()); });
}

void Exchanges::add_part(int from, Call call, std::string_view text) {
    if (board_.failure()) return;  // callers that wait for it learn of that
    std::map<int, std::string>& row = rows_[call];
    row[from] = text;
    if (row.size() < static_cast<std::size_t>(place_.ranks)) return;
    Texts texts;
    for (auto& [rank, part] : row) texts.push_back(std::move(part));
    rows_.erase(call);
    gathered(call, std::move(texts));
}

void Exchanges::gathered(Call call, Texts texts) {
    std::size_t bytes = sizeof call;
    for (const std::string& text : texts) bytes += sizeof(std::uint64_t) + text.size();
    if (bytes > kMostFrameBytes) {
        return events_.on_failure(
            {.rank = 0,
             .reason = fmt::format("cannot send the {} gathered bytes to all processes; the limit "
                                   "is {}",
                                   bytes, kMostFrameBytes)});
    }
    MessageWriter writer;
    writer.reserve(bytes);
    writer.add(call);
    for (const std::string& text : texts) writer.add(text);
    links_.send_to_all(FrameKind::gathered, writer.take());
    board_.put(call, std::move(texts));
}

}  // namespace shardscope::trainer::world
