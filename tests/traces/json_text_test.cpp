// JSON from and to text, for sources that read little of it.
#include "traces/schema/json_text.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/schema/dumped_groups.h"
#include "traces/store/columns/tensor_sizes.h"

namespace shardscope::traces::schema {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(JsonText, MembersAreInTheirOrderAndStringsAreNotQuoted) {
    const auto members = json_members(R"({"z": "a \"b\"", "a": [[2, 3]], "m": {"k": null}, "n": 1.5})");
    ASSERT_TRUE(members);
    EXPECT_THAT(*members, ElementsAre(Pair("z", "a \"b\""), Pair("a", "[[2,3]]"), Pair("m", R"({"k":null})"),
                                      Pair("n", "1.5")));
    for (const char* text : {"", "[1]", "\"text\"", "{\"cut\": 1"}) EXPECT_FALSE(json_members(text)) << text;
}

TEST(JsonText, AnObjectIsOneLineOfSortedKeys) {
    EXPECT_EQ(object_in_one_line("{\"z\": 1,\n  \"a\": [2,\n 3]}"), R"({"a":[2,3],"z":1})");
    for (const char* text : {"", "{}", "[1]", "{\"cut\": 1"}) EXPECT_EQ(object_in_one_line(text), "") << text;
}

TEST(JsonText, StringsAreReadBack) {
    const std::vector<std::string> strings = {"SELECT \"a\"\n", "", "é"};
    EXPECT_EQ(json_strings(dump_strings(strings)), strings);
    for (const char* text : {"", "{}", "[\"a\", 1]", "[\"cut\""}) EXPECT_FALSE(json_strings(text)) << text;
}

TEST(JsonText, DumpedGroupsAreReadBackAndWhatIsUnlikeThemIsLeftOut) {
    DumpedGroups groups;
    groups["0"] = {"default_pg", {0, 1, 2}, 7, std::nullopt, 6};
    groups["1"] = {};
    const DumpedGroups read = parse_dumped_groups(to_json(groups));
    ASSERT_EQ(read.size(), 2);
    const DumpedGroup& group = read.at("0");
    EXPECT_EQ(group.description, "default_pg");
    EXPECT_THAT(group.ranks, ElementsAre(0, 1, 2));
    EXPECT_EQ(group.enqueued, 7);
    EXPECT_EQ(group.started, std::nullopt);
    EXPECT_EQ(group.completed, 6);

    const DumpedGroups odd =
        parse_dumped_groups(R"({"a": 1, "b": {"description": 2, "ranks": ["x", 4], "enqueued": "7"}})");
    ASSERT_EQ(odd.size(), 1);
    EXPECT_EQ(odd.at("b").description, "");
    EXPECT_THAT(odd.at("b").ranks, ElementsAre(4));
    EXPECT_EQ(odd.at("b").enqueued, std::nullopt);
    EXPECT_THAT(parse_dumped_groups("[1"), IsEmpty());
}

TEST(JsonText, InputsHaveTheDimensionsThatTheirOperatorSays) {
    EXPECT_THAT(
        store::input_dimensions(R"({"Input Dims": [[2, 3], [], [[4], [5]], [6]], "Input type": ["float"]})"),
        ElementsAre(ElementsAre(2, 3), IsEmpty(), IsEmpty(), ElementsAre(6)));
    EXPECT_THAT(store::input_dimensions(R"({"Input Dims": [[2, 3.5], [-1], [2, 99999999999999999999]]})"),
                ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
    for (const char* text : {"", "{}", R"({"Input Dims": 3})"})
        EXPECT_THAT(store::input_dimensions(text), IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::schema
