// Keys of events: the fast comparison agrees with the plain one, and rejects any other text.
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "tests/traces/kineto_text.h"
#include "traces/import/kineto/trace_event.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

constexpr std::string_view kTexts[] = {"ph",
                                       "cat",
                                       "name",
                                       "pid",
                                       "tid",
                                       "ts",
                                       "dur",
                                       "id",
                                       "args",
                                       "correlation",
                                       "External id",
                                       "external id",
                                       "grid",
                                       "stream",
                                       "bytes",
                                       "Bytes",
                                       "Process Group Name",
                                       "Process Group ID",
                                       "Process Group Description",
                                       "Process Group Ranks",
                                       "Seq",
                                       "est. achieved occupancy %",
                                       "wait_on_cuda_event_record_corr_id",
                                       "Trace name",
                                       "x",
                                       ""};

// The text followed by eight more characters, none of which may matter.
EventKey padded(EventKey (*key)(std::string_view), std::string_view text, char filling) {
    const std::string room = std::string(text) + std::string(8, filling);
    return key(std::string_view(room).substr(0, text.size()));
}

TEST(EventKeys, paddedTextsGiveTheSameKey) {
    for (const std::string_view text : kTexts) {
        for (const char filling : {'\0', '"', 'e', '\xFF'}) {
            EXPECT_EQ(padded(padded_event_key, text, filling), event_key(text)) << text;
            EXPECT_EQ(padded(padded_arg_key, text, filling), arg_key(text)) << text;
        }
    }
    EXPECT_EQ(event_key("ts"), EventKey::ts);
    EXPECT_EQ(arg_key("Process Group ID"), EventKey::group_name);
    EXPECT_EQ(arg_key("est. achieved occupancy %"), EventKey::occupancy);
}

TEST(EventKeys, aKeyThatDiffersInOneCharacterIsAnother) {
    for (std::string text : {"ph", "name", "External id", "Process Group Description"}) {
        for (char& c : text) {
            const char was = std::exchange(c, '!');
            EXPECT_EQ(event_key(text), EventKey::count) << text;
            EXPECT_EQ(arg_key(text), EventKey::count) << text;
            c = was;
        }
        EXPECT_EQ(event_key(text + "s"), EventKey::count) << text;
        EXPECT_EQ(arg_key(text + "s"), EventKey::count) << text;
    }
}

// White space is allowed wherever JSON allows it: around keys, colons and numbers.
TEST(EventKeys, whiteSpaceDoesNotBelongToAKey) {
    const std::string spaced =
        "{ \"ph\"\t:\r\n\"X\" ,\n\"cat\":\"kernel\",\"name\" : \"k\", \"pid\" : 0 , "
        "\"tid\":7\n,\"ts\"\n:\n100\t,"
        "\"dur\" : 40 , \"args\" : { \"stream\" :7 , \"correlation\"\t: 9 } }";
    const std::string plain =
        R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":150,"dur":1,"args":{"stream":7,"correlation":10}})";
    const auto read = read_text(kineto(spaced + "," + plain + "," + spaced));
    const store::DeviceEvents& device = read.trace->device;
    ASSERT_EQ(device.size(), 3u);
    EXPECT_EQ(device.start[0], 0);  // ns; 100 us is where the trace begins
    EXPECT_EQ(device.end[0], 40'000);
    EXPECT_EQ(device.correlation[0] % 100, 9);
    EXPECT_EQ(device.start[2], 50'000);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
