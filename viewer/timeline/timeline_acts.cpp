// See timeline_parts.h.
#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <imgui.h>

#include "viewer/timeline/find_query.h"
#include "viewer/timeline/find_text.h"
#include "viewer/timeline/timeline_parts.h"

namespace shardscope::viewer::timeline {
namespace {

class Acts {
  public:
    Acts(TraceOnPage& on, TimelineParts& parts)
        : page_(on.page), marks_(on.marks), list_(on.marks_view), p_(parts) {}

    void run(std::string_view action, model::Session& session) {
        if (p_.row_menu.act(action, session, page_)) return;
        static const std::map<std::string_view, void (Acts::*)(model::Session&)> kActs = {
            {"scroll_up", &Acts::scroll<-6>},
            {"scroll_down", &Acts::scroll<6>},
            {"page_up", &Acts::scroll<-25>},
            {"page_down", &Acts::scroll<25>},
            {"back", &Acts::back},
            {"forward", &Acts::forward},
            {"fit", &Acts::fit},
            {"zoom_to", &Acts::zoom_to},
            {"limit_selected", &Acts::limit_selected},
            {"next_event", &Acts::step<1>},
            {"previous_event", &Acts::step<-1>},
            {"area", &Acts::mark_area},
            {"no_area", &Acts::no_area},
            {"statistics", &Acts::statistics},
            {"next_in_bin", &Acts::next_in_bin<true>},
            {"previous_in_bin", &Acts::next_in_bin<false>},
            {"zoom_to_area", &Acts::zoom_to_area},
            {"limit_to_area", &Acts::limit_to_area},
            {"copy_area", &Acts::copy_area<false>},
            {"copy_area_csv", &Acts::copy_area<true>},
            {"show_area", &Acts::show_area<true>},
            {"show_event", &Acts::show_area<false>},
            {"next_same", &Acts::same<true>},
            {"previous_same", &Acts::same<false>},
            {"follow_launch", &Acts::follow_launch},
            {"next_part", &Acts::next_part},
            {"follow_backward", &Acts::follow_backward},
            {"find", &Acts::find},
            {"find_next", &Acts::find_next<true>},
            {"find_previous", &Acts::find_next<false>},
            {"find_list", &Acts::find_list},
            {"mark", &Acts::mark},
            {"mark_range", &Acts::mark_range},
            {"marks", &Acts::marks},
            {"next_mark", &Acts::next_mark},
            {"previous_mark", &Acts::previous_mark},
            {"measure", &Acts::measure},
            {"copy", &Acts::copy},
            {"let_go", &Acts::let_go},
            {"deselect", &Acts::deselect},
            {"find_same", &Acts::find_same},
            {"filter_rows", &Acts::filter_rows},
            {"fold_ranks", &Acts::fold_ranks},
            {"other_run", &Acts::other_run},
        };
        const auto found = kActs.find(action);
        if (found != kActs.end()) (this->*found->second)(session);
    }

  private:
    // --- actions ---------------------------------------------------------------------------------------
    template <int kLines>
    void scroll(model::Session& /*session*/) {
        page_.scroll += ImGui::GetFontSize() * static_cast<float>(kLines);
    }

    void show_again(model::Session& session, std::optional<model::TimeSpan> (ZoomHistory::*which)()) {
        model::OpenTrace& entry = *session.current();
        ZoomHistory& history = page_.history;
        history.see({entry.visible.from, entry.visible.to});
        if (const auto span = (history.*which)()) TimelinePage::show(entry, *span);
    }
    void back(model::Session& session) { show_again(session, &ZoomHistory::back); }
    void forward(model::Session& session) { show_again(session, &ZoomHistory::forward); }
    void fit(model::Session& session) { session.fit(); }

    // The selected time: an event's, else the measure's, else the chosen range's, else the limit's.
    std::optional<model::TimeSpan> selected_time(const model::Session& session) const {
        if (session.selected.kind != model::EventKind::none) {
            const EventTime time = time_of(*page_.trace, session.selected);
            return model::TimeSpan{time.start, time.end};
        }
        if (page_.measure) return model::TimeSpan{page_.measure->first(), page_.measure->last()};
        const int chosen = list_.chosen();
        if (chosen >= 0 && static_cast<std::size_t>(chosen) < marks_.marks.all().size()) {
            const model::Mark& mark = marks_.marks.all()[static_cast<std::size_t>(chosen)];
            if (mark.is_range()) return model::TimeSpan{mark.from, mark.to};
        }
        if (session.current()->limit)
            return model::TimeSpan{session.current()->limit->from, session.current()->limit->to};
        return std::nullopt;
    }
    void zoom_to(model::Session& session) {
        if (const auto time = selected_time(session))
            TimelinePage::show(*session.current(), framed(*time, page_.whole()));
    }
    void limit_selected(model::Session& session) {
        if (const auto time = selected_time(session))
            session.current()->limit = model::TimeRange{time->from, std::max(time->to, time->from + 1)};
    }

    template <int kBy>
    void step(model::Session& session) {
        TimelinePage& page = page_;
        if (page.tracks == nullptr) return;
        const auto place = find_event(*page.trace, *page.tracks, session.selected);
        if (!place) return;
        const Lane& lane = page.tracks->tracks[static_cast<std::size_t>(place->track)]
                               .lanes[static_cast<std::size_t>(place->lane)];
        if ((kBy < 0 && place->item == 0) || (kBy > 0 && place->item + 1 >= lane.size())) return;
        page.go_to(session, lane.event(kBy < 0 ? place->item - 1 : place->item + 1));
    }
    template <bool kForwards>
    void same(model::Session& session) {
        if (const auto next = same_name(*page_.trace, session.selected, kForwards))
            page_.go_to(session, *next);
    }

    // --- the marked area, and the statistics of a name ---
    // The measure, else the time filter, else the visible time; over all rows.
    void mark_area(model::Session& session) {
        model::OpenTrace& entry = *session.current();
        model::MarkedArea area{.time = entry.limit.value_or(entry.visible), .rows = {}, .name = {}};
        if (page_.measure) area.time = {page_.measure->first(), page_.measure->last()};
        area.time = {std::max(area.time.from, page_.whole().from), std::min(area.time.to, page_.whole().to)};
        if (area.time.length() > 0) entry.area = std::move(area);
    }
    void no_area(model::Session& session) { session.current()->area.reset(); }
    void statistics(model::Session& session) {
        const std::string name(name_of(*page_.trace, session.selected));
        if (name.empty()) return;
        model::OpenTrace& entry = *session.current();
        const model::TimeSpan whole = page_.whole();
        entry.area = model::MarkedArea{
            .time = entry.limit.value_or(model::TimeRange{whole.from, whole.to}), .rows = {}, .name = name};
        p_.area_in_front = true;  // even if it is the same one
    }
    template <bool kForwards>
    void next_in_bin(model::Session& session) {
        if (session.current()->area) p_.area.walk(session, page_, kForwards);
    }
    void zoom_to_area(model::Session& session) {
        model::OpenTrace& entry = *session.current();
        if (entry.area)
            TimelinePage::show(entry, framed({entry.area->time.from, entry.area->time.to}, page_.whole()));
    }
    void limit_to_area(model::Session& session) {
        if (session.current()->area) session.current()->limit = session.current()->area->time;
    }
    template <bool kCsv>
    void copy_area(model::Session& /*session*/) {
        ImGui::SetClipboardText(p_.area.copied(kCsv).c_str());
    }
    template <bool kArea>
    void show_area(model::Session& /*session*/) {
        p_.area_in_front = kArea;
    }

    // --- related events ---
    void follow_launch(model::Session& session) {
        const Links& links = page_.links;
        if (links.launch != session.selected) return page_.go_to(session, links.launch);
        if (!links.launched.empty()) page_.go_to(session, links.launched.front());
    }
    void next_part(model::Session& session) {
        const std::vector<model::SelectedEvent> parts = page_.links.parts;
        const auto here = std::find(parts.begin(), parts.end(), session.selected);
        if (here == parts.end() || parts.size() < 2) return;
        page_.go_to(session, here + 1 == parts.end() ? parts.front() : *(here + 1));
    }
    void follow_backward(model::Session& session) {
        const Links links = page_.links;
        if (links.forward != session.selected) return page_.go_to(session, links.forward);
        if (!links.backwards.empty()) page_.go_to(session, links.backwards.front());
    }

    // --- finding ---
    void find(model::Session& /*session*/) { p_.find.focus(); }
    template <bool kForwards>
    void find_next(model::Session& session) {
        p_.find.go(session, page_, kForwards);
    }
    void find_same(model::Session& session) {
        p_.find.find(quoted(name_of(*page_.trace, session.selected)));
        p_.find.list = true;
    }
    void filter_rows(model::Session& /*session*/) { p_.focus_filter = true; }
    void find_list(model::Session& /*session*/) {
        if (!p_.find.empty()) p_.find.list = !p_.find.list;
    }

    // --- marks and measures ---
    void add_mark(model::Mark mark) {
        const std::size_t at = marks_.marks.add(std::move(mark));
        marks_.save();
        list_.shown = true;
        list_.choose(marks_, static_cast<int>(at), true);
    }
    // At the mouse, else at the start of the selected event, else at the shared cursor or in the middle.
    void mark(model::Session& session) {
        const model::OpenTrace& entry = *session.current();
        std::int64_t time = entry.cursor.value_or(entry.visible.from + entry.visible.length() / 2);
        if (!p_.gestures.over_time() && session.selected.kind != model::EventKind::none)
            time = time_of(*page_.trace, session.selected).start;
        add_mark({time, time, {}});
    }
    void mark_range(model::Session& session) {
        std::optional<model::TimeSpan> time;
        if (page_.measure) time = model::TimeSpan{page_.measure->first(), page_.measure->last()};
        if (!time) time = selected_time(session);
        if (!time) time = model::TimeSpan{session.current()->visible.from, session.current()->visible.to};
        add_mark({time->from, time->to, {}});
    }
    void marks(model::Session& /*session*/) { list_.shown = !list_.shown; }
    void go_to_mark(model::Session& session, bool forwards) {
        const model::MarkBook& book = marks_.marks;
        const int chosen = list_.chosen();
        if (book.all().empty()) return;
        const int count = static_cast<int>(book.all().size());
        int next = 0;
        if (chosen >= 0 && chosen < count) {
            next = (chosen + (forwards ? 1 : count - 1)) % count;
        } else {
            const model::TimeRange& visible = session.current()->visible;
            const std::int64_t middle = visible.from + visible.length() / 2;
            const auto found = forwards ? book.after(middle) : book.before(middle);
            next = found ? static_cast<int>(*found) : (forwards ? 0 : count - 1);
        }
        list_.go_to(session, page_, marks_, next);
    }
    void next_mark(model::Session& session) { go_to_mark(session, true); }
    void previous_mark(model::Session& session) { go_to_mark(session, false); }
    void measure(model::Session& /*session*/) {
        p_.gestures.measuring = !p_.gestures.measuring;
        if (!p_.gestures.measuring) page_.measure.reset();
    }
    void copy(model::Session& session) {
        std::string copied;
        if (session.current()->area && p_.area_in_front) {
            copied = p_.area.copied(false);
        } else if (page_.measure) {
            copied = measure_text(*page_.measure);
        } else if (session.selected.kind != model::EventKind::none) {
            copied = p_.details.copied();
        } else {
            copied = measure_text({session.current()->visible.from, session.current()->visible.to});
        }
        ImGui::SetClipboardText(copied.c_str());
    }
    // Escape: clears the timeline's own state.
    void let_go(model::Session& session) {
        session.current()->lit.reset();
        page_.measure.reset();
        p_.gestures.measuring = false;
    }
    void deselect(model::Session& session) { session.selected = {}; }

    void other_run(model::Session& session) { p_.other.choose_next(session); }

    // --- rows ---
    void fold_ranks(model::Session& session) {
        std::set<std::string>& collapsed = session.current()->rows.collapsed;
        const bool collapse = collapsed.empty();
        collapsed.clear();
        if (!collapse || page_.rows == nullptr) return;
        for (const RowGroup& group : page_.layout().groups) collapsed.insert(group.key);
    }

    TimelinePage& page_;
    model::MarkFile& marks_;
    MarksView& list_;
    TimelineParts& p_;
};

}  // namespace

void do_timeline_action(std::string_view action, model::Session& session, TraceOnPage& on,
                        TimelineParts& parts) {
    Acts(on, parts).run(action, session);
}

}  // namespace shardscope::viewer::timeline
