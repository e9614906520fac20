// Aligned text: widths as a terminal shows them, numbers for people, nothing that could control a terminal.
#include "traces/report/text_table.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace shardscope::traces::report {
namespace TEST_FILE {

constexpr const char* kReplaced = "\xEF\xBF\xBD";

TEST(TextTable, AlignsByDisplayWidth) {
    TextTable table({Align::left, Align::right});
    table.header({"Name", "N"});
    table.row({"日本", "1"});      // two columns each
    table.row({"e\u0301", "22"});  // e and a combining accent: one column
    table.row({"only a name"});
    EXPECT_EQ(table.text(),
              "Name          N\n"
              "───────────  ──\n"
              "日本          1\n"
              "e\u0301            22\n"
              "only a name\n");
}

TEST(TextTable, PrintsNothingWithoutRows) {
    EXPECT_EQ(TextTable({Align::left}).text(), "");
}

// Columns of 30 (a text), 8 and 8 with two gaps of 2: 50. With each header on one line they need 30, 15 and
// 14: 63.
TextTable wide_table() {
    TextTable table({Align::left, Align::right, Align::right});
    table.header({"Name", "Host total (µs)", "Host self (µs)"});
    table.row({"abcdefghijklmnopqrstuvwxyz0123", "12,345.6", "-1,234.5"});
    return table;
}

std::size_t widest_line(const std::string& text) {
    std::size_t widest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, display_width(line));
    return widest;
}

TEST(TextTable, FoldsHeadersOnlyIfItMust) {
    EXPECT_EQ(wide_table().text(63),
              "Name                            Host total (µs)  Host self (µs)\n"
              "──────────────────────────────  ───────────────  ──────────────\n"
              "abcdefghijklmnopqrstuvwxyz0123         12,345.6        -1,234.5\n");
    EXPECT_EQ(wide_table().text(62),
              "                                    Host      Host\n"
              "                                   total      self\n"
              "Name                                (µs)      (µs)\n"
              "──────────────────────────────  ────────  ────────\n"
              "abcdefghijklmnopqrstuvwxyz0123  12,345.6  -1,234.5\n");
}

TEST(TextTable, ThenShortensTexts) {
    EXPECT_EQ(wide_table().text(45),
              "                               Host      Host\n"
              "                              total      self\n"
              "Name                           (µs)      (µs)\n"
              "─────────────────────────  ────────  ────────\n"
              "abcdefghijkl…stuvwxyz0123  12,345.6  -1,234.5\n");
}

// 20 columns for the name, 2, 8: there is no room for the last column next to them.
TEST(TextTable, ThenContinuesBelowWithTheNamesRepeated) {
    const std::string text = wide_table().text(39);
    EXPECT_EQ(text,
              "                          Host\n"
              "                         total\n"
              "Name                      (µs)\n"
              "────────────────────  ────────\n"
              "abcdefghij…vwxyz0123  12,345.6\n"
              "\n"
              "                          Host\n"
              "                          self\n"
              "Name                      (µs)\n"
              "────────────────────  ────────\n"
              "abcdefghij…vwxyz0123  -1,234.5\n");
    // Numbers are never cut, however narrow the table is.
    EXPECT_EQ(widest_line(wide_table().text(1)), 30U);
}

TEST(TextTable, FitsEveryWidthThatItsNumbersAllow) {
    TextTable table({Align::right, Align::left, Align::right, Align::left, Align::right}, 2);
    table.header({"Rank", "Kernel of the device", "Time in all (µs)", "Annotation around it", "Count"});
    table.row({"0", std::string(90, 'k'), "123,456,789.0", std::string(70, 'a'), "1,234"});
    table.rule();
    table.row({"11", "日本日本日本日本日本日本日本日本", "1.0", "short", "1"});
    for (std::size_t width = 52; width < 250; ++width) {
        const std::string text = table.text(width);
        EXPECT_LE(widest_line(text), width) << text;
        EXPECT_NE(text.find("123,456,789.0"), std::string::npos);
        EXPECT_NE(text.find("1,234"), std::string::npos);
    }
    EXPECT_EQ(table.text(1000), table.text());
}

TEST(TextTable, ParagraphsBreakAtBlanks) {
    EXPECT_EQ(paragraph("one two three", 7), "one two\nthree\n");
    EXPECT_EQ(paragraph("a-word-that-is-too-long b", 5), "a-word-that-is-too-long\nb\n");
    EXPECT_EQ(paragraph("", 5), "\n");
}

TEST(TextTable, WidthIsInTerminalColumns) {
    EXPECT_EQ(display_width(""), 0u);
    EXPECT_EQ(display_width("abc"), 3u);
    EXPECT_EQ(display_width("├─ µ"), 4u);
    EXPECT_EQ(display_width("宽"), 2u);
    EXPECT_EQ(display_width("\u200Bx"), 1u);  // zero-width space
}

TEST(TextTable, UnsafeTextIsMadeVisible) {
    EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\tc");
    EXPECT_EQ(printable("\x1b[31mred"), std::string(kReplaced) + "[31mred");
    EXPECT_EQ(printable("\xC0\xAF"), std::string(kReplaced) + kReplaced);  // an overlong slash
    EXPECT_EQ(printable("\xE6\x97"), std::string(kReplaced) + kReplaced);  // cut in the middle
    EXPECT_EQ(printable("\xED\xA0\x80"),
              std::string(kReplaced) + kReplaced + kReplaced);          // half a surrogate pair
    EXPECT_EQ(printable("\u202Eabc"), std::string(kReplaced) + "abc");  // would read backwards
    EXPECT_EQ(printable("日本 🚀"), "日本 🚀");
}

TEST(TextTable, ThousandsAreLegible) {
    EXPECT_EQ(store::grouped(std::int64_t{0}), "0");
    EXPECT_EQ(store::grouped(std::int64_t{999}), "999");
    EXPECT_EQ(store::grouped(std::int64_t{1000}), "1,000");
    EXPECT_EQ(store::grouped(std::int64_t{-1234567}), "-1,234,567");
    EXPECT_EQ(store::grouped(INT64_MIN), "-9,223,372,036,854,775,808");
    EXPECT_EQ(store::grouped(1234.56, 1), "1,234.6");
    EXPECT_EQ(store::grouped(0.005, 2), "0.01");
    EXPECT_EQ(store::grouped(-0.25, 1), "-0.3");
    EXPECT_EQ(store::grouped(-0.01, 1), "0.0");
    EXPECT_EQ(store::grouped(2.0, 0), "2");
    EXPECT_EQ(store::grouped(std::numeric_limits<double>::quiet_NaN(), 1), "-");
    EXPECT_EQ(store::grouped(1e18, 1), "1,000,000,000,000,000,000.0");
}

// The viewer's Format.RoundsAsTheTablesDo has the same figures: 1,250 ns, 250 ns and 8,450 ns as us.
TEST(TextTable, RoundsHalvesAwayFromZeroWhetherBinaryHasThemOrNot) {
    EXPECT_EQ(store::grouped(1250 * 1e-3, 1), "1.3");
    EXPECT_EQ(store::grouped(250 * 1e-3, 1), "0.3");
    EXPECT_EQ(store::grouped(8450 * 1e-3, 1), "8.5");
    EXPECT_EQ(store::grouped(1.005, 2), "1.01");  // in binary, 100 times it is 100.49999999999999
    EXPECT_EQ(store::grouped(-1.25, 1), "-1.3");
    EXPECT_EQ(store::grouped(0.05, 0), "0");
    EXPECT_EQ(store::grouped(999.95, 1), "1,000.0");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::report
