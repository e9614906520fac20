// A table used with mouse and keyboard: its menus, its header, its keys.
#include "viewer/tables/table.h"

#include <gmock/gmock.h>

#include "tests/viewer/panel_fixture.h"
#include "viewer/tables/table_order.h"

namespace shardscope::viewer::tables {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;

// Three kernels: counts 2, 30 and 7, times 1.5, 0.2 and 4.
std::shared_ptr<const TableModel> three_kernels() {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"name", "Kernel", "", TableColumn::Kind::text, 0, 20, 0, {}},
        {"count", "Count", "", TableColumn::Kind::number, 6, 15, 0, {}},
        {"us", "Total", "\u00b5s", TableColumn::Kind::number, 6, 10, theme::rgb(0x5588CC), {}},
    });
    table->add({text_cell("add"), count_cell(2), us_cell(1.5)});
    table->add({text_cell("mul"), count_cell(30), us_cell(0.2)});
    table->add({text_cell("copy"), count_cell(7), us_cell(4)});
    return table;
}

// A table like that with many rows: kernel 0, kernel 1, ...
std::shared_ptr<const TableModel> many_kernels(int rows) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"name", "Kernel", "", TableColumn::Kind::text, 0, 20, 0, {}},
        {"count", "Count", "", TableColumn::Kind::number, 6, 15, 0, {}},
    });
    for (int i = 0; i < rows; ++i) table->add({text_cell("kernel " + std::to_string(i)), count_cell(i)});
    return table;
}

// Three kernels again, after one more in front.
std::shared_ptr<const TableModel> four_kernels() {
    auto table = std::make_shared<CellTable>(three_kernels()->columns());
    table->add({text_cell("first"), count_cell(1), us_cell(9)});
    for (const char* name : {"add", "mul", "copy"}) table->add({text_cell(name), count_cell(3), us_cell(1)});
    return table;
}

class TablePanel final : public model::Panel {
  public:
    explicit TablePanel(std::shared_ptr<const TableModel> shown) : model(std::move(shown)) {}
    std::string_view name() const override { return "table"; }
    void draw(model::Session&, const model::Frame&) override {
        const TableEvents now = draw_table("t", model, state, {.name = "kernels"});
        if (now.clicked) events.clicked = now.clicked;
        if (now.opened) events.opened = now.opened;
        if (const auto row = now.go_to()) gone_to = row;
        events.by_key = events.by_key || now.by_key;
    }
    std::shared_ptr<const TableModel> model;
    TableState state;
    TableEvents events;  // of all frames
    std::optional<std::size_t> gone_to;
};

class TableTest : public PanelsTest {
  protected:
    TableTest() {
        draw::items::keep(true);
        table_memory().clear();
        ImGuiIO& io = ImGui::GetIO();
        // The fixture's own clipboard receives the panel's text in each frame.
        io.ClipboardUserData = &copied_;
        io.SetClipboardTextFn = [](void* all, const char* text) {
            static_cast<std::vector<std::string>*>(all)->emplace_back(text);
        };
    }

    void press(model::Panel& panel, int key, bool control = false) {
        for (const bool down : {true, false}) {
            hold_key(key, down, control);
            frame(panel, 1600, 820);
        }
        draw(panel);
    }

    // Opens the menu with the right button on an item, at `share` of its width from its left.
    void open_menu(model::Panel& panel, const std::string& name, float share = 0.5F) {
        const auto found = draw::items::find(name);
        ASSERT_TRUE(found) << "no item is called " << name;
        ImGuiIO& io = ImGui::GetIO();
        io.MousePos = {found->min.x + (found->max.x - found->min.x) * share,
                       (found->min.y + found->max.y) / 2};
        frame(panel, 1600, 820);
        for (const bool down : {true, false}) {
            io.MouseDown[1] = down;
            frame(panel, 1600, 820);
        }
        draw(panel);
    }

    std::vector<std::string> copied_;
};

TEST_F(TableTest, ANumberThatFindsNoRoomIsWrittenShortAndNeverCut) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"name", "Module", "", TableColumn::Kind::text, 0, 20, 0, {}},
        {"parameters", "Parameters", "", TableColumn::Kind::number, 5, 15, 0, {}},
        {"us", "Time", "", TableColumn::Kind::number, 5, 15, theme::rgb(0x5588CC), {}},
    });
    table->add({text_cell("GPT_0"), count_cell(175221817344), us_cell(123456789012.5)});
    table->add({text_cell("Linear_0"), count_cell(262656), us_cell(1.5)});
    TablePanel panel(table);
    draw(panel);
    const std::string text = copied_.back();
    EXPECT_THAT(text, testing::HasSubstr("175.2 B"));
    EXPECT_THAT(text, testing::HasSubstr("123.5 B"));
    EXPECT_THAT(text, testing::HasSubstr("262,656"));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("175,221")));
    EXPECT_EQ(item("t.GPT_0.parameters"), "175,221,817,344") << "what is exported and shown on hover";
}

TEST_F(TableTest, LongTimesAreWrittenInLargerUnitsAndToldExactlyUnderTheMouse) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"name", "Unit", "", TableColumn::Kind::text, 0, 20, 0, {}},
        {"us", "Gather", kMicro, TableColumn::Kind::number, 8, 15, 0, {}},
        {"mb", "Data", "MiB", TableColumn::Kind::number, 8, 15, 0, {}},
    });
    table->add({text_cell("root"), us_cell(5'715'520.9), mb_cell(113'348'608)});
    TablePanel panel(table);
    draw(panel);
    EXPECT_THAT(copied_.back(), testing::HasSubstr("5,715.5"));
    EXPECT_THAT(copied_.back(), testing::Not(testing::HasSubstr("5,715,520.9")));
    EXPECT_EQ(item("t.root.us"), "5,715,520.9");
    const auto hover = [&](const std::string& name) {
        const auto cell = draw::items::find(name);
        ASSERT_TRUE(cell);
        ImGui::GetIO().MousePos = {(cell->min.x + cell->max.x) / 2, (cell->min.y + cell->max.y) / 2};
        draw(panel);
    };
    hover("t.root.us");
    EXPECT_EQ(item("table.exact"), "5,715,520.9 \u00b5s");
    hover("t.root.mb");
    EXPECT_EQ(item("table.exact"), "113,348,608 bytes");
    open_menu(panel, "t.root.us");
    EXPECT_THAT(copied_.back(), testing::HasSubstr("Copy Gather (\u00b5s)"));
    click(panel, "t.menu.copy_cell");
    EXPECT_THAT(copied_, Contains("5,715,520.9"));
}

TEST_F(TableTest, ARowsMenuCopiesTheCellUnderTheMouse) {
    TablePanel panel(three_kernels());
    draw(panel);
    open_menu(panel, "t.mul.count");
    EXPECT_EQ(item("t.menu.copy_cell"), "Count");
    click(panel, "t.menu.copy_cell");
    EXPECT_THAT(copied_, Contains("30"));
    EXPECT_FALSE(draw::items::find("t.menu.copy_cell")) << "the menu is still open";
}

TEST_F(TableTest, ARowsMenuCopiesTheRowBetweenTabs) {
    TablePanel panel(three_kernels());
    draw(panel);
    open_menu(panel, "t.copy.us");
    click(panel, "t.menu.copy_row");
    EXPECT_THAT(copied_, Contains("copy\t7\t4.0"));
}

TEST_F(TableTest, ItsMenusAskForAnExportUnderItsName) {
    TablePanel panel(three_kernels());
    draw(panel);
    EXPECT_EQ(take_export_request(), std::nullopt);
    open_menu(panel, "t.add.us");
    click(panel, "t.menu.export");
    EXPECT_EQ(take_export_request(), "kernels");
    EXPECT_EQ(take_export_request(), std::nullopt) << "it is asked once";
    open_menu(panel, "t.header.count");
    click(panel, "t.columns_menu.export");
    EXPECT_EQ(take_export_request(), "kernels");
}

TEST_F(TableTest, TheHeadersMenuTakesAColumnAwayAndBringsItBack) {
    TablePanel panel(three_kernels());
    draw(panel);
    open_menu(panel, "t.header.us");
    EXPECT_EQ(item("t.columns.us"), "shown");
    EXPECT_FALSE(draw::items::find("t.columns.name")) << "the first column always stays";
    click(panel, "t.columns.us");
    EXPECT_FALSE(draw::items::find("t.header.us"));
    EXPECT_FALSE(draw::items::find("t.add.us"));
    EXPECT_THAT(table_memory().at("t").hidden, ElementsAre("us"));
    // Another panel with that table, as after a restart, has the column hidden, too.
    TablePanel next(three_kernels());
    draw(next);
    EXPECT_FALSE(draw::items::find("t.header.us"));
    open_menu(next, "t.header.count");
    EXPECT_EQ(item("t.columns.us"), "hidden");
    click(next, "t.columns.us");
    EXPECT_TRUE(draw::items::find("t.header.us"));
    EXPECT_FALSE(table_memory().contains("t")) << "as it comes needs no memory";
}

TEST_F(TableTest, AClickOnAHeaderSortsNumbersFromTheLargest) {
    TablePanel panel(three_kernels());
    draw(panel);
    EXPECT_EQ(item("t.row.0"), "add");
    click(panel, "t.header.count");
    EXPECT_EQ(item("t.row.0"), "mul");  // 30, 7, 2
    EXPECT_EQ(item("t.row.2"), "add");
    click(panel, "t.header.count");
    EXPECT_EQ(item("t.row.0"), "add");
    EXPECT_EQ(table_memory().at("t").sorted_by, "count");
    EXPECT_FALSE(table_memory().at("t").descending);
    open_menu(panel, "t.header.count");
    click(panel, "t.columns_menu.order");
    EXPECT_EQ(item("t.row.1"), "mul");  // add, mul, copy: the model's order
}

TEST_F(TableTest, AWindowThatIsNarrowShowsTheMostImportantColumns) {
    TablePanel panel(three_kernels());
    draw(panel, 300);
    EXPECT_TRUE(draw::items::find("t.header.name"));
    EXPECT_TRUE(draw::items::find("t.header.count"));
    EXPECT_FALSE(draw::items::find("t.header.us"));
    draw(panel);
    EXPECT_TRUE(draw::items::find("t.header.us"));
    // With the header's menu they are all shown next to each other, with scrolling.
    open_menu(panel, "t.header.count");
    EXPECT_EQ(item("t.columns_menu.all"), "off");
    click(panel, "t.columns_menu.all");
    EXPECT_TRUE(panel.state.all_columns);
}

// A place left beside the last column looks like one more, without a name.
TEST_F(TableTest, TheWidestTextTakesTheRoomThatIsLeft) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"operation", "Operation", "", TableColumn::Kind::text, 8, 20, 0, {}},
        {"about", "About", "", TableColumn::Kind::text, 12, 15, 0, {}},
        {"count", "Count", "", TableColumn::Kind::number, 6, 10, 0, {}},
    });
    table->add({text_cell("send"), text_cell("stage 1"), count_cell(4)});
    TablePanel panel(table);
    draw(panel, 1200);
    const auto width = [](const char* column) {
        const auto header = draw::items::find(std::string("t.header.") + column);
        return header ? header->max.x - header->min.x : 0;
    };
    EXPECT_GT(draw::items::find("t.header.count")->max.x, 1200 - 2 * ImGui::GetFontSize());
    EXPECT_GT(width("about"), 700);
    EXPECT_NEAR(width("operation"), 8 * ImGui::GetFontSize(), 1);
    draw(panel, 300);
    EXPECT_TRUE(draw::items::find("t.header.operation"));
}

TEST_F(TableTest, TheWidestTextGivesWayToNumbers) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"name", "Name", "", TableColumn::Kind::text, 26, 20, 0, {}, 0, 10},
        {"count", "Count", "", TableColumn::Kind::number, 6, 15, 0, {}},
        {"us", "Total", "\u00b5s", TableColumn::Kind::number, 6, 10, 0, {}},
    });
    table->add({text_cell("gemm"), count_cell(4), count_cell(5)});
    TablePanel panel(table);
    draw(panel, 1200);
    const float font = ImGui::GetFontSize();
    draw(panel, 28 * font);
    const auto last = draw::items::find("t.header.us");
    ASSERT_TRUE(last);
    EXPECT_LE(last->max.x, 28 * font);
    EXPECT_GT(last->max.x - last->min.x, 5 * font);
    draw(panel, 12 * font);
    EXPECT_FALSE(draw::items::find("t.header.us"));
    EXPECT_TRUE(draw::items::find("t.header.name"));
}

TEST_F(TableTest, ANarrowPaneKeepsANumberBesideTheName) {
    auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
        {"name", "Kernel", "", TableColumn::Kind::text, 0, 20, 0, {}, 0, 22},
        {"us", "Total", "\u00b5s", TableColumn::Kind::number, 6, 10, 0, {}},
    });
    table->add({text_cell("gemm"), us_cell(4)});
    TablePanel panel(table);
    draw(panel, 340);
    EXPECT_TRUE(draw::items::find("t.header.us"));
}

TEST_F(TableTest, AHeaderWithoutUnitsIsOneLineHigh) {
    const auto height = [this](const char* unit) {
        auto table = std::make_shared<CellTable>(std::vector<TableColumn>{
            {"name", "Setting", "", TableColumn::Kind::text, 0, 20, 0, {}},
            {"size", "Size", unit, TableColumn::Kind::number, 6, 15, 0, {}},
        });
        table->add({text_cell("run.ranks"), count_cell(8)});
        TablePanel panel(table);
        draw(panel);
        const auto header = draw::items::find("t.header.name");
        return header ? header->max.y - header->min.y : 0;
    };
    const float two = height("MiB"), one = height("");
    EXPECT_NEAR(two - one, ImGui::GetTextLineHeight(), 1);
}

TEST_F(TableTest, TheKeyboardMovesTheChosenRowInTheShownOrder) {
    TablePanel panel(three_kernels());
    panel.state.sort = {1, true};  // by count: mul, copy, add
    draw(panel);
    press(panel, ImGuiKey_DownArrow);
    EXPECT_EQ(panel.state.chosen, std::nullopt) << "the table does not have the keyboard yet";
    click(panel, "t.row.0", false, kNearLeft);
    EXPECT_EQ(panel.state.chosen, 1U);
    press(panel, ImGuiKey_DownArrow);
    EXPECT_EQ(panel.state.chosen, 2U);
    press(panel, ImGuiKey_End);
    EXPECT_EQ(panel.state.chosen, 0U);
    press(panel, ImGuiKey_DownArrow);
    EXPECT_EQ(panel.state.chosen, 0U) << "below the last is nothing";
    press(panel, ImGuiKey_UpArrow);
    EXPECT_EQ(panel.state.chosen, 2U);
    press(panel, ImGuiKey_Home);
    EXPECT_EQ(panel.state.chosen, 1U);
}

TEST_F(TableTest, ARowThatTheKeyboardPassesIsNotGoneToButEnterIs) {
    TablePanel panel(three_kernels());
    draw(panel);
    click(panel, "t.row.0", false, kNearLeft);
    EXPECT_EQ(panel.gone_to, 0U);
    press(panel, ImGuiKey_DownArrow);
    EXPECT_EQ(panel.events.clicked, 1U);
    EXPECT_TRUE(panel.events.by_key);
    EXPECT_EQ(panel.gone_to, 0U);
    EXPECT_EQ(panel.events.opened, std::nullopt);
    press(panel, ImGuiKey_Enter);
    EXPECT_EQ(panel.events.opened, 1U);
    EXPECT_EQ(panel.gone_to, 1U);
}

TEST_F(TableTest, AKeyBringsTheChosenRowInSight) {
    TablePanel panel(many_kernels(1000));
    draw(panel);
    ASSERT_TRUE(draw::items::find("t.kernel 999")) << "a frame that is read as text holds every row";
    EXPECT_FALSE(draw::items::find("t.kernel 999")->in_sight);
    click(panel, "t.row.0", false, kNearLeft);
    press(panel, ImGuiKey_End);
    EXPECT_EQ(panel.state.chosen, 999U);
    EXPECT_TRUE(draw::items::find("t.kernel 999")->in_sight);
    press(panel, ImGuiKey_PageUp);
    ASSERT_TRUE(panel.state.chosen);
    EXPECT_LT(*panel.state.chosen, 999U);
    EXPECT_GT(*panel.state.chosen, 900U) << "a page of 820 pixels holds fewer than a hundred rows";
}

TEST_F(TableTest, ControlAndCCopiesTheChosenRow) {
    TablePanel panel(three_kernels());
    draw(panel);
    click(panel, "t.row.1", false, kNearLeft);
    press(panel, ImGuiKey_C, true);
    EXPECT_THAT(copied_, Contains("mul\t30\t0.2"));
}

TEST_F(TableTest, ADoubleClickOpensTheRow) {
    TablePanel panel(three_kernels());
    draw(panel);
    click(panel, "t.row.2", true, kNearLeft);
    EXPECT_EQ(panel.events.opened, 2U);
}

TEST_F(TableTest, ExportsTheRowsThatItShows) {
    TablePanel panel(three_kernels());
    panel.state.sort = {2, true};  // by time: copy 4, add 1.5, mul 0.2
    panel.state.filter = "l";      // by name: mul only
    draw(panel);
    EXPECT_EQ(item("t.rows"), "1");
    ASSERT_FALSE(shown_tables().empty());
    EXPECT_EQ(table_csv(*shown_tables().front().model, shown_tables().front().order.get()),
              "name,count,us\nmul,30,0.2\n");
}

TEST_F(TableTest, ANameOfAMegabyteCostsWhatItsCellHolds) {
    auto table = std::make_shared<CellTable>(
        std::vector<TableColumn>{{"name", "Kernel", "", TableColumn::Kind::text, 0, 20, 0, {}}});
    for (int i = 0; i < 50; ++i) table->add({text_cell(std::string(1 << 20, 'a') + "\nend")});
    TablePanel panel(table);
    draw::items::keep(false);
    draw(panel);
    const std::string& text = copied_.back();  // the text that the fixture logs
    // Each of the rows shows both ends in one line of at most 1600 pixels.
    EXPECT_THAT(text, ::testing::HasSubstr("aaa...aaa"));
    EXPECT_LT(text.size(), 100U * 1000);
    EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 100'000);
}

// As when the trace of a running job grows.
TEST_F(TableTest, TheChosenRowIsThatOfTheSameNameInTheNextModel) {
    TablePanel panel(three_kernels());
    draw(panel);
    panel.state.chosen = 2;  // copy
    panel.model = four_kernels();
    draw(panel);
    EXPECT_EQ(panel.state.chosen, 3U);
    panel.model = many_kernels(10);
    draw(panel);
    EXPECT_EQ(panel.state.chosen, std::nullopt) << "a table with other columns";
    panel.state.chosen = 9;
    panel.model = many_kernels(5);
    draw(panel);
    EXPECT_EQ(panel.state.chosen, std::nullopt) << "no row has its name";
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::tables
