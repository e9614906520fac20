// Numbers as people read them.
#include "viewer/draw/format.h"

#include <cmath>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace shardscope::viewer::draw {
namespace TEST_FILE {

TEST(Format, CountsAreGroupedByThousands) {
    EXPECT_EQ(format_count(0), "0");
    EXPECT_EQ(format_count(999), "999");
    EXPECT_EQ(format_count(1000), "1,000");
    EXPECT_EQ(format_count(52133082), "52,133,082");
    EXPECT_EQ(format_count(-113348608), "-113,348,608");
}

TEST(Format, DecimalsRoundAndNeverShowMinusZero) {
    EXPECT_EQ(format_decimal(1234567.891, 1), "1,234,567.9");
    EXPECT_EQ(format_decimal(-0.04, 1), "0.0");
    EXPECT_EQ(format_decimal(-1234.5, 0), "-1,235");
    EXPECT_EQ(format_decimal(std::nan(""), 1), "n/a");
}

// The same texts as shardscope-trace prints for 1,250 ns, 250 ns and 8,450 ns.
TEST(Format, RoundsAsTheTablesDo) {
    EXPECT_EQ(format_decimal(1250 * 1e-3, 1), "1.3");
    EXPECT_EQ(format_decimal(250 * 1e-3, 1), "0.3");
    EXPECT_EQ(format_decimal(8450 * 1e-3, 1), "8.5");
}

// As many letters as a line has room for.
std::string lines(std::string_view text, std::size_t room) {
    return lines_of(text, [room](std::string_view line) { return line.size() <= room; });
}

TEST(Format, LinesEndBetweenWordsAndNeverInANumber) {
    EXPECT_EQ(lines("one two three", 7), "one two\nthree");
    EXPECT_EQ(lines("one two three", 13), "one two three");
    EXPECT_EQ(lines("(overlap 25.84 %).", 14), "(overlap\n25.84 %).") << "a number stays with its unit";
    EXPECT_EQ(lines("4,481 collectives", 8), "4,481 collectives") << "nowhere to break";
    EXPECT_EQ(lines("at fsdp.wrap it", 10), "at\nfsdp.wrap\nit");
    EXPECT_EQ(lines("one\ntwo three", 6), "one\ntwo\nthree");
    EXPECT_EQ(lines("one.  Two", 5), "one. \nTwo") << "no line begins with a blank";
    EXPECT_EQ(lines("", 5), "");
}

TEST(Format, MegabytesAreTwoToTheTwenty) {
    EXPECT_EQ(format_mb(std::int64_t{1} << 20), "1.00 MiB");
    // The FSDP talk's root wrap at laptop scale: 113,348,608 / 1,048,576 = 108.098
    EXPECT_EQ(format_mb(113348608), "108.10 MiB");
    EXPECT_EQ(format_mb(113348608, false), "108.10");
    EXPECT_EQ(format_mb(std::int64_t{45317} << 20), "45,317.00 MiB");
}

TEST(Format, SizesChooseTheirUnit) {
    EXPECT_EQ(format_size(812), "812 B");
    EXPECT_EQ(format_size(3277), "3.2 KiB");
    EXPECT_EQ(format_size(113348608), "108.1 MiB");
    EXPECT_EQ(format_size(std::int64_t{1} << 30), "1.0 GiB");
    EXPECT_EQ(format_size((std::int64_t{1} << 20) - 1), "1.0 MiB");  // not "1,024.0 KiB"
}

TEST(Format, DurationsChooseTheirUnit) {
    EXPECT_EQ(format_duration(0), "0 ns");
    EXPECT_EQ(format_duration(812), "812 ns");
    EXPECT_EQ(format_duration(3214), "3.21 \u00b5s");
    EXPECT_EQ(format_duration(12345678), "12.35 ms");
    EXPECT_EQ(format_duration(999960), "1.00 ms");  // not "1000.0 µs"
    EXPECT_EQ(format_duration(1.2044e9), "1.204 s");
    EXPECT_EQ(format_duration(-3214), "-3.21 \u00b5s");
}

TEST(Format, ShortNumbersHaveFourDigitsAndAPowerOfAThousand) {
    EXPECT_EQ(format_short(812), "812");
    EXPECT_EQ(format_short(1234), "1.234 k");
    EXPECT_EQ(format_short(175221817344), "175.2 B");
    EXPECT_EQ(format_short(-5715520.9), "-5.716 M");
    EXPECT_EQ(format_short(999960), "1.000 M");  // not "1000 k"
}

TEST(Format, PercentHasTwoDecimals) {
    EXPECT_EQ(format_percent(89.036), "89.04 %");
}

TEST(Format, ChangeIsSignedAndSaysNewWhereThereWasNothing) {
    EXPECT_EQ(format_change(46157824, 113348608), "-59.3 %");
    EXPECT_EQ(format_change(105, 100), "+5.0 %");
    EXPECT_EQ(format_change(100.01, 100), "0.0 %");
    EXPECT_EQ(format_change(0, 0), "0.0 %");
    EXPECT_EQ(format_change(7, 0), "new");
}

TEST(Format, LongTextKeepsBothEnds) {
    EXPECT_EQ(shorten_middle("root.sqlite", 20), "root.sqlite");
    const std::string shortened = shorten_middle("/home/someone/traces/gpt_block.sqlite", 20);
    EXPECT_EQ(shortened, "/home/so...ck.sqlite");
    EXPECT_EQ(shortened.size(), 20U);
}

TEST(Format, NoCharacterIsCutInTwo) {
    // Each of the ten characters has two bytes. Of 20 bytes 9 may stay, of which 3 are dots: one character on
    // the left and one on the right; the two remaining bytes would be halves.
    EXPECT_EQ(shorten_middle("ääääääääää", 9), "ä...ä");
    EXPECT_EQ(first_character("ä"), 2U);
    EXPECT_EQ(last_character("aä"), 2U);
    EXPECT_EQ(first_character("\xE2\x82"), 1U);  // the third byte is missing
    EXPECT_EQ(last_character("a\x82"), 1U);
    EXPECT_EQ(last_character("\xF0\x9F\x98\x80"), 4U);
    EXPECT_EQ(first_character(""), 0U);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::draw
