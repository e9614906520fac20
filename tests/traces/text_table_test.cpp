// Aligned text: widths as a terminal shows them, numbers for people, nothing that could steer a terminal.
#include "traces/report/text_table.h"

#include <gtest/gtest.h>

namespace shardscope::traces {
namespace {

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
    EXPECT_EQ(grouped(std::int64_t{0}), "0");
    EXPECT_EQ(grouped(std::int64_t{999}), "999");
    EXPECT_EQ(grouped(std::int64_t{1000}), "1,000");
    EXPECT_EQ(grouped(std::int64_t{-1234567}), "-1,234,567");
    EXPECT_EQ(grouped(INT64_MIN), "-9,223,372,036,854,775,808");
    EXPECT_EQ(grouped(1234.56, 1), "1,234.6");
    EXPECT_EQ(grouped(0.005, 2), "0.01");
    EXPECT_EQ(grouped(-0.25, 1), "-0.3");
    EXPECT_EQ(grouped(-0.01, 1), "0.0");
    EXPECT_EQ(grouped(2.0, 0), "2");
    EXPECT_EQ(grouped(std::numeric_limits<double>::quiet_NaN(), 1), "-");
    EXPECT_EQ(grouped(1e18, 1), "1000000000000000000.0");
}

}  // namespace
}  // namespace shardscope::traces
