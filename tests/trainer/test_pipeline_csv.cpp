// Schedules as files: what is written is read again, what is wrong is named with its place, and nothing that
// is read ends the program.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/pipeline_testing.h"
#include "trainer/pipeline/csv.h"
#include "trainer/pipeline/lower.h"
#include "trainer/pipeline/replay.h"

namespace shardscope::trainer::pipeline {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string reading(std::string_view text) {
    return refused([&] { parse_csv(text, "my.csv"); });
}

TEST(PipelineCsv, WhatIsWrittenIsReadAgain) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        for_each_shape(kind, [&](const Shape& shape) {
            const Schedule schedule = make_schedule(kind, shape);
            EXPECT_EQ(parse_csv(csv_text(schedule), "x"), schedule) << to_string(kind, shape);
            const Schedule lowered = lower(schedule);
            EXPECT_EQ(parse_csv(csv_text(lowered), "x"), lowered) << to_string(kind, shape);
            EXPECT_EQ(computes_of(lowered), schedule) << to_string(kind, shape);
        });
    }
}

TEST(PipelineCsv, IdleCellsQuotesBlanksAndOtherLineEndsAreAccepted) {
    const Schedule schedule = parse_csv("0F0,,, ,0B0\r\n,\"1F0\", 1I0 ,1W0\r\n\r\n", "x");
    EXPECT_EQ(rank_text(schedule, 0), "0F0 0B0");
    EXPECT_EQ(rank_text(schedule, 1), "1F0 1I0 1W0");
    EXPECT_EQ(schedule.micro_batches, 1);
    EXPECT_THAT(schedule.rank_of_stage, ElementsAre(0, 1));
}

TEST(PipelineCsv, TextsOfOlderVersionsAreRead) {
    EXPECT_EQ(rank_text(parse_csv("0F0,0BW0", "x"), 0), "0F0 0B0");
    EXPECT_EQ(rank_text(parse_csv("0F0,0F1,0B0,0W0,0BW1", "x"), 0), "0F0 0F1 0I0 0W0 0B1");
}

TEST(PipelineCsv, StagesMayLieAnywhere) {
    const Schedule schedule = parse_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "x");
    EXPECT_EQ(schedule.placement(), Placement::v);
    EXPECT_EQ(parse_csv("1F0,1B0\n0F0,0B0\n", "x").placement(), Placement::own);
}

TEST(PipelineCsv, ErrorsNameTheirPlace) {
    EXPECT_EQ(reading("0F0,0B0\n1F0,1G0\n"),
              "my.csv:2: cell 2 (rank 1): \"1G0\" is not an action; write STAGE KIND MICRO-BATCH without "
              "blanks, such as "
              "3F2");
    EXPECT_EQ(
        reading("0F0,0B0\n1F0\n"),
        "my.csv:2: (rank 1): 1B0 is missing; each forward has a backward on its rank: B, or I and then W");
    EXPECT_EQ(reading("0F0,,0F0,0B0\n1F0,1B0\n"), "my.csv:1: cell 3 (rank 0): 0F0 is there twice; omit one");
    EXPECT_EQ(reading("0F0,0B0\n1B0,1F0\n"),
              "my.csv:2: cell 1 (rank 1): 1B0 comes before 1F0; move it behind");
    EXPECT_EQ(reading("0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n"),
              "my.csv:2: (rank 1): 1F1 is missing; each stage does the forward of each micro-batch");
    EXPECT_EQ(reading("0F0,0I0\n1F0,1B0\n"),
              "my.csv:1: (rank 0): 0W0 is missing; it follows the I of its micro-batch");
    EXPECT_EQ(reading("0F0,0W0,0I0\n"), "my.csv:1: cell 2 (rank 0): 0W0 comes before 0I0; move it behind");
    EXPECT_EQ(reading("0F0,0I0,0W0,0B0\n"),
              "my.csv:1: cell 4 (rank 0): 0B0 is a second backward of stage 0 and micro-batch 0; a backward "
              "is B, or I and W");
    EXPECT_EQ(reading("0F0,1B0,0B0\n1F0\n"),
              "my.csv:2: cell 1 (rank 1): 1F0 is on rank 1, but stage 1 is on rank 0; move it there");
    EXPECT_EQ(
        reading("0F0,0B0\n2F0,2B0\n"),
        "my.csv: there are actions of stage 2 but none of stage 1; stages are numbered from 0 without gaps");
    EXPECT_EQ(reading("0F0,0B0\n\n1F0,1B0\n"),
              "my.csv:2: rank 1 has no action; each line is a rank that holds a stage");
    EXPECT_THAT(reading(""), StartsWith("my.csv: no action"));
    EXPECT_THAT(reading("\n,,\n"), StartsWith("my.csv:1: rank 0 has no action"));
    EXPECT_THAT(reading("(0B0;0F1)OVERLAP_F_B"), HasSubstr("a pair is a forward and then a backward"));
    for (const char* wrong :
         {"F0", "0F", "0F0x", "-1F0", "0f0", "0F-1", "99999999F0", "0UNSHARD1", "0SEND_F", "0SEND_X0",
          "(0F0)OVERLAP_F_B", "(0F0;1B0)", "(0F0;1B0", "()", "0F0;1B0", "\xff\xfe"})
        EXPECT_THAT(reading(wrong), HasSubstr("my.csv:1: cell 1 (rank 0): ")) << wrong;
}

TEST(PipelineCsv, HugeNumbersTakeNoMemory) {
    EXPECT_THAT(reading("0F0,0B0,1F999999,1B999999"), HasSubstr("0F1 is missing"));
    EXPECT_THAT(reading("0F0,0B0,999999F0"), HasSubstr("none of stage 1"));
}

TEST(PipelineCsv, RanksThatWaitForEachOtherAreNamed) {
    EXPECT_EQ(reading("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
              "my.csv:1: cell 2 (rank 0): deadlock: rank 0 at 0B0 for 1B0 of rank 1, rank 1 at 1F1 for 0F1 "
              "of rank 0 "
              "wait; change the order on one of these ranks");
    EXPECT_EQ(reading("1F0,0F0,1B0,0B0\n"),
              "my.csv:1: cell 1 (rank 0): deadlock: rank 0 at 1F0 for 0F0 of rank 0 waits; change the order "
              "on one of "
              "these ranks");
    // A pair needs all of its inputs before it begins.
    EXPECT_THAT(reading("0F0,(1F0;1B0)OVERLAP_F_B,0B0\n"),
                HasSubstr("cell 2 (rank 0): 1B0 needs 1F0, with which it is to run"));
}

TEST(PipelineCsv, TransfersAreChecked) {
    EXPECT_EQ(reading("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "accepted");
    EXPECT_EQ(reading("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
              "my.csv:2: (rank 1): 1RECV_F0 is missing; the stages before and after it are on other ranks");
    EXPECT_THAT(reading("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
                HasSubstr("cell 1 (rank 0): 0SEND_F0 comes before 0F0"));
    EXPECT_THAT(reading("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n"),
                HasSubstr("cell 2 (rank 1): 1RECV_F0 comes after 1F0"));
    EXPECT_THAT(reading("0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
                HasSubstr("0RECV_B0 comes after the backward"));
    EXPECT_THAT(reading("0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
                HasSubstr("0SEND_B0 has no other rank at its other end"));
    EXPECT_THAT(reading("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0B1\n"
                        "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n"),
                HasSubstr("cell 1 (rank 1): 0SEND_F1 is received where rank 0 sends 0SEND_F0"));
    // Rank 0 sends only after the gradient that this output leads to.
    EXPECT_THAT(reading("0F0,0RECV_B0,0B0,0SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
                HasSubstr("deadlock: rank 0 at 0B0"));
}

TEST(PipelineCsv, FilesThatCannotBeReadAreNamed) {
    EXPECT_THAT(refused([] { read_csv("/nowhere/x.csv"); }),
                AllOf(StartsWith("/nowhere/x.csv: "), HasSubstr("check the path")));
    EXPECT_THAT(refused([] { read_csv("/"); }), StartsWith("/: cannot be read"));
}

// --- random files ------------------------------------------------------------------------------------------

// Any damage to a valid file is either harmless or refused in one line that names the file; the schedule that
// is read can be replayed, lowered and written.
class RandomFiles {
  public:
    explicit RandomFiles(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

    std::string valid() {
        const auto kinds = schedule_kinds();
        for (;;) {
            const ScheduleKind& kind = kinds[below(kinds.size())];
            const Shape shape{static_cast<int>(1 + below(4)), static_cast<int>(1 + below(8)),
                              kind.fewest_chunks + static_cast<int>(below(2))};
            if (!refusal(kind, shape).empty()) continue;
            const Schedule schedule = make_schedule(kind, shape);
            return csv_text(below(2) == 0 ? schedule : lower(schedule));
        }
    }

    std::string damaged() {
        static constexpr std::string_view kTexts[] = {"0F0", ",", "\n",     "(",  ")OVERLAP_F_B", ";",
                                                      "9",   "W", "SEND_F", "\"", "\r",           "1I0"};
        std::string text = valid();
        for (std::size_t i = 0; i <= below(3); ++i) {
            const std::size_t at = below(text.size() + 1);
            switch (below(4)) {
                case 0:
                    text.insert(at, kTexts[below(std::size(kTexts))]);
                    break;
                case 1:
                    text.erase(at, 1 + below(4));
                    break;
                case 2:
                    if (at < text.size()) text[at] = static_cast<char>(below(256));
                    break;
                default:
                    text.resize(at);
            }
        }
        return text;
    }

  private:
    std::mt19937 random_;
};

TEST(PipelineCsv, AnyFileIsReadOrRefused) {
    RandomFiles files(1);
    int accepted = 0, refusals = 0;
    for (int i = 0; i < 4000; ++i) {
        const std::string text = i % 8 == 0 ? files.valid() : files.damaged();
        try {
            const Schedule schedule = parse_csv(text, "my.csv");
            EXPECT_GT(replay(schedule, {2, 1, 1, 1}).makespan, 0);
            EXPECT_EQ(parse_csv(csv_text(schedule), "x"), schedule) << text;
            const Schedule lowered = lower(computes_of(schedule));
            const auto problem = find_problem(lowered);
            EXPECT_FALSE(problem) << problem->text << "\n" << text;
            ++accepted;
        } catch (const ScheduleError& error) {
            EXPECT_THAT(error.what(), StartsWith("my.csv:"));
            EXPECT_NE(i % 8, 0) << error.what();
            ++refusals;
        }
    }
    EXPECT_GT(accepted, 500);
    EXPECT_GT(refusals, 2000);
}

// Each action that is removed, doubled or moved before what it needs is found, wherever it is.
TEST(PipelineCsv, EveryPlantedErrorIsFound) {
    for (const char* name : {"1f1b", "interleaved", "interleaved_zb", "zb_v", "dualpipe_v"}) {
        const Schedule schedule = lower(made(name, 2, 4), {.fsdp = false});
        for (std::size_t rank = 0; rank < 2; ++rank) {
            for (std::size_t i = 0; i < schedule.actions[rank].size(); ++i) {
                Schedule less = schedule, more = schedule;
                auto& own = less.actions[rank];
                const Action action = own[i];
                const bool paired = action.with_next || (i > 0 && own[i - 1].with_next);
                const bool waits = action.kind == ActionKind::wait_send_forward ||
                                   action.kind == ActionKind::wait_send_backward;
                if (!paired && !waits) {  // waits may be absent, as in older files
                    own.erase(own.begin() + static_cast<std::ptrdiff_t>(i));
                    EXPECT_TRUE(find_problem(less)) << name << " without " << text_of(action);
                }
                more.actions[rank].push_back({action.stage, action.kind, action.micro_batch});
                EXPECT_TRUE(find_problem(more)) << name << " with " << text_of(action) << " twice";
            }
        }
    }
}

TEST(PipelineLowering, AddsFsdpOnlyWhereItIsRequested) {
    const Schedule schedule = lower(made("interleaved", 2, 2), {.fsdp = false});
    EXPECT_EQ(rank_text(schedule, 0),
              "0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 2RECV_F1 2F0 2SEND_F0 2F1 2SEND_F1 2RECV_B0 2B0 "
              "2WAIT_SEND_F0 2SEND_B0 "
              "2RECV_B1 2B1 2WAIT_SEND_F1 2SEND_B1 0RECV_B0 0B0 0WAIT_SEND_F0 0RECV_B1 0B1 0WAIT_SEND_F1 "
              "2WAIT_SEND_B0 "
              "2WAIT_SEND_B1");
    // The turn of the V stays on its rank.
    EXPECT_THAT(rank_text(lower(made("zb_v", 2, 2)), 1), ::testing::Not(HasSubstr("1SEND_F")));
    // Two stages at a time.
    const Schedule two = lower(made("looped_bfs", 1, 1, 3), {.unsharded_stages = 2});
    EXPECT_EQ(rank_text(two, 0),
              "0UNSHARD 1UNSHARD 0F0 0RESHARD 2UNSHARD 1F0 2F0 2B0 2REDUCE_GRAD 2WAIT_REDUCE_GRAD 2RESHARD "
              "0UNSHARD 1B0 "
              "1REDUCE_GRAD 1WAIT_REDUCE_GRAD 1RESHARD 0B0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD 0RESHARD");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::pipeline
