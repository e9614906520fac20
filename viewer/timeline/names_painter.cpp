// The column of row names at the left of the timeline. See painter.h.
#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/canvas.h"

namespace shardscope::viewer {
namespace {

class NamePainter : private Canvas {
  public:
    using Canvas::Canvas;

    void names(RowLayout::Span span) {
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = p_.layout.rows[i];
            if (row.kind == Row::Kind::group) group_name(row);
            if (row.kind == Row::Kind::memory) memory_name(row);
            if (row.kind == Row::Kind::counter) counter_name(row);
            if (row.kind == Row::Kind::lane && row.first_of_track) track_name(row);
        }
    }

  private:
    float indent() const { return p_.area.min.x + font_ * 1.3F; }
    float room() const { return p_.area.names - font_ * 1.8F; }

    void group_name(const Row& row) {
        const float y = y_of(row), x = p_.area.min.x;
        const RowGroup& group = p_.layout.groups[static_cast<std::size_t>(row.group)];
        draw_.AddRectFilled({x, y}, {p_.area.left(), y + row.height}, theme::raised());
        const float s = font_ * 0.22F, cx = x + font_ * 0.7F, cy = y + row.height / 2;
        if (group.collapsed) {
            draw_.AddTriangleFilled({cx - s * 0.6F, cy - s}, {cx + s * 0.8F, cy}, {cx - s * 0.6F, cy + s},
                                    theme::text_dim());
        } else {
            draw_.AddTriangleFilled({cx - s, cy - s * 0.6F}, {cx + s, cy - s * 0.6F}, {cx, cy + s * 0.8F},
                                    theme::text_dim());
        }
        const bool chosen = group.rank >= 0 && group.rank == p_.session.rank;
        put(indent(), cy - font_ / 2, chosen ? theme::accent() : theme::text(),
            fit_text(group.label, room()));
    }

    // On two lines if the row has room for them.
    void two_lines(const Row& row, const std::string& name, const std::string& what) {
        const float y = y_of(row), middle = y + row.height / 2;
        pin(row, y);
        if (row.height < font_ * 2.2F) {
            put(indent(), middle - font_ / 2, theme::text(), fit_text(name, room()));
            return;
        }
        put(indent(), middle - font_ * 1.1F, theme::text(), fit_text(name, room()));
        put(indent(), middle + font_ * 0.1F, theme::text_dim(), fit_text(what, room()));
    }

    const std::string& label(const Row& row) const {
        return p_.layout.entries[static_cast<std::size_t>(row.entry)].label;
    }

    void memory_name(const Row& row) {
        const auto it = p_.memory.find(row.rank);
        two_lines(row, label(row), it == p_.memory.end() ? "..." : "max " + format_size(it->second.most));
    }

    void counter_name(const Row& row) {
        const CounterTrack& counter = p_.tracks.counters[static_cast<std::size_t>(row.track)];
        two_lines(row, label(row), "max " + counter_value(counter, p_.trace));
    }

    static std::string counter_value(const CounterTrack& counter, const traces::Trace& trace) {
        const bool bytes =
            std::string_view(trace.strings[counter.name]).find("bytes") != std::string_view::npos;
        return bytes ? format_size(static_cast<std::int64_t>(counter.most)) : format_decimal(counter.most, 2);
    }

    void track_name(const Row& row) {
        const Track& track = p_.tracks.tracks[static_cast<std::size_t>(row.track)];
        const float y = y_of(row);
        pin(row, y);
        put(indent(), y + (row.height - font_) / 2, theme::text(), fit_text(label(row), room()));
        if (track.lanes.size() < 2) return;
        put(indent(), y + row.height + (row.height - font_) / 2, theme::text_dim(),
            fit_text(what_is(track), room()));
    }

    std::string what_is(const Track& track) const {
        switch (track.kind) {
            case Track::Kind::collectives:
                return "collectives";
            case Track::Kind::thread:
                return fmt::format("thread {}", thread_number(track));
            case Track::Kind::stream:
                return "stream";
            default:
                return {};
        }
    }

    std::int64_t thread_number(const Track& track) const {
        return p_.trace.threads[static_cast<std::size_t>(track.source)].global_tid & 0xFFFFFF;
    }

    // The dot of a pinned row.
    void pin(const Row& row, float y) {
        if (row.pinned)
            draw_.AddCircleFilled({p_.area.min.x + font_ * 0.7F, y + font_ * 0.7F}, font_ * 0.18F,
                                  theme::accent());
    }
};

}  // namespace

void paint_names(ImDrawList& draw, const TimelinePicture& picture) {
    const TimelineArea& a = picture.area;
    NamePainter painter(draw, picture);
    const float pinned = std::min(a.max.y, a.top() + picture.layout.pinned_height);
    draw.PushClipRect({a.min.x, pinned}, {a.left(), a.max.y}, true);
    painter.names(picture.layout.scrolled(a.scroll, a.height()));
    draw.PopClipRect();
    if (picture.layout.pinned_height > 0) {
        draw.PushClipRect({a.min.x, a.top()}, {a.left(), pinned}, true);
        painter.names(picture.layout.pinned(a.height()));
        draw.PopClipRect();
        draw.AddRectFilled({a.min.x, pinned - 1}, {a.left(), pinned}, theme::line());
    }
    draw.AddRectFilled({a.left() - 1, a.min.y}, {a.left(), a.max.y}, theme::line());
}

}  // namespace shardscope::viewer
