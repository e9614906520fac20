// SQL as coloured pieces, its completion from the schema, and the place of an error.
#include "viewer/panels/query/sql_text.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Schema kSchema = {
    {"kernels",
     true,
     "Kernels on devices.",
     {{"name", "", "", "Its name."}, {"start_ns", "", "ns", "Its start."}},
     {}},
    {"steps", true, "Steps.", {{"step", "", "", "Its number."}, {"start_ns", "", "ns", ""}}, {}},
    {"ODD TABLE", false, "", {{"end", "INTEGER", "", ""}}, {}},
};

std::string kinds(std::string_view sql) {
    std::string text;
    std::vector<SqlToken> tokens = sql_tokens(sql);
    mark_known(sql, tokens, kSchema);
    for (const SqlToken& token : tokens) {
        constexpr std::string_view kLetters = ".knqt#-:";
        const char letter = kLetters[static_cast<std::size_t>(token.kind)];
        text += fmt::format("{}{}{} ", token.known ? "!" : "", letter,
                            sql.substr(token.from, token.to - token.from));
    }
    return text;
}

TEST(SqlText, NamesKeywordsTextsNumbersAndComments) {
    EXPECT_EQ(kinds("select Name, x.start_ns FROM kernels x -- all"),
              "kselect !nName ., nx .. !nstart_ns kFROM !nkernels nx --- all ");
    EXPECT_EQ(kinds("'it''s' x'0F' \"ODD table\" [end] 1.5e-3 0x1F .5 :top ?1"),
              "t'it''s' tx'0F' !q\"ODD table\" !q[end] #1.5e-3 #0x1F #.5 ::top :?1 ");
    EXPECT_EQ(kinds("1-2 a/*b\nc*/d"), "#1 .- #2 na -/*b\nc*/ nd ");
    EXPECT_EQ(kinds("name(1)"), "nname .( #1 .) ") << "a function is not a column";
}

TEST(SqlText, PiecesWithoutAnEndReachToTheEnd) {
    for (const char* sql : {"'a", "\"a", "[a", "`a", "/* a", "-- a", "x'0", "'a''"}) {
        const std::vector<SqlToken> tokens = sql_tokens(sql);
        ASSERT_EQ(tokens.size(), 1U) << sql;
        EXPECT_EQ(tokens[0].to, std::string_view(sql).size()) << sql;
    }
    EXPECT_THAT(sql_tokens(""), IsEmpty());
    for (int c = 0; c < 256; ++c) EXPECT_LE(sql_tokens(std::string(3, static_cast<char>(c))).size(), 3U) << c;
}

// The completions where `|` stands.
std::vector<std::string> offered(std::string sql) {
    const std::size_t cursor = sql.find('|');
    sql.erase(cursor, 1);
    std::vector<std::string> names;
    for (const Completion& c : complete_sql(sql, cursor, kSchema).items) names.push_back(c.insert);
    return names;
}

TEST(SqlCompletion, OffersTablesAfterFromAndJoin) {
    EXPECT_THAT(offered("SELECT * FROM |"), ElementsAre("kernels", "steps", "\"ODD TABLE\""));
    EXPECT_THAT(offered("SELECT * FROM kernels JOIN ST|"), ElementsAre("steps"));
    EXPECT_THAT(offered("SELECT * FROM ke|x"), ElementsAre("kernels"));
}

TEST(SqlCompletion, OffersColumnsOfTheStatementsTablesFirst) {
    EXPECT_THAT(offered("SELECT | FROM steps"),
                ElementsAre("step", "start_ns", "kernels", "steps", "\"ODD TABLE\""));
    EXPECT_THAT(offered("SELECT st| FROM kernels, steps"), ElementsAre("start_ns", "step", "steps"));
    EXPECT_THAT(offered("SELECT step FROM steps; SELECT na| FROM kernels"), ElementsAre("name"));
    EXPECT_THAT(offered("SELECT n| FROM kernels"), ElementsAre("name", "start_ns", "kernels"))
        << "names that begin with the word come first";
    EXPECT_THAT(offered("SELECT n|"), ElementsAre("name", "start_ns", "kernels"))
        << "of all views, as the statement names no table yet";
}

TEST(SqlCompletion, OffersColumnsOfOneTableAfterADot) {
    EXPECT_THAT(offered("SELECT k.| FROM kernels AS k, steps s"), ElementsAre("name", "start_ns"));
    EXPECT_THAT(offered("SELECT s.st| FROM kernels k JOIN steps s"), ElementsAre("step", "start_ns"));
    EXPECT_THAT(offered("SELECT \"ODD TABLE\".| FROM \"ODD TABLE\""), ElementsAre("\"end\""));
    EXPECT_THAT(offered("SELECT other.|"), IsEmpty());
}

TEST(SqlCompletion, OffersNothingInTextsCommentsAndNumbers) {
    for (const char* sql : {"SELECT 'st|", "SELECT 'st|'", "-- st|", "/* st| */", "SELECT 1|", "SELECT :st|"})
        EXPECT_THAT(offered(sql), IsEmpty()) << sql;
}

TEST(SqlCompletion, SaysWhatANameMeans) {
    const Completions found = complete_sql("SELECT start FROM kernels", 12, kSchema);
    ASSERT_EQ(found.items.size(), 1U);
    EXPECT_EQ(found.items[0].of, "kernels");
    EXPECT_EQ(found.items[0].type, "ns");
    EXPECT_EQ(found.items[0].meaning, "Its start.");
    EXPECT_EQ(found.from, 7U);
    EXPECT_EQ(found.to, 12U);
}

TEST(SqlText, FindsTheTokenAtAPlace) {
    const std::string_view sql = "SELECT missing ";
    const std::vector<SqlToken> tokens = sql_tokens(sql);
    ASSERT_EQ(tokens.size(), 2U);
    EXPECT_EQ(token_at(tokens, 0), &tokens[0]);
    EXPECT_EQ(token_at(tokens, 7), &tokens[1]);
    EXPECT_EQ(token_at(tokens, sql.size()), &tokens[1]);
    EXPECT_EQ(token_at({}, 0), nullptr);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
