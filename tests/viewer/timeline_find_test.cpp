// The search on the timeline, with mouse and keys: its filters, marks, list, and zoom.
#include <algorithm>
#include <cstddef>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/viewer/gestures_fixture.h"
#include "viewer/draw/items.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

class FindBarTest : public GesturesTest {
  protected:
    void search(const char* text) {
        click(middle("timeline.find"));
        ImGui::GetIO().AddInputCharactersUTF8(text);
        settle();
    }
    static int marks() { return std::stoi(item("timeline.find.marks").text); }
};

TEST_F(FindBarTest, MarksAllMatchesAndMovesNoRow) {
    const float top = item("timeline.rows").min.y;
    EXPECT_FALSE(draw::items::find("timeline.find.marks"));
    search("Linear");
    EXPECT_EQ(item("timeline.rows").min.y, top);
    EXPECT_GT(marks(), 3);
    EXPECT_GT(std::stoi(item("timeline.minimap.marks").text), 0);
    // A folded rank's strip has the marks of its rows.
    const int unfolded = marks();
    act("fold_ranks");
    EXPECT_GT(marks(), 0);
    EXPECT_GE(marks(), unfolded / 4);
    search("nothing has this name");
    EXPECT_FALSE(draw::items::find("timeline.find.marks"));
    EXPECT_EQ(item("timeline.find.count").text, "nothing found");
}

TEST_F(FindBarTest, NextZoomsToAnEventThatIsTooNarrowToBeSeen) {
    session().fit();
    search("relu kind:kernel");
    click(middle("timeline.find.next"));
    ASSERT_NE(session().selected.kind, model::EventKind::none);
    const EventTime time = time_of(*session().trace(), session().selected);
    EXPECT_GE(static_cast<double>(time.end - time.start), 5 * ns_per_pixel());
    EXPECT_LE(entry().visible.from, time.start);
    EXPECT_GE(entry().visible.to, time.end);
    // One that can be seen is not zoomed to.
    const model::TimeRange before = entry().visible;
    click(middle("timeline.find.next"));
    EXPECT_EQ(entry().visible.length(), before.length());
}

TEST_F(FindBarTest, TheListSaysWhereAnEventIs) {
    search("kind:communication rank:1");
    click(middle("timeline.find.list"));
    const traces::store::Trace& trace = *session().trace();
    const auto count = std::count_if(trace.device.kind.begin(), trace.device.kind.end(), [](auto kind) {
        return kind == traces::store::DeviceKind::communication;
    });
    EXPECT_EQ(item("timeline.matches.rows").text, std::to_string(count / 2));
    std::size_t listed = 0;
    for (const std::string& name : draw::items::names()) {
        if (!name.starts_with("timeline.matches.") || !name.ends_with(".rank") ||
            name.find(".header.") != std::string::npos)
            continue;
        EXPECT_EQ(item(name).text, "1");
        ++listed;
    }
    EXPECT_GT(listed, 0U);
}

TEST_F(FindBarTest, AWrongFilterIsSaidInOneSentence) {
    search("dur>fast");
    EXPECT_THAT(item("timeline.find.count").text, testing::HasSubstr("dur>fast is not a limit of durations"));
    EXPECT_FALSE(draw::items::find("timeline.find.next"));
    EXPECT_FALSE(draw::items::find("timeline.find.marks"));
    act("find_next");
    EXPECT_EQ(session().selected.kind, model::EventKind::none);
}

TEST_F(FindBarTest, FindsAllEventsOfTheSelectedOnesName) {
    session().selected = {model::EventKind::device, 0};
    settle();
    program_.shown().act("find_same", session());
    settle();
    EXPECT_EQ(item("timeline.find").text,
              std::string(session().trace()->strings[session().trace()->device.name[0]]));
    EXPECT_THAT(item("timeline.find.count").text, testing::MatchesRegex("[0-9,]+ of [0-9,]+"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
