// See marks_view.h.
#include "viewer/timeline/marks_view.h"

#include <utility>

#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::timeline {

void MarksView::choose(const model::MarkFile& file, int index, bool edit) {
    const auto i = static_cast<std::size_t>(index);
    if (index < 0 || i >= file.marks.all().size()) {
        chosen_ = -1;
        return;
    }
    chosen_ = index;
    text_ = file.marks.all()[i].text;
    edit_ = edit;
}

void MarksView::go_to(model::Session& session, const TimelinePage& page, const model::MarkFile& file,
                      int index) {
    choose(file, index);
    if (chosen_ < 0) return;
    model::OpenTrace& entry = *session.current();
    const model::Mark& mark = file.marks.all()[static_cast<std::size_t>(index)];
    entry.cursor = mark.from;
    if (mark.is_range()) {
        TimelinePage::show(entry, framed({mark.from, mark.to}, page.whole()));
    } else {
        const std::int64_t middle = entry.visible.from + entry.visible.length() / 2;
        TimelinePage::show(entry,
                           panned({entry.visible.from, entry.visible.to}, page.whole(), mark.from - middle));
    }
}

void MarksView::update(const model::MarkFile& file) {
    if (model_ != nullptr && model_of_ == file.marks) return;
    model_of_ = file.marks;
    auto cells = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        {"text", "Mark", "", tables::TableColumn::Kind::text, 8},
        {"from_ms", "From", "ms", tables::TableColumn::Kind::number, 7},
        {"length_us", "Length", "\u00b5s", tables::TableColumn::Kind::number, 6},
    });
    for (const model::Mark& mark : file.marks.all()) {
        cells->add({tables::text_cell(mark.text),
                    tables::decimal_cell(static_cast<double>(mark.from) / 1e6, 3),
                    mark.is_range() ? tables::decimal_cell(static_cast<double>(mark.to - mark.from) / 1e3, 3)
                                    : tables::no_cell()});
    }
    model_ = std::move(cells);
    table_.chosen.reset();
}

void MarksView::draw_editor(model::Session& session, model::MarkFile& file) {
    if (chosen_ < 0 || static_cast<std::size_t>(chosen_) >= file.marks.all().size()) {
        chosen_ = -1;
        return;
    }
    const auto index = static_cast<std::size_t>(chosen_);
    const float font = ImGui::GetFontSize();
    if (std::exchange(edit_, false)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    ImGui::InputTextWithHint("##text", "text of the mark", &text_, ImGuiInputTextFlags_AutoSelectAll);
    draw::items::mark("timeline.marks.text", text_);
    if (ImGui::IsItemDeactivatedAfterEdit()) {
        file.marks.rename(index, text_);
        file.save();
        text_ = file.marks.all()[index].text;
    }
    const model::Mark& mark = file.marks.all()[index];
    if (mark.is_range()) {
        if (draw::named_button("Limit", "timeline.marks.limit"))
            session.current()->limit = model::TimeRange{mark.from, mark.to};
        ImGui::SameLine(0, font * 0.4F);
    }
    if (draw::named_button("Delete", "timeline.marks.delete")) {
        file.marks.remove(index);
        file.save();
        chosen_ = -1;
    }
}

void MarksView::draw(model::Session& session, const TimelinePage& page, model::MarkFile& file) {
    const float font = ImGui::GetFontSize();
    draw_editor(session, file);
    if (file.marks.all().empty()) {
        draw::note(
            "No marks yet. M marks the instant under the mouse, Shift+M the measure, the time filter or the "
            "selection as a range.");
    }
    update(file);
    if (!file.problem().empty()) {
        draw::wrapped_in(theme::bad(), file.problem());
    }
    if (!file.marks.all().empty()) {
        const float below = file.path().empty() ? 0 : ImGui::GetTextLineHeightWithSpacing() + font * 0.3F;
        if (chosen_ >= 0) table_.chosen = static_cast<std::size_t>(chosen_);
        const tables::TableEvents events =
            draw_table("timeline.marks", model_, table_,
                       {.size = {0, std::max(font * 5, ImGui::GetContentRegionAvail().y - below)},
                        .filter = false,
                        .name = "marks"});
        if (events.clicked) go_to(session, page, file, static_cast<int>(*events.clicked));
    }
    if (file.problem().empty() && !file.path().empty() && !file.marks.all().empty()) {
        draw::text_fit_dim("Kept in " + file.path());
    }
}

}  // namespace shardscope::viewer::timeline
