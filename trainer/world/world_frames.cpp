#include <utility>

#include <fmt/core.h>

#include "trainer/world/world_impl.h"

namespace shardscope::trainer {

namespace {

Failure decode_failure(std::string_view text) {
    FrameReader reader(text);
    Failure failure;
    failure.rank = reader.small_number();
    failure.lost = reader.number() != 0;
    failure.reason = reader.text();
    return failure;
}

}  // namespace

void World::Impl::on_frame(int from, const Frame& frame) {
    if (frame.kind == FrameKind::alive) return;
    first() ? on_frame_at_first(from, frame) : on_frame_from_first(frame);
}

void World::Impl::on_frame_at_first(int from, const Frame& frame) {
    FrameReader reader(frame.text);
    switch (frame.kind) {
        case FrameKind::gather: {
            const Call call = reader.number();
            return add_part(from, call, reader.rest());
        }
        case FrameKind::tell:
            return deliver(from, frame.text);
        case FrameKind::clock_ready:
            return turns.ready();
        case FrameKind::clock_ask:
            return links.at(from)->send(FrameKind::clock_tell, FrameWriter().number(monotonic_ns()).take());
        case FrameKind::clock_done:
            return turns.done(from);
        case FrameKind::failure:
            return decide(decode_failure(frame.text));
        case FrameKind::goodbye:
            return count_goodbye(from);
        default:
            throw FrameError();
    }
}

void World::Impl::on_frame_from_first(const Frame& frame) {
    FrameReader reader(frame.text);
    switch (frame.kind) {
        case FrameKind::refused:
            return refuse(frame.text);
        case FrameKind::together:
            decode_members(frame.text);
            return joined();
        case FrameKind::gathered: {
            const Call call = reader.number();
            Texts texts;
            for (int rank = 0; rank < place.ranks; ++rank) texts.emplace_back(reader.text());
            return put_result(call, std::move(texts));
        }
        case FrameKind::broadcast: {
            const Call call = reader.number();
            return put_result(call, {std::string(reader.rest())});
        }
        case FrameKind::tell:
            return deliver(0, frame.text);
        case FrameKind::clock_turn:
            measurement.begin();
            return to_first().send(FrameKind::clock_ask);
        case FrameKind::clock_tell:
            return to_first().send(measurement.answer(reader.number()) ? FrameKind::clock_ask
                                                                       : FrameKind::clock_done);
        case FrameKind::clock_end: {
            const Call call = reader.number();
            {
                const std::scoped_lock lock(mutex);
                clock = measurement.result();
            }
            return put_result(call, {});
        }
        case FrameKind::failure:
            return decide(decode_failure(frame.text));
        case FrameKind::farewell:
            return set_farewell();
        default:
            throw FrameError();
    }
}

void World::Impl::send_to_all(FrameKind kind, std::string text) {
    const auto shared = std::make_shared<const std::string>(std::move(text));
    for (const auto& [rank, link] : links) link->send(kind, shared);
}

void World::Impl::deliver(int from, std::string_view told) {
    if (closing) return;
    FrameReader reader(told);
    const std::string_view topic = reader.text();
    guarded([&] { mailbox.deliver(from, topic, reader.rest()); });
}

void World::Impl::add_part(int from, Call call, std::string_view text) {
    if (failure) return;  // callers that wait for it learn of that
    std::map<int, std::string>& row = rows[call];
    row[from] = text;
    if (row.size() < members.size()) return;
    Texts texts;
    for (auto& [rank, part] : row) texts.push_back(std::move(part));
    rows.erase(call);
    gathered(call, std::move(texts));
}

void World::Impl::gathered(Call call, Texts texts) {
    std::size_t bytes = sizeof call;
    for (const std::string& text : texts) bytes += sizeof(std::int64_t) + text.size();
    if (bytes > kMostFrameBytes) {
        return decide(
            {.rank = 0,
             .reason = fmt::format("cannot send all processes the {} bytes that they bring together; "
                                   "{} are the most",
                                   bytes, kMostFrameBytes)});
    }
    FrameWriter writer;
    writer.reserve(bytes);
    writer.number(call);
    for (const std::string& text : texts) writer.text(text);
    send_to_all(FrameKind::gathered, writer.take());
    put_result(call, std::move(texts));
}

}  // namespace shardscope::trainer
