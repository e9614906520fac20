// PyTorch's flight recorder dumps: how they are read, and which rank has stopped.
#include "traces/analysis/communication/flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "traces/import/input/importer.h"
#include "traces/import/pickle/pickle_text.h"
#include "traces/report/report.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/error.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using pickled::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kStart = 1'700'000'000'000'000'000;  // ns

struct MadeEntry {
    std::int64_t sequence = 1;
    const char* name = "nccl:all_reduce";
    const char* state = "completed";
    std::int64_t elements = 4;
    const char* type = "Float";
    const char* group = "0";
    bool point_to_point = false;
    int line = 10;  // the line in train.py
};

Bytes entry(std::int64_t id, const MadeEntry& e) {
    const Bytes sizes = pickled::list({pickled::list({pickled::integer(e.elements), pickled::integer(2)})});
    const Bytes types = pickled::list({pickled::text(e.type)});
    const bool complete = std::string_view(e.state) == "completed";
    return pickled::members(
        {{"record_id", pickled::integer(id)},
         {"pg_id", pickled::integer(7)},  // of the communicator: differs from the group's name
         {"process_group", pickled::tuple({pickled::text(e.group), pickled::text("data_parallel")})},
         {"collective_seq_id", pickled::integer(e.point_to_point ? 0 : e.sequence)},
         {"p2p_seq_id", pickled::integer(e.point_to_point ? e.sequence : 0)},
         {"op_id", pickled::integer(e.sequence)},
         {"profiling_name", pickled::text(e.name)},
         {"time_created_ns", pickled::integer(kStart + 1000 * id)},
         {"input_sizes", sizes},
         {"input_dtypes", types},
         {"output_sizes", sizes},
         {"output_dtypes", types},
         {"state", pickled::text(e.state)},
         {"time_discovered_started_ns", pickled::none()},
         {"time_discovered_completed_ns",
          complete ? pickled::integer(kStart + 1000 * id + 500) : pickled::none()},
         {"retired", pickled::boolean(complete)},
         {"timeout_ms", pickled::integer(600000)},
         {"is_p2p", pickled::boolean(e.point_to_point)},
         {"frames", pickled::list({pickled::members({{"name", pickled::text("all_reduce")},
                                                     {"filename", pickled::text("/x/torch/distributed/c.py")},
                                                     {"line", pickled::integer(5)}}),
                                   pickled::members({{"name", pickled::text("step")},
                                                     {"filename", pickled::text("train.py")},
                                                     {"line", pickled::integer(e.line)}})})}});
}

using Groups = std::vector<std::pair<std::string_view, const char*>>;  // name, ranks

Bytes dump(const std::vector<MadeEntry>& entries, const Groups& groups) {
    std::vector<Bytes> all;
    for (std::size_t i = 0; i < entries.size(); ++i)
        all.push_back(entry(static_cast<std::int64_t>(i), entries[i]));
    std::vector<std::pair<std::string_view, Bytes>> config;
    for (const auto& [name, ranks] : groups) {
        config.emplace_back(name, pickled::members({{"name", pickled::text(name)},
                                                    {"desc", pickled::text("data_parallel")},
                                                    {"ranks", pickled::text(ranks)}}));
    }
    return pickled::whole(pickled::members({{"version", pickled::text("2.4")},
                                            {"pg_config", pickled::members(config)},
                                            {"entries", pickled::list(all)}}));
}

// The dumps of ranks 0, 1 ... joined.
std::unique_ptr<store::Trace> load(const std::vector<Bytes>& dumps) {
    store::ColumnSink sink;
    for (std::size_t rank = 0; rank < dumps.size(); ++rank) {
        importer::Input input =
            importer::Input::of_memory("nccl_trace_rank_" + std::to_string(rank), dumps[rank]);
        read_pickle(input, sink, {.rank = static_cast<int>(rank), .one_of_several = true});
    }
    return sink.take();
}

std::vector<int> ranks(const std::vector<FlightPlace>& places) {
    std::vector<int> result;
    result.reserve(places.size());
    for (const FlightPlace& p : places) result.push_back(p.rank);
    return result;
}

TEST(FlightRecorder, AnEntryBecomesARowWithItsBytesAndTimes) {
    const auto trace =
        load({dump({{.sequence = 3, .name = "nccl:_all_gather_base", .elements = 8, .type = "BFloat16"}},
                   {{"0", "[0, 1]"}})});
    ASSERT_EQ(trace->flight.size(), 1u);
    const schema::FlightRow& row = trace->flight[0];
    EXPECT_EQ(row.operation, schema::Operation::all_gather);
    EXPECT_EQ(row.sequence, 3);
    EXPECT_EQ(row.group_size, 2);
    EXPECT_EQ(trace->strings[row.group], "0");
    EXPECT_EQ(trace->strings[row.group_description], "data_parallel");
    EXPECT_EQ(row.input_bytes, 8 * 2 * 2);  // 8 x 2 elements of 2 bytes
    EXPECT_EQ(trace->strings[row.sizes], "[[8, 2]] -> [[8, 2]]");
    EXPECT_EQ(trace->strings[row.data_type], "BFloat16");
    EXPECT_EQ(row.state, schema::FlightState::completed);
    EXPECT_EQ(row.created, 0);
    EXPECT_EQ(row.started, std::nullopt);
    EXPECT_EQ(row.completed, 500);
    EXPECT_EQ(row.timeout_ms, 600000);
    EXPECT_EQ(trace->strings[row.stack], "/x/torch/distributed/c.py:5 all_reduce\ntrain.py:10 step");
}

// 1,000 entries that refer to the sizes of the first again (BINPUT, BINGET): 262,144 numbers each in 600 KB.
TEST(FlightRecorder, ListsThatAreSharedInManyPlacesAreRefused) {
    const std::vector<Bytes> dimensions(64, pickled::integer(1));
    const Bytes shape = pickled::list(dimensions) + "q\x01", again = "h\x01";
    std::vector<Bytes> shapes(4096, again);
    shapes[0] = shape;
    const auto entry_with = [](const Bytes& sizes) {
        return pickled::members(
            {{"profiling_name", pickled::text("nccl:all_reduce")}, {"input_sizes", sizes}});
    };
    std::vector<Bytes> entries(1000, entry_with("h\x02"));
    entries[0] = entry_with(pickled::list(shapes) + "q\x02");
    const auto dump_of = [](const std::vector<Bytes>& all) {
        return pickled::whole(
            pickled::members({{"version", pickled::text("2.4")}, {"entries", pickled::list(all)}}));
    };
    try {
        load({dump_of(entries)});
        ADD_FAILURE() << "read";
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(), HasSubstr("many collectives or groups share one list"));
    }
    EXPECT_EQ(load({dump_of({entry_with(pickled::list({shape, again, again}))})})->flight.size(), 1u);
}

TEST(FlightRecorder, ThePairOfDumpsNamesTheRankThatStopped) {
    // Both completed 1; rank 0 arrived at 2 and waits; rank 1 never did.
    const Groups groups = {{"0", "[0, 1]"}};
    const auto trace = load({dump({{.sequence = 1}, {.sequence = 2, .state = "started", .line = 20}}, groups),
                             dump({{.sequence = 1}}, groups)});
    const FlightReport report = flight_report(*trace);
    ASSERT_EQ(report.groups.size(), 1u);
    const FlightGroup& group = report.groups[0];
    EXPECT_TRUE(group.stopped);
    EXPECT_EQ(group.completed_everywhere, 1);
    EXPECT_EQ(group.stop.sequence, 2);
    EXPECT_THAT(ranks(group.stop.missing), ElementsAre(1));
    EXPECT_THAT(ranks(group.stop.waiting), ElementsAre(0));
    EXPECT_EQ(group.stop.missing[0].sequence, 1);  // its most recent collective
    EXPECT_THAT(
        report.verdict,
        ElementsAre("Rank 1 never reached collective 2 (all_reduce) of group 0 (data_parallel); rank 0 "
                    "waited there."));
    EXPECT_THAT(render(report, report::Format::table), HasSubstr("train.py:20 step"));
}

TEST(FlightRecorder, ARankThatWaitsInAnotherGroupIsNotBlamed) {
    // Ranks 0 and 1 are group a, 1 and 2 group b; rank 0 waits in a for 1, which waits in b for 2.
    const auto trace =
        load({dump({{.sequence = 4, .state = "scheduled", .group = "a"}}, {{"a", "[0, 1]"}}),
              dump({{.sequence = 3, .group = "a"}, {.sequence = 9, .state = "started", .group = "b"}},
                   {{"a", "[0, 1]"}, {"b", "[1, 2]"}}),
              dump({{.sequence = 8, .group = "b"}}, {{"b", "[1, 2]"}})});
    const FlightReport report = flight_report(*trace);
    ASSERT_EQ(report.verdict.size(), 2u);
    EXPECT_THAT(report.verdict[0], HasSubstr("Rank 2 never reached collective 9 (all_reduce) of group b"));
    EXPECT_THAT(report.verdict[1], HasSubstr("Rank 1 did not reach collective 4"));
    EXPECT_THAT(report.verdict[1], HasSubstr("it waits in group b"));
}

TEST(FlightRecorder, ARankWithoutAnyRecordOfTheGroupIsMissed) {
    const Groups groups = {{"0", "[0, 1, 2]"}};
    const auto trace = load({dump({{.sequence = 1, .state = "scheduled"}}, groups), dump({}, groups)});
    const FlightReport report = flight_report(*trace);
    EXPECT_THAT(ranks(report.groups.at(0).stop.missing), ElementsAre(1));
    EXPECT_THAT(report.groups[0].without_dump, ElementsAre(2));
}

TEST(FlightRecorder, EntriesThatTheRingBufferLostWereCompleted) {
    const Groups groups = {{"0", "[0, 1]"}};
    const auto trace = load({dump({{.sequence = 1}, {.sequence = 2}, {.sequence = 3}}, groups),
                             dump({{.sequence = 3}}, groups)});  // collectives 1 and 2 are overwritten
    const FlightReport report = flight_report(*trace);
    EXPECT_FALSE(report.groups.at(0).stopped);
    EXPECT_EQ(report.groups[0].completed_everywhere, 3);
    EXPECT_TRUE(report.verdict.empty());
}

TEST(FlightRecorder, DisagreementsAreNamed) {
    const Groups groups = {{"0", "[0, 1, 2]"}};
    const auto with = [&](const MadeEntry& second) {
        return dump({{.sequence = 1}, second, {.sequence = 3}}, groups);
    };
    const MadeEntry same = {.sequence = 2};
    const auto mismatch = [&](const MadeEntry& other) {
        const auto trace = load({with(same), with(same), with(other)});
        return flight_report(*trace).groups.at(0).mismatches.at(0);
    };
    const FlightMismatch operation = mismatch({.sequence = 2, .name = "nccl:broadcast"});
    EXPECT_EQ(operation.what, "operation");
    EXPECT_EQ(operation.sequence, 2);
    ASSERT_EQ(operation.variants.size(), 2u);
    EXPECT_THAT(operation.variants[0].ranks, ElementsAre(0, 1));
    EXPECT_EQ(operation.variants[1].text, "broadcast");
    EXPECT_THAT(operation.variants[1].ranks, ElementsAre(2));
    EXPECT_EQ(mismatch({.sequence = 2, .elements = 5}).what, "size");
    EXPECT_EQ(mismatch({.sequence = 2, .type = "Half"}).what, "type");
    // Ranks of an all-to-all may contribute different sizes.
    const MadeEntry even = {.sequence = 2, .name = "nccl:all_to_all"},
                    odd = {.sequence = 2, .name = "nccl:all_to_all", .elements = 9};
    EXPECT_TRUE(flight_report(*load({with(even), with(even), with(odd)})).groups.at(0).mismatches.empty());
}

TEST(FlightRecorder, ACollectiveThatAllReachedAndNoneCompletedIsReported) {
    const Groups groups = {{"0", "[0, 1]"}};
    const MadeEntry stuck = {.sequence = 1, .state = "started"};
    const FlightReport report = flight_report(*load({dump({stuck}, groups), dump({stuck}, groups)}));
    EXPECT_THAT(report.verdict,
                ElementsAre("All ranks reached collective 1 (all_reduce) of group 0 (data_parallel), "
                            "and it did not complete on ranks 0, 1."));
}

TEST(FlightRecorder, SendsAndReceivesThatHangAreListed) {
    const auto trace =
        load({dump({{.sequence = 5, .name = "nccl:send 0->1", .state = "started", .point_to_point = true}},
                   {{"0", "[0, 1]"}})});
    const FlightGroup group = flight_report(*trace).groups.at(0);
    EXPECT_FALSE(group.stopped);
    ASSERT_EQ(group.pending.size(), 1u);
    EXPECT_EQ(group.pending[0].operation, schema::Operation::send);
    EXPECT_EQ(group.pending[0].sequence, 5);
}

TEST(FlightRecorder, ASelectionNarrowsIt) {
    const auto trace =
        load({dump({{.sequence = 1, .group = "a"}}, {{"a", "[0]"}}),
              dump({{.sequence = 1, .group = "b"}, {.sequence = 2, .state = "started", .group = "b"}},
                   {{"b", "[1]"}})});
    EXPECT_EQ(flight_report(*trace).groups.size(), 2u);
    const FlightReport first = flight_report(*trace, {.rank = 0});
    ASSERT_EQ(first.groups.size(), 1u);
    EXPECT_EQ(first.groups[0].name, "a");
    // The second entry was created 1000 ns after the first.
    EXPECT_FALSE(flight_report(*trace, {.rank = 1, .to_ns = 1000}).groups.at(0).stopped);
    EXPECT_TRUE(flight_report(*trace, {.rank = 1, .to_ns = 1001}).groups.at(0).stopped);
}

TEST(FlightRecorder, OlderDumpsAndJsonAreReadToo) {
    // Version 1.1: one sequence number, no group names. The oldest dumps are a list of entries.
    const Bytes old = pickled::whole(pickled::list(
        {pickled::members({{"pg_id", pickled::integer(0)},
                           {"seq_id", pickled::integer(12)},
                           {"profiling_name", pickled::text("nccl:_reduce_scatter_base")},
                           {"input_sizes", pickled::list({pickled::list({pickled::integer(3)})})},
                           {"output_sizes", pickled::list({pickled::list({pickled::integer(1)})})},
                           {"state", pickled::text("scheduled")}})}));
    const auto trace = load({old});
    ASSERT_EQ(trace->flight.size(), 1u);
    EXPECT_EQ(trace->flight[0].sequence, 12);
    EXPECT_EQ(trace->flight[0].operation, schema::Operation::reduce_scatter);
    EXPECT_EQ(trace->flight[0].input_bytes, -1);  // no types, no bytes

    const std::string json = R"({"version":"2.5","pg_config":{"0":{"desc":"default_pg","ranks":"[0, 1]"}},
        "pg_status":{"0":{"last_enqueued_collective":2,"last_completed_collective":1}},"rank":1,
        "entries":[{"process_group":["0","default_pg"],"pg_id":0,"collective_seq_id":2,"profiling_name":"nccl:all_reduce",
        "input_sizes":[[3,4]],"input_dtypes":["Float"],"output_sizes":[[3,4]],"output_dtypes":["Float"],
        "state":"started","time_created_ns":1700000000000000000,"is_p2p":false}]})";
    importer::Input input = importer::Input::of_memory("dump.json", json);
    store::ColumnSink sink;
    EXPECT_EQ(read_flight_json(input, sink, {.rank = 1}).rank, 1);
    const auto from_json = sink.take();
    ASSERT_EQ(from_json->flight.size(), 1u);
    EXPECT_EQ(from_json->flight[0].input_bytes, 3 * 4 * 4);
    EXPECT_EQ(from_json->flight[0].state, schema::FlightState::started);
    EXPECT_EQ(from_json->start_utc_ns, 0);  // the caller sets it from the facts

    importer::Input damaged = importer::Input::of_memory("dump.json", R"({"entries":[{"state")");
    store::ColumnSink none;
    EXPECT_THROW(read_flight_json(damaged, none, {}), store::StoreError);
}

TEST(FlightRecorder, EveryFormatHasTheSameContent) {
    const Groups groups = {{"0", "[0, 1]"}};
    const FlightReport report =
        flight_report(*load({dump({{.sequence = 1, .state = "started"}}, groups), dump({}, groups)}));
    const auto json = nlohmann::json::parse(render(report, report::Format::json));
    EXPECT_EQ(json["groups"][0]["stop"]["sequence"], 1);
    EXPECT_EQ(json["groups"][0]["stop"]["missing"][0]["rank"], 1);
    EXPECT_EQ(json["verdict"][0], report.verdict.at(0));
    EXPECT_THAT(render(report, report::Format::csv), HasSubstr("missing,1,1"));
    EXPECT_THAT(render(report, report::Format::table), HasSubstr(report.verdict[0]));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
