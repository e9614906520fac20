// Text that no JSON reader accepts, and damaged text: it is read as far as possible, and the damage is
// reported.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "kineto_text.h"
#include "tests/traces/outcome.h"
#include "traces/import/json/json_scan.h"
#include "traces/import/kineto/event_stream.h"
#include "traces/import/kineto/scalar_values.h"

namespace shardscope::traces::importer {
namespace TEST_FILE {

using ::testing::HasSubstr;

std::string event(const std::string& name, int ts, const std::string& more = "") {
    return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 1, "ts": )" +
           std::to_string(ts) + R"(, "dur": 5)" + more + "}";
}

std::string first_name(const ReadTrace& read) {
    return read.trace->ranges.size() == 0 ? "" : std::string(read.trace->strings[read.trace->ranges.name[0]]);
}

std::string diagnostics(const ReadTrace& read) {
    std::string all;
    for (const schema::DiagnosticRow& row : read.trace->diagnostics) all += row.text + "\n";
    return all;
}

std::string refusal(const std::string& text, const FileRequest& request = {}) {
    return refusal_of([&] { read_text(text, request); });
}

TEST(KinetoOddities, bareWordsInPlaceOfNumbersAreCounted) {
    const auto read = read_text(kineto(
        event("a", 1, R"(, "args": {"bandwidth": N/A, "blocks per SM": inf, "External id": 4})") + "," +
        R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 2, "dur": 1, "args": {"blocks per SM": NaN, "est. achieved occupancy %": Infinity, "device": 0, "stream": 7, "correlation": 1}})"));
    EXPECT_EQ(read.trace->ranges.size(), 1U);
    EXPECT_EQ(read.trace->device.size(), 1U);
    EXPECT_THAT(diagnostics(read), HasSubstr("bare words"));
}

TEST(KinetoOddities, quotesWithinNamesBelongToTheName) {
    // The format that torch.compile with stacks wrote until 2026.
    const auto read =
        read_text(kineto(event(R"json(get("x", "y") of "z")json", 1) + "," + event("after", 10)));
    ASSERT_EQ(read.trace->ranges.size(), 2U);
    EXPECT_EQ(first_name(read), R"json(get("x", "y") of "z")json");
    EXPECT_THAT(diagnostics(read), HasSubstr("6 quotes within texts"));
}

TEST(KinetoOddities, pathsOfWindowsKeepTheirBackslashes) {
    EXPECT_EQ(first_name(read_text(kineto(event(R"(C:\Users\xavier\model.py)", 1)))),
              R"(C:\Users\xavier\model.py)");
}

TEST(KinetoOddities, controlCharactersInNamesAreKept) {
    const auto read = read_text(kineto(event("a\tb\x01", 1)));
    EXPECT_EQ(first_name(read), "a\tb\x01");
    EXPECT_THAT(diagnostics(read), HasSubstr("2 control characters"));
}

TEST(KinetoOddities, bytesThatAreNotUtf8AreReplaced) {
    const auto read = read_text(kineto(event("caf\xE9 \xC3\xA9", 1)));
    EXPECT_EQ(first_name(read), "caf\xEF\xBF\xBD \xC3\xA9");
    EXPECT_THAT(diagnostics(read), HasSubstr("1 bytes that are not UTF-8"));
}

TEST(KinetoOddities, logLinesBeforeTheEventsAreSkipped) {
    const auto read = read_text(kineto(event("a", 1), R"("INFO": ["line "one" {", ]],)"));
    EXPECT_EQ(read.trace->ranges.size(), 1U);
}

TEST(KinetoOddities, jsonThatIsNotATraceIsRefusedAndNamedIfKnown) {
    EXPECT_THAT(refusal(R"({"a":1})"), HasSubstr("there are no traceEvents, only \"a\""));
    EXPECT_THAT(refusal("{}"), HasSubstr("an empty object"));
    EXPECT_THAT(refusal(R"({"traceEvents": 5})"), HasSubstr("traceEvents is not a list"));
    EXPECT_THAT(refusal(R"({"traceEvents": [{"a": 1}, 5]})"), HasSubstr("there are no trace events"));
    EXPECT_THAT(refusal(R"([{"a": 1}, {"b": 2}])"), HasSubstr("there are no trace events"));
    EXPECT_THAT(refusal("[[-1, 1, 512, 7], [-1, 1, 512, 7]]"), HasSubstr("memory timeline"));
    EXPECT_THAT(refusal(R"({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [{"id": 1}]})"),
                HasSubstr("execution trace"));
    EXPECT_THAT(refusal(R"({"rocprofiler-sdk-tool": [{"metadata": {}}]})"), HasSubstr("rocprofv3"));
    EXPECT_THAT(refusal(R"({"a":1})", {.partial = true}), HasSubstr("there are no traceEvents"));
    // A run without any event is a trace.
    EXPECT_EQ(refusal(R"({"traceEvents": []})"), "");
    EXPECT_EQ(refusal("[]"), "");
}

class NoEvents final : public EventHandler {
  public:
    void event(const TraceEvent&) override {}
    void metadata(std::string_view, JsonScalar) override {}
};

std::uint64_t searched_bytes(const std::string& text) {
    Input input = Input::of_memory("made.json", text);
    NoEvents handler;
    return read_event_stream(input, handler, false).searched;
}

TEST(KinetoOddities, theSearchForBatchesIsLinearInListsOfLists) {
    std::string rows = "[";
    for (int i = 0; i < 20'000; ++i) rows += "[-1, 1, 512, 7],";
    rows += "[0, 0, 0, 0]]";
    EXPECT_LT(searched_bytes(rows), 4 * rows.size());
}

TEST(KinetoOddities, theSearchForBatchesIsLinearInManyShortListsOfEvents) {
    std::string lists = "{";
    for (int i = 0; i < 20'000; ++i) {
        lists += R"("traceEvents": [{"ph": "X", "ts": 1}, {"ph": "X", "ts": 2}, {"ph": "X", "ts": 3}],)";
    }
    lists += R"("end": 1})";
    EXPECT_LT(searched_bytes(lists), 40 * lists.size());
}

TEST(KinetoOddities, keysComeInAnyOrderAndMayBeMissing) {
    const auto read = read_text(
        kineto(R"({"args": {"External id": 3}, "dur": 5, "ts": 1, "name": "a", "cat": "cpu_op", "ph": "X"},
{"ph": "X", "ts": 2}, {"ph": "X", "name": "no time"}, {}, null, 7, {"ph": 5})"));
    EXPECT_EQ(read.trace->ranges.size(), 2U);
    EXPECT_EQ(first_name(read), "a");
    EXPECT_THAT(diagnostics(read), HasSubstr("1 event without a readable time was ignored"));
}

// What shardscope_torch.py --fake writes: facts about the run, but not the ranks that our export lists.
TEST(KinetoOddities, aConfigurationWithoutRanksIsKeptAndTheTraceIsPytorchs) {
    const ReadTrace read = read_text(
        kineto(kOneLaunch, R"( "shardscope": {"configuration": {"times": "none"}, "modules": [{"id": 0}]},
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4},)"));
    EXPECT_EQ(read.trace->config_value("times"), "none");
    ASSERT_EQ(read.trace->ranks.size(), 1U);
    EXPECT_EQ(read.trace->ranks[0].number, 3);
    EXPECT_TRUE(read.trace->modules.empty());
    EXPECT_EQ(read.trace->device.size(), 1U);
}

TEST(KinetoOddities, threadsMayBeAnything) {
    std::string events;
    for (const std::string tid :
         {"-5", "\"-5\"", "9223372036854775808", "\"MainThread\"", "18446744073709551615", "5"})
        events += R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": -1, "tid": )" + tid +
                  R"(, "ts": 1, "dur": 1},)";
    const auto read = read_text(kineto(events + event("b", 1)));
    // -5 and "-5" are the same; pid 1's thread is the sixth.
    EXPECT_EQ(read.trace->threads.size(), 6U);
}

TEST(KinetoOddities, idsBeyond53And63BitsStillTieLaunchToWork) {
    std::string events;
    for (const std::string id : {"9007199254740993", "18446744073709551617", "-7", "\"abc\""}) {
        events +=
            R"({"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": )" +
            id + "}},";
        events +=
            R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": )" +
            id + "}},";
    }
    const auto read = read_text(kineto(events + event("b", 1)));
    ASSERT_EQ(read.trace->device.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(read.trace->device.launch[i], static_cast<int>(i));
    // 2^53 and 2^53 + 1 are the same double, but two ids.
    EXPECT_NE(plain_id({JsonKind::number, "9007199254740993"}),
              plain_id({JsonKind::number, "9007199254740992"}));
}

TEST(KinetoOddities, eventsOfTwoHoursAndOfNoTimeAreEvents) {
    const auto read = read_text(kineto(
        R"({"ph": "X", "cat": "cpu_op", "name": "long", "pid": 1, "tid": 1, "ts": 0, "dur": 7200000000},
{"ph": "X", "cat": "cpu_op", "name": "none", "pid": 1, "tid": 1, "ts": 5, "dur": 0})"));
    EXPECT_EQ(read.trace->ranges.end[0], 7'200'000'000'000);
    EXPECT_EQ(read.trace->ranges.end[1], read.trace->ranges.start[1]);
}

TEST(KinetoOddities, namesOf10MegabytesAreNames) {
    const std::string name(10 << 20, 'x');
    const auto read = read_text(kineto(event(name, 1) + "," + event("b", 2)));
    ASSERT_EQ(read.trace->ranges.size(), 2U);
    EXPECT_EQ(first_name(read).size(), name.size());
}

TEST(KinetoOddities, aHundredThousandThreadsAreShownAsFewer) {
    std::string events;
    for (int tid = 0; tid < 100'000; ++tid)
        events += R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":)" + std::to_string(tid) +
                  R"(,"ts":1,"dur":1},)";
    const auto read = read_text(kineto(events + event("b", 1)));
    EXPECT_EQ(read.trace->ranges.size(), 100'001U);
    EXPECT_EQ(read.trace->threads.size(), 60'001U);  // 60,000 and one for all others
    EXPECT_THAT(diagnostics(read), HasSubstr("40,000 threads beyond a trace's limit"));
}

TEST(KinetoOddities, aBrokenEventIsRefusedWithItsPlaceOrLeftOut) {
    const std::string text = kineto(event("a", 1) + ",\n{\"ph\": \"X\" \"name\": 3},\n" + event("b", 2));
    EXPECT_THAT(refusal(text), HasSubstr("made.json at byte " + std::to_string(text.find("\" \"name\": 3"))));
    EXPECT_THAT(refusal(text), HasSubstr("--partial"));
    const auto read = read_text(text, {.partial = true});
    EXPECT_EQ(read.trace->ranges.size(), 2U);
    EXPECT_TRUE(read.facts.partial);
    EXPECT_EQ(read.trace->config_value("import.partial"), "1");
    EXPECT_THAT(diagnostics(read), HasSubstr("1 place could not be read, the first at byte"));
}

TEST(KinetoOddities, aFileThatIsCutAnywhereIsRefusedOrReadToThere) {
    const std::string text = kineto(event("a", 1) + ",\n" + event("b", 2),
                                    R"("deviceProperties": [{"id": 0}],)", R"(, "traceName": "x")");
    const std::size_t whole = text.rfind('}');
    for (std::size_t size = 1; size <= whole; ++size) {
        const std::string cut = text.substr(0, size);
        if (cut.find_first_not_of(" \n") == std::string::npos) continue;
        EXPECT_NE(refusal(cut), "") << size;
        const auto read = read_text(cut, {.partial = true});
        EXPECT_TRUE(read.facts.partial) << size;
        // An event counts once its closing brace is read.
        const std::size_t a = text.find("5}") + 2, b = text.find("5}", a) + 2;
        EXPECT_EQ(read.trace->ranges.size(), size < a ? 0U : size < b ? 1U : 2U) << size;
    }
}

TEST(KinetoOddities, everyByteMayBeChanged) {
#ifdef SHARDSCOPE_SANITIZED
    constexpr std::size_t kEvery = 3;  // the fuzz targets try others
#else
    constexpr std::size_t kEvery = 1;
#endif
    const std::string text = kineto(kOneLaunch, R"("distributedInfo": {"rank": 1},)");
    for (std::size_t at = 0; at < text.size(); at += kEvery) {
        for (const char c : {'"', '{', '}', ']', ',', '\\', '\0', '\xFF', '-'}) {
            std::string changed = text;
            changed[at] = c;
            try {
                read_text(changed, {.partial = at % 2 == 0});
            } catch (const store::StoreError& error) {
                EXPECT_THAT(error.what(), HasSubstr("made.json"));
            }
        }
    }
}

std::string packed(const std::string& text) {
    z_stream z = {};
    EXPECT_EQ(::deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(::deflateBound(&z, text.size()) + 64, '\0');
    std::string in = text;
    z.next_in = reinterpret_cast<Bytef*>(in.data());
    z.avail_in = static_cast<uInt>(in.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(::deflate(&z, Z_FINISH), Z_STREAM_END);
    out.resize(z.total_out);
    ::deflateEnd(&z);
    return out;
}

TEST(KinetoOddities, packedFilesAreUnpackedAlsoInPieces) {
    const std::string text = kineto(kOneLaunch);
    EXPECT_EQ(read_text(packed(text)).trace->device.size(), 1U);
    // Several gzip files may be concatenated (RFC 1952).
    EXPECT_EQ(read_text(packed(text.substr(0, 100)) + packed(text.substr(100))).trace->device.size(), 1U);
}

TEST(KinetoOddities, aTruncatedPackedFileIsReported) {
    std::string events;
    for (int i = 0; i < 20'000; ++i) events += event("op" + std::to_string(i * 7919 % 1000), i) + ",\n";
    std::string whole = packed(kineto(events + event("b", 1)));
    whole.resize(whole.size() / 2);
    EXPECT_THAT(refusal(whole), HasSubstr("ends early"));
    const auto read = read_text(whole, {.partial = true});
    EXPECT_GT(read.trace->ranges.size(), 5'000U);
    EXPECT_TRUE(read.facts.partial);
}

TEST(KinetoOddities, aPackedFileThatGrowsBeyondTheLimitIsRefused) {
    const std::string bomb = packed(kineto(event(std::string(1 << 20, 'x'), 1)));
    Input input = Input::of_memory("bomb.gz", bomb, {.max_bytes = 100'000, .work = {}});
    store::ColumnSink sink;
    try {
        read_chrome_trace(input, sink, {});
        FAIL();
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(), HasSubstr("--max-size"));
    }
}

// This holds even if a generated file has very many devices.
TEST(KinetoOddities, allDevicesOfAFileAreStreamsOfItsRank) {
    constexpr int kDevices = 1000;
    std::string events;
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < kDevices; ++i) {
            events += fmt::format(
                R"({}{{"ph": "X", "cat": "kernel", "name": "k", "pid": {}, "tid": 7, "ts": {}, "dur": 1, "args": {{"device": {}, "stream": 7}}}})",
                events.empty() ? "" : ",", kDevices - i, 10 * (round * kDevices + i), kDevices - i);
        }
    }
    const auto read = read_text(kineto(events));
    ASSERT_EQ(read.trace->ranks.size(), 1U);
    EXPECT_EQ(read.trace->ranks[0].device, kDevices);  // the first device in the file
    const store::DeviceEvents& device = read.trace->device;
    ASSERT_EQ(device.size(), 2U * kDevices);
    ASSERT_EQ(read.trace->streams.size(), static_cast<std::size_t>(kDevices));
    for (int i = 0; i < 2 * kDevices; ++i) {
        const store::DeviceStream& stream = read.trace->streams[device.stream[static_cast<std::size_t>(i)]];
        EXPECT_EQ(stream.id, 1'000'000 * (i % kDevices) + 7);
    }
}

TEST(ScalarValues, decimalsBecomeNanosecondsWithoutADouble) {
    const auto ns = [](std::string_view text) { return parse_us(text, Fraction::decimal); };
    EXPECT_EQ(ns("0"), 0);
    EXPECT_EQ(ns("1.5"), 1'500);
    EXPECT_EQ(ns("1.0005"), 1'001);  // to the nearest, halves away from zero
    EXPECT_EQ(ns("1.00049"), 1'000);
    EXPECT_EQ(ns("-2.25"), -2'250);
    EXPECT_EQ(ns("1.305516305009771e12"), 1'305'516'305'009'771);
    EXPECT_EQ(ns("9223372036854775.807"), 9'223'372'036'854'775'807);
    EXPECT_EQ(ns("9223372036854775.808"), std::nullopt);
    EXPECT_EQ(ns("1623143093496523"), 1'623'143'093'496'523'000);  // since 1970
    EXPECT_EQ(ns("1623143093496523.125"), 1'623'143'093'496'523'125);
    EXPECT_EQ(ns("9223372036854775"), 9'223'372'036'854'775'000);  // the largest complete one
    EXPECT_EQ(ns("9223372036854776"), std::nullopt);
    EXPECT_EQ(ns("999999999999999999"), std::nullopt);
    EXPECT_EQ(ns("1e300"), std::nullopt);
    EXPECT_EQ(ns("1e-300"), 0);
    EXPECT_EQ(ns(""), std::nullopt);
    EXPECT_EQ(ns("."), std::nullopt);
    EXPECT_EQ(ns("1.5us"), std::nullopt);
    EXPECT_EQ(ns("0.0000000000000000000000000000001"), 0);
    EXPECT_EQ(ns("123456789012345678901234567890"), std::nullopt);
}

TEST(ScalarValues, wholeNumbersMayBeWrittenInAnyWay) {
    EXPECT_EQ(parse_integer("7"), 7);
    EXPECT_EQ(parse_integer("7.0"), 7);
    EXPECT_EQ(parse_integer("7e2"), 700);
    EXPECT_EQ(parse_integer("7.5"), std::nullopt);
    EXPECT_EQ(parse_integer("9223372036854775807"), 9'223'372'036'854'775'807);
    EXPECT_EQ(address_of({JsonKind::string, "0x7fc7357f8000"}), 0x7fc7357f8000ULL);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::importer
