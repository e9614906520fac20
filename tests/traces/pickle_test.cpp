// The reader of pickles: what the opcodes mean, and that a pickle is only read as data.
#include "traces/import/pickle/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "traces/import/pickle/pickle_text.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::string_literals;

ParsedPickle parse(const std::string& bytes, bool partial = false) {
    Input input = Input::of_memory("made.pickle", bytes);
    return parse_pickle(input, {.partial = partial});
}

std::string complaint(const std::string& bytes, bool partial = false) {
    return refusal_of([&] { parse(bytes, partial); });
}

TEST(Pickle, NumbersOfEveryProtocolAreRead) {
    const std::string items =
        "N\x88\x89"s                                     // None, True, False
        "K\xff"s                                         // 255
        "M\x01\x02"s                                     // 1 + 2 * 256 = 513
        "J\xfe\xff\xff\xff"s                             // -2
        "\x8a\x00"s                                      // 0, of no bytes
        "\x8a\x02\x00\x80"s                              // 0x8000 with its sign: -32768
        "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"s  // 2^64 - 1
        "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s      // -2^63
        "I42\nI01\nL-7L\nF1.5\n"s
        "G\x3f\xf8\x00\x00\x00\x00\x00\x00"s;  // 1.5, big-endian
    const ParsedPickle pickle = parse("](" + items + "e.");
    const Value root = pickle.tree.root();
    ASSERT_EQ(root.size(), 15u);
    EXPECT_TRUE(root[0].is_none());
    EXPECT_EQ(root[1].integer(), 1);
    EXPECT_EQ(root[2].integer(), 0);
    EXPECT_EQ(root[3].integer(), 255);
    EXPECT_EQ(root[4].integer(), 513);
    EXPECT_EQ(root[5].integer(), -2);
    EXPECT_EQ(root[6].integer(), 0);
    EXPECT_EQ(root[7].integer(), -32768);
    EXPECT_EQ(root[8].integer(), std::nullopt);  // it does not fit into a signed number
    EXPECT_EQ(root[8].address(), ~std::uint64_t{0});
    EXPECT_EQ(root[9].integer(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(root[10].integer(), 42);
    EXPECT_EQ(root[11].kind(), ValueKind::boolean);
    EXPECT_EQ(root[12].integer(), -7);
    EXPECT_EQ(root[13].real(), 1.5);
    EXPECT_EQ(root[14].real(), 1.5);
}

TEST(Pickle, IntegersBeyond64BitsAreKnownNearly) {
    // 13 bytes, the highest 0x10: 16 * 2^96 = 2^100.
    const ParsedPickle pickle = parse("\x8a\x0d"s + std::string(12, '\0') + "\x10.");
    EXPECT_EQ(pickle.tree.root().integer(), std::nullopt);
    EXPECT_DOUBLE_EQ(*pickle.tree.root().real(), 0x1p100);
    // All bits set but the lowest 8 bytes: -2^64.
    const ParsedPickle negative = parse("\x8a\x09"s + std::string(8, '\0') + "\xff.");
    EXPECT_DOUBLE_EQ(*negative.tree.root().real(), -0x1p64);
}

TEST(Pickle, TextsOfEveryProtocolAreRead) {
    const std::string items =
        "\x8c\x02hi"s                             // SHORT_BINUNICODE
        "X\x02\x00\x00\x00\xc3\xa9"s              // BINUNICODE
        "\x8d\x01\x00\x00\x00\x00\x00\x00\x00z"s  // BINUNICODE8
        "C\x01"
        "b"s                    // SHORT_BINBYTES
        "S'it\\'s\\n\\x41'\n"s  // STRING, quoted
        "V\\u20ac\xe9\n"s;      // UNICODE: the euro sign and Latin-1
    const ParsedPickle pickle = parse("](" + items + "e.");
    const Value root = pickle.tree.root();
    ASSERT_EQ(root.size(), 6u);
    EXPECT_EQ(root[0].text(), "hi");
    EXPECT_EQ(root[1].text(), "é");
    EXPECT_EQ(root[2].text(), "z");
    EXPECT_EQ(root[3].text(), "b");
    EXPECT_EQ(root[4].text(), "it's\nA");
    EXPECT_EQ(root[5].text(), "€é");
}

TEST(Pickle, ContainersNestAndAreSharedThroughTheMemo) {
    // {"a": [1, 2], "b": the same list, "t": (1, (2,))} with BINPUT and BINGET, MEMOIZE after that.
    const ParsedPickle pickle = parse(
        "}(X\x01\0\0\0a]q\x00(K\x01K\x02"
        "eX\x01\0\0\0bh\x00X\x01\0\0\0tK\x01K\x02\x85\x86u."s);
    const Value root = pickle.tree.root();
    ASSERT_TRUE(root.is_dictionary());
    EXPECT_EQ(root.size(), 3u);
    EXPECT_EQ(root["a"][1].integer(), 2);
    EXPECT_EQ(root["a"].ref(), root["b"].ref());
    EXPECT_EQ(root["t"][1][0].integer(), 2);
    EXPECT_TRUE(root["none"].is_none());
    EXPECT_TRUE(root["a"][9].is_none());
    EXPECT_TRUE(root["a"]["key"].is_none());
}

TEST(Pickle, AListMayContainItself) {
    const ParsedPickle pickle = parse(
        "]q\x00h\x00"
        "a."s);
    EXPECT_EQ(pickle.tree.root()[0].ref(), pickle.tree.root().ref());
}

// 64 lists, each contained twice in the next: a traversal finds 2^64 leaves, but the tree takes some hundred
// bytes.
TEST(Pickle, SharedListsAreStoredOnce) {
    std::string bytes = "]";
    for (int i = 0; i < 64; ++i) bytes += "2\x86";
    EXPECT_LT(parse(bytes + ".").tree.memory(), std::size_t{3} << 20);
}

struct Refused {
    std::string bytes, opcode, import;
};

TEST(Pickle, RefusesImportsAndCallsByName) {
    const Refused all[] = {
        {"cos\nsystem\n(S'true'\ntR.", "GLOBAL", "os.system"},
        {"\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL", "os.system"},
        {"(ios\nsystem\n.", "INST", "os.system"},
        {"N)R.", "REDUCE", ""},
        {"N}b.", "BUILD", ""},
        {"(No.", "OBJ", ""},
        {"P1\n.", "PERSID", ""},
        {"NQ.", "BINPERSID", ""},
        {"N)\x81.", "NEWOBJ", ""},
        {"N)}\x92.", "NEWOBJ_EX", ""},
        {"\x82\x01.", "EXT1", ""},
        {"\x83\x01\x01.", "EXT2", ""},
        {"\x84\x01\x01\x01\x01.", "EXT4", ""},
        {"\x97.", "NEXT_BUFFER", ""},
        {"N\x98.", "READONLY_BUFFER", ""},
    };
    for (const Refused& refused : all) {
        // This holds even if incomplete data may be kept: a pickle that tries to execute something is not
        // merely damaged.
        for (const bool partial : {false, true}) {
            EXPECT_THAT(complaint(refused.bytes, partial),
                        AllOf(HasSubstr("made.pickle"), HasSubstr("opcode " + refused.opcode + " would"),
                              HasSubstr(refused.import)));
        }
    }
    // Three bytes precede the opcode: PROTO 2 and NONE.
    EXPECT_THAT(complaint("\x80\x02N"
                          "cos\nsystem\n."),
                HasSubstr("byte 3"));
}

// Objects of listed classes become lists; every other name is refused, and so is all that does more.
TEST(Pickle, ObjectsOfListedClassesAreReadAsLists) {
    constexpr std::string_view kListed[] = {"torch.Size", "a.Box"};
    const auto read = [&](const std::string& bytes) {
        Input input = Input::of_memory("made.pickle", bytes);
        return parse_pickle(input, {.classes = kListed});
    };
    const auto refusal = [&](const std::string& bytes) -> std::string {
        try {
            read(bytes);
        } catch (const store::StoreError& error) {
            return error.what();
        }
        return "";
    };
    const ParsedPickle size = read("ctorch\nSize\n(K\x07K\x05t\x85R.");
    EXPECT_EQ(size.tree.root()[std::size_t{0}].text(), "torch.Size");
    EXPECT_EQ(size.tree.root()[1][std::size_t{0}][1].integer(), 5);
    EXPECT_EQ(size.tree.root().size(), 2U);
    const ParsedPickle box = read(
        "\x8c\x01"
        "a\x8c\x03"
        "Box\x93)\x81}\x8c\x01xK\x03sb.");
    EXPECT_EQ(box.tree.root()[std::size_t{0}].text(), "a.Box");
    EXPECT_EQ(box.tree.root()[2]["x"].integer(), 3);
    const ParsedPickle persistent = read("K\x09Q.");
    EXPECT_EQ(persistent.tree.root()[std::size_t{0}].text(), "persistent");
    EXPECT_EQ(persistent.tree.root()[1].integer(), 9);

    const std::string many = "K\x09" + std::string(1 << 20, 'Q') + ".";
    EXPECT_LT(read(many).tree.memory(), 40 * many.size());

    EXPECT_THAT(refusal("cos\nsystem\n(S'true'\ntR."),
                HasSubstr("import os.system, and a file of this format names"));
    EXPECT_THAT(refusal("\x8c\x02os\x8c\x06system\x93."),
                HasSubstr("import os.system, and a file of this format names"));
    EXPECT_THAT(refusal("ctorch\nSizes\n."), HasSubstr("import torch.Sizes"));
    EXPECT_THAT(refusal("(itorch\nSize\n."), HasSubstr("INST would import torch.Size"));
    EXPECT_THAT(refusal("ctorch\nSize\n)}\x92."), HasSubstr("NEWOBJ_EX"));
    EXPECT_THAT(refusal("ctorch\nSize\n}b."), HasSubstr("gives a state to what is not an object"));
    EXPECT_THAT(refusal("K\x01R."), HasSubstr("stack is empty"));
}

TEST(Pickle, ATruncatedPickleIsReported) {
    const std::string whole =
        pickled::whole(pickled::members({{"a", pickled::list({pickled::integer(1), pickled::text("x")})},
                                         {"b", pickled::tuple({pickled::none()})}}));
    ASSERT_EQ(complaint(whole), "");
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_THAT(complaint(whole.substr(0, size)), HasSubstr("cut off")) << size;
}

TEST(Pickle, TheIntactPartOfATruncatedPickleIsKeptOnDemand) {
    const std::string whole =
        pickled::whole(pickled::members({{"a", pickled::list({pickled::integer(1), pickled::integer(2),
                                                              pickled::integer(std::int64_t{1} << 40)})},
                                         {"b", pickled::none()}}));
    // Cut inside the last number, of 10 bytes, after which 9 bytes follow: "e", the text "b" of 6 bytes, "N",
    // "u", ".".
    const ParsedPickle pickle = parse(whole.substr(0, whole.size() - 10 - 4), true);
    EXPECT_THAT(pickle.damage, HasSubstr("cut off"));
    const Value list = pickle.tree.root()["a"];
    ASSERT_EQ(list.size(), 2u);
    EXPECT_EQ(list[1].integer(), 2);
}

TEST(Pickle, DamageIsReportedWithItsPlace) {
    EXPECT_THAT(complaint("\xff"), AllOf(HasSubstr("byte 0"), HasSubstr("0xff is not an opcode")));
    EXPECT_THAT(complaint("e."), HasSubstr("closes what it has not opened"));
    EXPECT_THAT(complaint("a."), HasSubstr("adds items to nothing"));
    EXPECT_THAT(complaint("NNa."), HasSubstr("not a list or dictionary"));
    EXPECT_THAT(complaint("}(Nu."), HasSubstr("a key without a value"));
    EXPECT_THAT(complaint("."), HasSubstr("the pickle's stack is empty"));
    EXPECT_THAT(complaint("0."), HasSubstr("the pickle's stack is empty"));
    EXPECT_THAT(complaint("h\x05."), HasSubstr("recalls value 5"));
    EXPECT_THAT(complaint("Nr\xff\xff\xff\xff."), HasSubstr("memo index 4294967295"));
    EXPECT_THAT(complaint("I4x\n."), HasSubstr("should be a whole number"));
    EXPECT_THAT(complaint("Sno quotes\n."), HasSubstr("no quotes"));
    EXPECT_THAT(complaint("\x80\x09."), HasSubstr("protocol 9"));
}

TEST(Pickle, AFalseLengthTakesNoMemory) {
    EXPECT_THAT(complaint("\x8d\0\0\0\0\0\0\0\x10"
                          "abc"s),
                HasSubstr("cut off"));  // 2^60 bytes of text
    EXPECT_THAT(complaint("\x8b\xff\xff\xff\x7f"
                          "abc"),
                HasSubstr("cut off"));
    EXPECT_THAT(complaint("\x8b\xff\xff\xff\xff"
                          "abc"),
                HasSubstr("length is negative"));
}

TEST(Pickle, NestingIsBounded) {
    EXPECT_THAT(complaint(std::string(5000, '(')), HasSubstr("deeper than 1000"));
    EXPECT_EQ(complaint(std::string(900, '(') + std::string(900, 't') + "."), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
