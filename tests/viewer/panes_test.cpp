// Panes: dividing, closing, moving the focus, resizing, their text.
#include "viewer/app/panes.h"

#include <string>

#include <gtest/gtest.h>

namespace shardscope::viewer::app {
namespace TEST_FILE {

TEST(Panes, AreHalvedAndClosed) {
    Panes panes("timeline");
    EXPECT_TRUE(panes.alone());
    panes.close();
    EXPECT_EQ(panes.text(), "timeline");  // the last one stays
    panes.split(Split::above, "memory");
    EXPECT_EQ(panes.shown(), "memory");  // the new one has the keyboard
    panes.split(Split::beside, "units");
    EXPECT_EQ(panes.text(), "timeline / (memory | units)");
    panes.set_focus(0);
    panes.split(Split::beside, "query");
    EXPECT_EQ(panes.text(), "(timeline | query) / (memory | units)");
    panes.split(Split::beside, "idle");
    EXPECT_EQ(panes.count(), Panes::kMost);
    panes.set_focus(2);
    panes.close();
    EXPECT_EQ(panes.text(), "(timeline | query) / units");
    EXPECT_EQ(panes.shown(), "units");
    panes.close();
    EXPECT_EQ(panes.text(), "timeline | query");
    EXPECT_EQ(panes.shown(), "query");
}

TEST(Panes, APanelIsInOneOfThem) {
    Panes panes = *parse_panes("timeline / (memory | units)");
    panes.show("units");
    EXPECT_EQ(panes.focus(), 2U);
    panes.show("query");
    EXPECT_EQ(panes.text(), "timeline / (memory | query)");
    panes.put(0, "query");
    EXPECT_EQ(panes.text(), "query / (memory | timeline)");
    panes.step_focus(1);
    EXPECT_EQ(panes.shown(), "query");
    panes.step_focus(-1);
    EXPECT_EQ(panes.shown(), "timeline");
    panes.swap_with_next();
    EXPECT_EQ(panes.text(), "timeline / (memory | query)");
    EXPECT_EQ(panes.shown(), "timeline");
}

TEST(Panes, FillTheWindowButForTheBars) {
    const Panes panes = *parse_panes("timeline /60 (memory | units)");
    const Panes::Places places = panes.places(1010, 510, 10);
    ASSERT_EQ(places.panes.size(), 3U);
    ASSERT_EQ(places.bars.size(), 2U);
    EXPECT_EQ(places.panes[0].height, 300);
    EXPECT_EQ(places.panes[0].width, 1010);
    EXPECT_EQ(places.panes[1].y, 310);
    EXPECT_EQ(places.panes[1].width, 500);
    EXPECT_EQ(places.panes[2].x, 510);
    EXPECT_EQ(places.panes[2].height, 200);
    EXPECT_EQ(places.bars[1].place.x, 500);
    EXPECT_EQ(places.bars[1].place.y, 310);
}

TEST(Panes, AreResizedByTheirBarsAndByKeys) {
    Panes panes = *parse_panes("timeline / (memory | units)");
    panes.drag(0, 0, 105, 1010, 510, 10);
    EXPECT_EQ(panes.text(), "timeline /20 (memory | units)");
    panes.drag(1, 905, 0, 1010, 510, 10);
    EXPECT_EQ(panes.text(), "timeline /20 (memory |88 units)");  // no pane vanishes
    panes.set_focus(2);
    panes.grow(0.08);
    EXPECT_EQ(panes.text(), "timeline /20 (memory |80 units)");
    panes.set_focus(0);
    panes.grow(-0.5);
    EXPECT_EQ(panes.text(), "timeline /12 (memory |80 units)");
}

TEST(Panes, OneMayFillTheWindow) {
    Panes panes = *parse_panes("timeline / memory");
    panes.toggle_alone();
    const Panes::Places places = panes.places(1000, 500, 10);
    EXPECT_EQ(places.panes[0].height, 500);
    EXPECT_EQ(places.panes[1].height, 0);
    EXPECT_TRUE(places.bars.empty());
    panes.split(Split::beside, "units");
    EXPECT_FALSE(panes.alone());
}

TEST(Panes, AreReadFromText) {
    for (const char* text :
         {"timeline", "timeline | memory", "timeline /40 memory", "((timeline | query) / memory) |30 units",
          "timeline | (memory / (units | runs))"})
        EXPECT_EQ(parse_panes(text).value_or(Panes()).text(), text);
    EXPECT_EQ(parse_panes("timeline/memory")->text(), "timeline / memory");
    EXPECT_EQ(parse_panes("(timeline)")->text(), "timeline");
    EXPECT_EQ(parse_panes("timeline |0 memory")->text(), "timeline |12 memory");
    for (const char* text :
         {"", "|", "timeline |", "timeline memory", "(timeline", "timeline)", "a | a", "a | b | c",
          "a / (b / (c / (d / e)))", "a |99999999999 b", "((((((((((a))))))))))"})
        EXPECT_FALSE(parse_panes(text)) << text;
    EXPECT_EQ(
        not_panes("a | a"),
        "\"a | a\" does not divide a window; write one to four different panels as timeline / memory, or "
        "timeline |40 (memory / units)");
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
