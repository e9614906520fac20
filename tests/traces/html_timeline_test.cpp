// The HTML timeline: what is folded and what is not, the bytes of its data, its size, and that no text of a
// trace becomes markup. scripts/html_timeline.sh opens it in a browser.
#include "traces/report/timeline/html_timeline.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "tests/traces/run_builder.h"
#include "traces/report/timeline/folds.h"
#include "traces/report/timeline/packing.h"

namespace shardscope::traces::report {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Items = std::vector<std::pair<std::size_t, std::size_t>>;

lanes::Lane lane_of(const std::vector<std::pair<std::int64_t, std::int64_t>>& events) {
    lanes::Lane lane;
    for (std::size_t i = 0; i < events.size(); ++i)
        lane.add(events[i].first, events[i].second, {store::EventKind::range, static_cast<std::int64_t>(i)},
                 0);
    lane.finish();
    return lane;
}

Items items_of(const lanes::Lane& lane, std::int64_t shorter, analysis::Interval time = {0, 1'000'000'000}) {
    Items items;
    fold_events(lane, shorter, time,
                [&](const TimelineItem& item) { items.emplace_back(item.first, item.last); });
    return items;
}

TEST(Folds, KeepLongEventsAndLongGaps) {
    // Two short ones, a long one, a short one alone, a gap of 10, two short ones.
    const lanes::Lane lane = lane_of({{0, 4}, {5, 8}, {8, 18}, {19, 20}, {30, 31}, {32, 33}});
    EXPECT_EQ(items_of(lane, 10), (Items{{0, 2}, {2, 3}, {3, 4}, {4, 6}}));
    EXPECT_EQ(items_of(lane, 0).size(), 6U) << "0 folds nothing";
    EXPECT_EQ(items_of(lane, 11), (Items{{0, 6}})) << "now the event and the gap of 10 are short, too";
}

TEST(Folds, AreNoWiderThanSixteenTimesTheLimit) {
    std::vector<std::pair<std::int64_t, std::int64_t>> events;
    for (std::int64_t i = 0; i < 400; ++i) events.emplace_back(2 * i, 2 * i + 1);
    for (const auto& [first, last] : items_of(lane_of(events), 5))
        EXPECT_LE(events[last - 1].second - events[first].first, 16 * 5);
    EXPECT_EQ(items_of(lane_of(events), 5).size(), 10U) << "40 events each: 79 ns and the gap behind them";
}

TEST(Folds, HaveOnlyEventsOfTheTime) {
    const lanes::Lane lane = lane_of({{0, 10}, {10, 20}, {20, 30}, {30, 40}});
    EXPECT_EQ(items_of(lane, 0, {10, 25}), (Items{{1, 2}, {2, 3}}));
    EXPECT_EQ(items_of(lane, 100, {10, 25}), (Items{{1, 3}}));
    EXPECT_EQ(items_of(lane_of({{5, 5}}), 0, {5, 6}).size(), 1U) << "a mark at the very start";
}

TEST(Folds, LoseNoEventAndNoTimeAtAnyLimit) {
    std::mt19937 random(7);
    std::vector<std::pair<std::int64_t, std::int64_t>> events;
    std::int64_t time = 0;
    for (int i = 0; i < 3000; ++i) {
        time += random() % 300;
        const std::int64_t length = random() % (i % 10 == 0 ? 5000 : 200);
        events.emplace_back(time, time + length);
        time += length;
    }
    const lanes::Lane lane = lane_of(events);
    std::size_t before = events.size() + 1;
    for (const std::int64_t shorter : {0, 10, 50, 100, 300, 1000, 10'000}) {
        const Items items = items_of(lane, shorter);
        std::size_t next = 0;
        for (const auto& [first, last] : items) {
            EXPECT_EQ(first, next);
            next = last;
            for (std::size_t i = first; last - first > 1 && i < last; ++i) EXPECT_LT(lane.length(i), shorter);
        }
        EXPECT_EQ(next, events.size());
        EXPECT_LE(items.size(), before);
        before = items.size();
    }
}

std::string base64_decoded(const std::string& text) {
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const std::size_t digit = digits.find(c);
        if (digit == std::string::npos) break;
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xFF);
    }
    return bytes;
}

std::string inflated(const std::string& packed) {
    std::string bytes(std::size_t{64} << 20, '\0');
    uLongf length = bytes.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length,
                         reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
              Z_OK);
    bytes.resize(length);
    return bytes;
}

// What the page's script reads.
class Data {
  public:
    explicit Data(const std::string& html) {
        const std::string before = "<script id=\"data\" type=\"text/plain\">";
        const std::size_t from = html.find(before) + before.size();
        bytes_ = inflated(base64_decoded(html.substr(from, html.find('<', from) - from)));
        head = nlohmann::json::parse(block());
        for (auto* column : {&gap, &length, &look, &events, &busy}) *column = numbers();
        EXPECT_EQ(at_, bytes_.size());
    }
    nlohmann::json head;
    std::vector<std::uint64_t> gap, length, look, events, busy;

  private:
    std::size_t count() {
        std::size_t value = 0;
        for (std::size_t byte = 0; byte < 4; ++byte)
            value |= std::size_t{static_cast<unsigned char>(bytes_.at(at_++))} << 8 * byte;
        return value;
    }
    std::string block() {
        const std::size_t size = count();
        at_ += size;
        return bytes_.substr(at_ - size, size);
    }
    std::vector<std::uint64_t> numbers() {
        std::vector<std::string> planes(count());
        for (std::string& plane : planes) plane = block();
        std::vector<std::size_t> next(planes.size());
        std::vector<std::uint64_t> all;
        for (std::size_t i = 0; !planes.empty() && i < planes[0].size(); ++i) {
            std::uint64_t value = 0;
            unsigned char digit = 0x80;
            for (std::size_t plane = 0; (digit & 0x80) != 0; ++plane) {
                digit = static_cast<unsigned char>(planes[plane].at(next[plane]++));
                value |= std::uint64_t{digit & 0x7FU} << 7 * plane;
            }
            all.push_back(value);
        }
        return all;
    }
    std::string bytes_;
    std::size_t at_ = 0;
};

TEST(Packing, EncodesAsTheStandardsSay) {
    for (const auto& [text, encoded] : {std::pair<const char*, const char*>{"", ""},
                                        {"f", "Zg=="},
                                        {"fo", "Zm8="},
                                        {"foo", "Zm9v"},
                                        {"foobar", "Zm9vYmFy"}})
        EXPECT_EQ(base64(text), encoded) << "RFC 4648, section 10";
    const std::string text(3'000'000, 'x');
    EXPECT_EQ(inflated(compressed(text, 1 << 20).value_or("")), text);
    EXPECT_EQ(compressed(text, 100), std::nullopt);
    EXPECT_EQ(inflated(compressed("", 100).value_or("")), "");
}

TEST(Packing, PutsTheDigitsOfNumbersIntoPlanes) {
    NumberColumn column;
    for (const std::uint64_t number : {5ULL, 0ULL, 300ULL}) column.add(number);  // 300 = 2 * 128 + 44
    EXPECT_EQ(column.bytes(), std::string("\2\0\0\0\3\0\0\0\5\0\xAC\1\0\0\0\2", 16));
    EXPECT_EQ(NumberColumn().bytes(), std::string(4, '\0'));
}

constexpr std::string_view kHostile[] = {"</script><img src=x onerror=\"document.title='owned'\">",
                                         "<!--<script>",
                                         "'; DROP TABLE StringIds; --",
                                         "a\xE2\x80\xA8\"quoted\"\\",
                                         "bad \xFF\xC3( bytes",
                                         "${owned}`]]>&amp;"};

TEST(HtmlTimeline, EscapesEveryNameOfATrace) {
    RunBuilder run(1);
    run.sink().add(schema::ModuleRow{
        .id = 0, .name = std::string(kHostile[0]), .class_name = "c", .path = std::string(kHostile[0])});
    run.sink().add(schema::UnitRow{.id = 0, .module = 0, .name = std::string(kHostile[1]), .bytes = 4096});
    std::int64_t time = 0;
    for (const std::string_view name : kHostile) {
        run.range(0, time, time + 50, name, 0);
        run.kernel(0, time, time + 50, {}, 7, name);
        run.sink().add(
            schema::CounterRow{.time = time, .rank = 0, .name = run.sink().intern(name), .value = 1});
        time += 100;
    }
    run.collective(0, time, time + 10, {.bytes = 4096, .unit = 0});
    const auto trace = run.take();
    const TimelinePage page =
        html_timeline(*trace, "/tmp/<b>\"'&.sqlite", {}, {.title = std::string(kHostile[0])});
    for (const std::string_view name : kHostile) EXPECT_THAT(page.html, Not(HasSubstr(std::string(name))));
    EXPECT_THAT(page.html, Not(HasSubstr("<img")));
    EXPECT_THAT(page.html, HasSubstr("<title>&lt;/script&gt;&lt;img"));
    EXPECT_THAT(html_timeline(*trace, "/tmp/<b>\"'&.sqlite", {}).html,
                HasSubstr("<h1>&lt;b&gt;&quot;&#39;&amp;.sqlite</h1>"));
    EXPECT_THAT(page.html, Not(HasSubstr("http:")));
    EXPECT_THAT(page.html, HasSubstr("default-src 'none'"));
    const Data data(page.html);
    std::vector<std::string> names = data.head["names"];
    EXPECT_THAT(names, ::testing::Contains(kHostile[0]));
    EXPECT_THAT(names, ::testing::Contains(kHostile[2]));
    EXPECT_THAT(names, ::testing::Contains("bad \xEF\xBF\xBD\xEF\xBF\xBD( bytes"))
        << "U+FFFD for a byte that is not UTF-8";
    EXPECT_EQ(data.head["modules"][0], kHostile[0]);
    EXPECT_EQ(data.head["units"][0], kHostile[1]);
    EXPECT_EQ(data.head["curves"].size(), std::size(kHostile));
}

TEST(HtmlTimeline, HasEveryEventWithItsFields) {
    RunBuilder run(2);
    run.step(1, 3, 1'000, 9'000);
    run.range(1, 1'000, 9'000, "outer");
    run.range(1, 2'000, 4'000, "inner");
    run.memcpy(1, 5'000, 6'500);
    run.allocate(1, 1'500, 0x1000, 1 << 20);
    run.allocate(1, 2'500, 0x2000, 2 << 20);
    run.free(1, 3'500, 0x2000, 2 << 20);
    const auto trace = run.take();
    const TimelinePage page = html_timeline(*trace, "run.sqlite", {.rank = 1});
    EXPECT_EQ(page.events, 3);
    EXPECT_EQ(page.folded, 0);
    EXPECT_EQ(page.sentence, "Every event is shown: nothing is folded.");
    const Data data(page.html);
    ASSERT_EQ(data.head["groups"].size(), 1U);
    EXPECT_EQ(data.head["groups"][0]["rank"], 1);
    EXPECT_EQ(data.head["groups"][0]["steps"]["number"], nlohmann::json({3}));
    ASSERT_EQ(data.head["rows"].size(), 2U) << "a stream and a thread of two lines";
    EXPECT_EQ(data.head["rows"][0]["lanes"], nlohmann::json({1}));
    EXPECT_EQ(data.head["rows"][1]["lanes"], nlohmann::json({1, 1}));
    const std::uint64_t base = data.head["base"];
    EXPECT_EQ(base, 1'000U);
    EXPECT_THAT(data.gap, ElementsAre(4'000, 0, 1'000)) << "from 1,000, the first start";
    EXPECT_THAT(data.length, ElementsAre(1'500, 8'000, 2'000));
    EXPECT_TRUE(data.events.empty());
    const auto text_of = [&](std::size_t item) {
        const std::size_t fields = data.look[item] - data.head["paints"].size();
        const std::size_t name = data.head["looks"]["name"][fields];
        return std::string(data.head["names"][name]);
    };
    EXPECT_EQ(text_of(1), "outer");
    EXPECT_EQ(text_of(2), "inner");
    ASSERT_EQ(data.head["curves"].size(), 1U);
    const nlohmann::json& memory = data.head["curves"][0];
    EXPECT_EQ(memory["times"], nlohmann::json({500, 1000, 1000})) << "each since the one before";
    EXPECT_EQ(memory["highest"], nlohmann::json({1 << 20, 3 << 20, 1 << 20}));
    EXPECT_EQ(memory["lowest"], memory["highest"]);
}

// 30,000 events of irregular lengths on each of two ranks.
std::unique_ptr<store::Trace> many_events() {
    RunBuilder run(2);
    std::mt19937 random(3);
    for (int rank = 0; rank < 2; ++rank) {
        std::int64_t time = 0;
        for (int i = 0; i < 30'000; ++i) {
            time += random() % 1000;
            const std::int64_t length = i % 100 == 0 ? 50'000 : random() % 2000;
            run.range(rank, time, time + length, i % 2 == 0 ? "even" : "odd");
            time += length;
            if (i % 3 == 0)
                run.allocate(rank, time, 0x1000 + static_cast<std::uint64_t>(i), 1000 + random() % 1000);
        }
    }
    return run.take();
}

TEST(HtmlTimeline, FoldsTheShortestEventsUntilItFits) {
    const auto trace = many_events();
    std::int64_t total = 0;
    for (std::size_t i = 0; i < trace->ranges.size(); ++i)
        total += trace->ranges.end[i] - trace->ranges.start[i];
    std::int64_t folded_before = 0;
    for (const std::uint64_t most : {std::uint64_t{1} << 20, std::uint64_t{300'000}, std::uint64_t{90'000}}) {
        const TimelinePage page = html_timeline(*trace, "run.sqlite", {}, {.title = "", .most_bytes = most});
        EXPECT_LE(page.html.size(), most);
        EXPECT_EQ(page.events, 60'000);
        EXPECT_GE(page.folded, folded_before) << "the smaller, the more is folded";
        folded_before = page.folded;
        const Data data(page.html);
        const std::size_t kinds = data.head["paints"].size();
        std::uint64_t events = 0, busy = 0, folds = 0;
        for (std::size_t i = 0; i < data.look.size(); ++i) {
            const bool fold = data.look[i] < kinds;
            events += fold ? data.events[folds] : 1;
            busy += fold ? data.busy[folds++] : data.length[i];
        }
        EXPECT_EQ(events, 60'000U);
        EXPECT_EQ(busy, static_cast<std::uint64_t>(total)) << "no time is lost or made up";
        EXPECT_EQ(folds, static_cast<std::uint64_t>(page.folds));
        std::uint64_t by_name = 0;
        for (const std::uint64_t count : data.head["counts"]) by_name += count;
        EXPECT_EQ(by_name, 60'000U) << "also of names whose events are all folded";
        if (page.folds == 0) continue;
        EXPECT_THAT(page.html, HasSubstr("of 60,000 events, each shorter than "));
        EXPECT_THAT(page.html, HasSubstr("Values of memory and counters less than "));
        // The highest memory of all is not lost.
        std::int64_t highest = 0;
        for (const std::int64_t value : data.head["curves"][0]["highest"]) highest = std::max(highest, value);
        const std::int64_t first = data.head["curves"][0]["lowest"][0];
        EXPECT_GT(highest, 10'000 * 1000) << "nothing is freed";
        EXPECT_LT(first, 20'000);
    }
}

std::string refusal(const store::Trace& trace, const analysis::Selection& selection,
                    const TimelineOptions& options) {
    try {
        html_timeline(trace, "run.sqlite", selection, options);
        return "accepted";
    } catch (const NoTimeline& error) {
        return error.what();
    }
}

TEST(HtmlTimeline, SaysWhyThereIsNone) {
    const auto trace = many_events();
    EXPECT_EQ(refusal(*trace, {}, {.title = "", .most_bytes = 10'000}),
              "run.sqlite: 10,000 bytes are too few for a timeline of 2 rows; allow more, or select ranks, "
              "steps or a "
              "range.");
    RunBuilder run(1);
    run.range(0, 100, 200, "work");
    EXPECT_EQ(refusal(*run.take(), {.from_ns = 300, .to_ns = 400}, {}),
              "run.sqlite: the selected time contains no event, so there is no timeline.");
}

TEST(HtmlTimeline, ShowsTheSelectedSteps) {
    RunBuilder run(1);
    for (int s = 0; s < 4; ++s) {
        run.step(0, s, 1'000 * s, 1'000 * (s + 1));
        run.range(0, 1'000 * s + 100, 1'000 * s + 900, "work");
    }
    const auto trace = run.take();
    const TimelinePage page = html_timeline(*trace, "run.sqlite", {.first_step = 1, .last_step = 2});
    const Data data(page.html);
    EXPECT_EQ(data.head["from"], 1'000);
    EXPECT_EQ(data.head["to"], 3'000);
    EXPECT_EQ(data.head["groups"][0]["steps"]["number"], nlohmann::json({1, 2}));
    EXPECT_EQ(page.events, 2);
    EXPECT_THAT(page.html, HasSubstr("Of this run only steps 1 to 2."));
}

TEST(HtmlTimeline, RedactsPathsAndMachines) {
    RunBuilder run(1);
    run.range(0, 100, 200, "/home/ada/train.py(12): forward");
    const auto trace = run.take();
    const auto name = [&](bool redact) {
        return std::string(Data(html_timeline(*trace, "run.sqlite", {}, {.title = "", .redact = redact}).html)
                               .head["names"][0]);
    };
    EXPECT_EQ(name(false), "/home/ada/train.py(12): forward");
    EXPECT_EQ(name(true), "…(12): forward");

    RunBuilder counted(1);
    counted.sink().add(schema::CounterRow{.time = 150,
                                          .rank = -1,
                                          .name = counted.sink().intern("host_cpu_cores"),
                                          .value = 2,
                                          .host = counted.sink().intern("node-of-ada")});
    counted.range(0, 100, 200, "step");
    const auto with_host = counted.take();
    const auto head = [&](bool redact) {
        return Data(html_timeline(*with_host, "run.sqlite", {}, {.title = "", .redact = redact}).html)
            .head.dump();
    };
    EXPECT_THAT(head(false), HasSubstr("node-of-ada"));
    EXPECT_THAT(head(true), Not(HasSubstr("node-of-ada")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::report
