// The search field for events: the number of matches, which one is chosen, next and previous, the list of
// them, and their marks on the timeline. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <memory>
#include <string>

#include "viewer/model/session.h"
#include "viewer/tables/table.h"
#include "viewer/timeline/find_text.h"
#include "viewer/timeline/timeline_page.h"

namespace shardscope::viewer::timeline {

class FindBar {
  public:
    // The field with its count and buttons, on the current line.
    void draw(model::Session& session, TimelinePage& page);
    static float width();
    // The list of matches, in the content region.
    void draw_matches(model::Session& session, TimelinePage& page);

    // Marks the matches on the page, once they are found.
    void mark_hits(TimelinePage& page);

    // Whether the matches and marks in a trace that is to replace the one shown are found.
    bool ready(model::Session& session, const model::TracePtr& successor,
               const std::shared_ptr<const Tracks>& tracks);

    void forget(const traces::store::Trace& trace) {
        marks_.forget(trace);
        if (!finder_.forget(trace)) return;
        found_.reset();
        model_.reset();
        model_of_.reset();
        steps_.reset();
        table_.forget_model();
    }

    void focus() { focus_ = true; }
    void find(std::string text) { text_ = std::move(text); }
    void go(model::Session& session, TimelinePage& page, bool forwards);
    bool busy() const { return finder_.busy() || marks_.busy(); }
    bool empty() const { return text_.empty(); }
    const std::string& text() const { return text_; }
    bool has_list() const { return found_ != nullptr; }
    bool list = false;  // the list is shown

  private:
    void draw_count(const model::Session& session, const TimelinePage& page) const;
    std::string count_text(const model::Session& session, const TimelinePage& page) const;

    std::string marks_key(const std::shared_ptr<const FoundEvents>& found,
                          const std::shared_ptr<const Tracks>& tracks) const;

    std::string text_;
    bool focus_ = false;
    Finder finder_;
    model::LatestWork<HitMarks> marks_;
    std::shared_ptr<const FoundEvents> found_;
    std::shared_ptr<const tables::TableModel> model_;
    std::shared_ptr<const FoundEvents> model_of_;
    std::shared_ptr<const traces::analysis::TraceSteps> steps_;
    tables::TableState table_;
};

}  // namespace shardscope::viewer::timeline
