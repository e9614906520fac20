// Parsing of scripts: words, commands, and their errors; and expectations about a text.
#include "viewer/script/script.h"

#include <filesystem>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "viewer/app/fuzzy.h"
#include "viewer/script/match.h"
#include "viewer/script/words.h"

namespace shardscope::viewer::script {
namespace TEST_FILE {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
T only(std::string_view text) {
    const Script script = parse_script("a.script", text);
    EXPECT_EQ(script.error, "");
    EXPECT_EQ(script.commands.size(), 1U);
    if (script.commands.size() != 1 || !std::holds_alternative<T>(script.commands[0].act)) {
        ADD_FAILURE() << text << " is another command";
        return T{};
    }
    return std::get<T>(script.commands[0].act);
}

std::string error_of(std::string_view text) {
    const Script script = parse_script("a.script", text);
    EXPECT_TRUE(script.commands.empty()) << text;
    return script.error;
}

TEST(Words, AreSplitAtBlanksUnlessTheyAreQuoted) {
    EXPECT_THAT(split_words("  click  a.b\t3 # why").words, ElementsAre("click", "a.b", "3"));
    EXPECT_THAT(split_words(R"(expect "layers 0" "say \"hi\"\n")").words,
                ElementsAre("expect", "layers 0", "say \"hi\"\n"));
    EXPECT_THAT(split_words("# only a comment").words, ElementsAre());
    EXPECT_THAT(split_words("type   select 1  ").rest, "select 1");
    EXPECT_THAT(split_words("type \" a \"").rest, " a ");
    EXPECT_EQ(split_words("click \"a").error, "a quote is not closed");
}

TEST(Words, NamesThatAreMeantAreThoseThatHoldOrAreNear) {
    const std::vector<std::string> names = {"units.row.0", "units.rows", "memory.chart", "panel"};
    EXPECT_THAT(nearest_names("units.row", names), ElementsAre("units.row.0", "units.rows"));
    EXPECT_THAT(nearest_names("panle", names), ElementsAre("panel"));
    EXPECT_EQ(did_you_mean("zzzzzzzzzzzz", names), "");
}

TEST(Script, ReadsEachCommand) {
    EXPECT_THAT(only<Open>("open a.sqlite \"b c.sqlite\"").paths, ElementsAre("a.sqlite", "b c.sqlite"));
    EXPECT_TRUE(only<Open>("open merged a b").merged);
    EXPECT_EQ(only<ShowPanel>("panel units").name, "units");
    const auto click = only<Click>("click units.row.0 right ctrl at 10 50%");
    EXPECT_EQ(click.spot.item, "units.row.0");
    EXPECT_TRUE(click.right && click.with.ctrl && !click.twice && !click.with.shift);
    EXPECT_FALSE(click.spot.x.share);
    EXPECT_EQ(click.spot.x.value, 10);
    EXPECT_TRUE(click.spot.y.share);
    EXPECT_EQ(click.spot.y.value, 0.5);
    EXPECT_TRUE(only<Click>("click a double").twice);
    EXPECT_EQ(only<Drag>("drag a -10 5 shift").dx, -10);
    EXPECT_EQ(only<Drag>("drag a to b").to, "b");
    EXPECT_EQ(only<Wheel>("wheel a -2.5").notches, -2.5);
    EXPECT_EQ(only<PressKey>("key Ctrl+Shift+P").chord, (model::Chord{model::Key::p, true, true}));
    EXPECT_EQ(only<TypeText>("type select count(*) from kernels").text, "select count(*) from kernels");
    EXPECT_EQ(only<RunAction>("action fit").id, "fit");
    EXPECT_EQ(only<Wait>("wait").seconds, 120);
    EXPECT_EQ(only<Wait>("wait 3").seconds, 3);
    EXPECT_EQ(only<SetLimit>("set limit 10:20").range, (model::TimeRange{10'000'000, 20'000'000}));
    EXPECT_EQ(only<SetLimit>("set limit none").range, std::nullopt);
    const auto area = only<SetArea>("set area 10:20 \"rank 0\" \"rank 1/stream 7\"").area;
    ASSERT_TRUE(area);
    EXPECT_EQ(area->time, (model::TimeRange{10'000'000, 20'000'000}));
    EXPECT_EQ(area->rows, (std::vector<std::string>{"rank 0", "rank 1/stream 7"}));
    EXPECT_EQ(only<SetArea>("set area none").area, std::nullopt);
    EXPECT_EQ(only<SetSize>("set size 1000x700").width, 1000);
    EXPECT_EQ(only<Shot>("shot a.png panel").item, "panel");
    EXPECT_EQ(only<ExportTable>("export table units u.csv").table, "units");
    EXPECT_EQ(only<ExportReport>("export report r.html").file, "r.html");
    EXPECT_EQ(only<ExportReport>("export timeline t.html").what, ExportReport::What::timeline);
    EXPECT_EQ(only<ExportReport>("export visible t.html").what, ExportReport::What::visible_timeline);
    EXPECT_EQ(only<FollowLink>("follow shardscope:1?id=a").text, "shardscope:1?id=a");
    EXPECT_EQ(only<ExportSession>("export session a.shardscope-session").file, "a.shardscope-session");
    only<Quit>("quit");
}

TEST(Script, AnExpectationIsATextOrATest) {
    EXPECT_EQ(only<Expect>("expect units.rows 12").text, "12");
    EXPECT_EQ(only<Expect>("expect a is absent").text, "absent");
    EXPECT_EQ(only<Expect>("expect a 12.5 MiB").text, "12.5 MiB");
    EXPECT_EQ(only<Expect>("expect a absent").test, script::Test::absent);
    EXPECT_EQ(only<Expect>("expect a contains \"b c\"").text, "b c");
    EXPECT_EQ(only<Expect>("expect a matches [0-9]+").test, script::Test::matches);
    const auto about = only<Expect>("expect a ~ 12.5 1%");
    EXPECT_EQ(about.test, script::Test::about);
    EXPECT_EQ(about.tolerance, "1%");
}

TEST(Script, NumbersLinesAsTheFileDoes) {
    const Script script = parse_script("a.script", "# head\n\npanel units\r\n  wait\n");
    ASSERT_EQ(script.commands.size(), 2U);
    EXPECT_EQ(script.commands[0].line, 3U);
    EXPECT_EQ(script.commands[1].line, 4U);
}

TEST(Script, SaysWhereItIsWrongAndWhatIsMeant) {
    EXPECT_EQ(error_of("panel a\nclik b"), "a.script:2: clik: there is no such command; did you mean click?");
    EXPECT_THAT(error_of("click"), HasSubstr("click expects an item's name"));
    EXPECT_THAT(error_of("click a to"), HasSubstr("\"to\" is one word too many"));
    EXPECT_THAT(error_of("drag a left 5"), HasSubstr("not left"));
    EXPECT_THAT(error_of("key Hyper+P"), HasSubstr("no key is called Hyper+P"));
    EXPECT_THAT(error_of("expect a matches ["), HasSubstr("not a regular expression"));
    EXPECT_THAT(error_of("expect a ~ many 1"), HasSubstr("expects a figure"));
    EXPECT_THAT(error_of("expect a ~ 5 -1"), HasSubstr("not a tolerance"));
    EXPECT_THAT(error_of("set limit 5"), HasSubstr("not a time range"));
    EXPECT_THAT(error_of("set limits 5:6"), HasSubstr("did you mean limit"));
    EXPECT_THAT(error_of("set size 5x5"), HasSubstr("not a size"));
    EXPECT_THAT(error_of("set scale 1000"), HasSubstr("from 50 to 300"));
    EXPECT_THAT(error_of("export table a b.txt"), HasSubstr(".csv or .json"));
    EXPECT_THAT(error_of("type"), HasSubstr("expects a text"));
    EXPECT_THAT(error_of("wait soon"), HasSubstr("not soon"));
    EXPECT_THAT(read_script("/nonexistent/a.script").error, HasSubstr("/nonexistent/a.script"));
    EXPECT_THAT(read_script("/").error, HasSubstr("cannot be read"));
}

std::string expect(std::string_view line, const std::optional<std::string>& shown) {
    return mismatch(only<Expect>(line), shown);
}

TEST(Expectation, ComparesTexts) {
    EXPECT_EQ(expect("expect a 12 MiB", "12 MiB"), "");
    EXPECT_EQ(expect("expect a 12 MiB", "13 MiB"), "expected \"12 MiB\", it shows \"13 MiB\"");
    EXPECT_EQ(expect("expect a contains MiB", "13 MiB"), "");
    EXPECT_THAT(expect("expect a contains GiB", "13 MiB"), HasSubstr("13 MiB"));
    EXPECT_EQ(expect("expect a matches \"[0-9]+ MiB\"", "13 MiB"), "");
    EXPECT_NE(expect("expect a matches [0-9]+", "13 MiB"), "");  // the whole text must match
    EXPECT_EQ(expect("expect a 12", std::nullopt), "there is no such item");
    EXPECT_EQ(expect("expect a shown", ""), "");
    EXPECT_EQ(expect("expect a absent", std::nullopt), "");
    EXPECT_NE(expect("expect a absent", "x"), "");
}

TEST(Expectation, ComparesFiguresWithinATolerance) {
    EXPECT_EQ(expect("expect a ~ 12345.6 0.1", "12,345.7"), "");
    EXPECT_NE(expect("expect a ~ 12345.6 0.1", "12,345.8"), "");
    EXPECT_EQ(expect("expect a ~ 100 1%", "101.0 ms"), "");
    EXPECT_NE(expect("expect a ~ 100 1%", "101.1 ms"), "");
    EXPECT_EQ(expect("expect a ~ \"1.5 ms\" 0", "1.5 ms"), "");
    EXPECT_THAT(expect("expect a ~ \"1.5 ms\" 0", "1.5 s"), HasSubstr("in ms"));
    EXPECT_THAT(expect("expect a ~ 1 1", "-"), HasSubstr("is not a number"));
    EXPECT_EQ(parse_figure("-59.3 %")->value, -59.3);
    EXPECT_EQ(parse_figure("+5.2 %")->unit, "%");
    EXPECT_EQ(parse_figure("1.2e-3")->value, 1.2e-3);
    EXPECT_FALSE(parse_figure("units"));
}

TEST(Fuzzy, PrefersBeginningsOfWordsAndLettersInARow) {
    EXPECT_EQ(app::fuzzy_score("xyz", "Execution Summary"), std::nullopt);
    EXPECT_EQ(app::fuzzy_score("mx", "xm"), std::nullopt);  // the order counts
    EXPECT_GT(*app::fuzzy_score("es", "Execution Summary"), *app::fuzzy_score("es", "Compare series"));
    EXPECT_GT(*app::fuzzy_score("mem", "Memory"), *app::fuzzy_score("mem", "Module element"));
    EXPECT_GT(*app::fuzzy_score("fit", "Fit the whole trace"), *app::fuzzy_score("fit", "Profile its units"));
    EXPECT_TRUE(app::fuzzy_score("", "anything"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::script
