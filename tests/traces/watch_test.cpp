// What somebody who watches a run sees.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/report/text_table.h"
#include "traces/store/error.h"
#include "traces/watch/display.h"
#include "traces/watch/file_status.h"
#include "traces/watch/history.h"

namespace shardscope::traces::watch {
namespace TEST_FILE {

using report::display_width;
using status::RankState;
using status::RunState;
using status::RunStatus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RunStatus run_of(int ranks) {
    RunStatus run;
    run.tool = "shardscope-train 1.0.0";
    run.run = "gpt.toml";
    run.trace = "/data/runs/gpt/run.sqlite";
    run.host = "node1";
    run.pid = 4711;
    run.time_s = 751;
    run.state = RunState::running;
    run.steps_done = 452;
    run.steps = 1000;
    run.epoch = 1.5;
    run.epochs = 3;
    run.loss = 2.31449;
    run.step_s = 0.0801;
    run.rate = 12345.6;
    run.items = "tokens";
    run.left_s = 372;
    for (int i = 0; i < ranks; ++i) {
        status::RankStatus& rank = run.ranks.emplace_back();
        rank.rank = i;
        rank.host = i < ranks / 2 ? "node1" : "node2";
        rank.pid = 4711 + i;
        rank.state = RankState::running;
        rank.steps_done = 452;
        rank.memory_bytes = 129 << 20;
        rank.peak_bytes = 150 << 20;
        rank.waits_percent = 12;
        rank.collective = status::CollectiveStatus{"reduce_scatter", 7231, 1, false, 0.02};
    }
    return run;
}

RunStatus hanging(int ranks) {
    RunStatus run = run_of(ranks);
    run.state = RunState::waiting;
    run.reason = "rank 5 has not entered all_gather 12 of group 1 for 3.0 s; ranks 0-4, 6 and 7 wait for it";
    for (status::RankStatus& rank : run.ranks) {
        rank.state = RankState::waiting;
        rank.collective = status::CollectiveStatus{"all_gather", 12, 1, true, 3};
    }
    run.ranks[5].state = RankState::silent;
    run.ranks[5].silent_s = 3;
    return run;
}

std::string text_of(const std::vector<DisplayLine>& lines) {
    std::string text;
    for (const DisplayLine& line : lines) text += line.text + "\n";
    return text;
}

TEST(Display, has_a_line_for_each_rank) {
    const std::string text = text_of(display(run_of(4), {}, "", 80, 24));
    EXPECT_THAT(text, HasSubstr("shardscope-train 1.0.0: gpt.toml on node1"));
    EXPECT_THAT(text, HasSubstr("running, 0:12:31\n"));
    EXPECT_THAT(text, HasSubstr("]  45.2 %  step 452 of 1,000"));
    EXPECT_THAT(text,
                HasSubstr("epoch 1.50 of 3  loss 2.3145  12,346 tokens/s  80.1 ms a step  6 min 12 s left"));
    for (const char* rank : {"\n   0  running", "\n   1  running", "\n   2  running", "\n   3  running"})
        EXPECT_THAT(text, HasSubstr(rank));
}

TEST(Display, names_who_is_waited_for) {
    const std::vector<DisplayLine> lines = display(hanging(8), {}, "", 120, 40);
    const auto named = std::find_if(lines.begin(), lines.end(), [](const DisplayLine& line) {
        return line.text.starts_with("rank 5 has not entered all_gather 12 of group 1 for 3.0 s");
    });
    ASSERT_NE(named, lines.end());
    EXPECT_EQ(named->emphasis, Emphasis::alarm);
    EXPECT_THAT(text_of(lines), HasSubstr("   5  silent 3 s"));
    EXPECT_THAT(text_of(lines), HasSubstr("in all_gather 12 of group 1 for 3.0 s"));
}

// However small the window is and however wild the texts are.
TEST(Display, never_leaves_its_window) {
    RunStatus wild = hanging(64);
    wild.run = std::string(500, 'x') + "\x1b[31m\xff\n";
    wild.reason += std::string(300, 'y');
    wild.ranks[0].host = "\x1b]0;title\x07";
    Course course;
    for (int i = 0; i < 3000; ++i) {
        wild.steps_done = i;
        course.add(wild);
    }
    for (const RunStatus& run : {run_of(1), run_of(8), hanging(64), wild, RunStatus()}) {
        for (const std::size_t width : {1u, 7u, 20u, 40u, 79u, 80u, 120u, 300u}) {
            for (const std::size_t height : {1u, 2u, 5u, 12u, 24u, 100u}) {
                const std::vector<DisplayLine> lines = display(run, course, "no news for 4 s", width, height);
                EXPECT_LE(lines.size(), height);
                for (const DisplayLine& line : lines) {
                    EXPECT_LE(display_width(line.text), width) << line.text;
                    EXPECT_EQ(line.text.find_first_of("\x1b\x07\n"), std::string::npos) << line.text;
                }
            }
        }
    }
}

TEST(Display, shows_first_whom_it_is_about_where_not_all_ranks_fit) {
    const std::string text = text_of(display(hanging(64), {}, "", 80, 16));
    EXPECT_THAT(text, HasSubstr("   5  silent 3 s"));
    EXPECT_THAT(text, HasSubstr("of 64 ranks; a taller window shows them"));
}

TEST(Display, leaves_out_columns_before_the_last_one) {
    RunStatus run = hanging(8);
    for (status::RankStatus& rank : run.ranks) rank.cores = 1.0;
    const std::string narrow = text_of(display(run, {}, "", 52, 40));
    EXPECT_THAT(narrow, HasSubstr("rank  state"));
    EXPECT_THAT(narrow, HasSubstr("last coll"));
    EXPECT_THAT(narrow, Not(HasSubstr("peak")));
    EXPECT_THAT(text_of(display(run, {}, "", 130, 40)), HasSubstr("peak"));
}

TEST(Display, a_log_has_one_line) {
    EXPECT_EQ(log_line(run_of(2)),
              "0:12:31 running, step 452 of 1,000 (45.2 %), epoch 1.50 of 3, loss 2.3145, 12,346 tokens/s, 6 "
              "min 12 s "
              "left");
    EXPECT_THAT(log_line(hanging(8)), HasSubstr("tokens/s: rank 5 has not entered"));
    EXPECT_EQ(log_line(RunStatus()), "0:00:00 starting");
}

TEST(History, is_drawn_from_its_lowest_to_its_highest) {
    History history;
    EXPECT_EQ(history.sparkline(10), "");
    for (int i = 0; i < 8; ++i) history.add(i);
    EXPECT_EQ(history.sparkline(8), "▁▂▃▄▅▆▇█");
    EXPECT_EQ(history.sparkline(4), "▁▃▆█");
    EXPECT_EQ(history.sparkline(0), "");
    History level;
    level.add(3);
    level.add(std::numeric_limits<double>::infinity());
    EXPECT_EQ(level.sparkline(10), "▅");
}

TEST(History, keeps_the_whole_course_in_bounded_memory) {
    History history;
    for (int i = 0; i < 1'000'000; ++i) history.add(i);
    EXPECT_EQ(history.sparkline(8), "▁▂▃▄▅▆▇█");
}

TEST(FileStatus, reads_a_finished_trace) {
    FileStatus file(SHARDSCOPE_SAMPLES "/traces/mlp-linear.sqlite");
    const RunStatus run = file.read();
    EXPECT_EQ(run.state, RunState::finished);
    EXPECT_EQ(run.steps, 4);
    EXPECT_EQ(run.steps_done, 4);
    EXPECT_EQ(run.items, "samples");
    ASSERT_EQ(run.ranks.size(), 2u);
    EXPECT_EQ(run.ranks[1].steps_done, 4);
    EXPECT_EQ(run.ranks[1].state, RankState::ended);
    ASSERT_TRUE(run.ranks[1].collective);
    EXPECT_EQ(run.ranks[1].collective->group, 0);
    Course course;
    file.add_to(course);
    EXPECT_EQ(display_width(course.loss.sparkline(80)), 4u);
    EXPECT_THAT(course.rate.sparkline(80), Not(""));
}

TEST(FileStatus, says_what_is_missing) {
    const TemporaryFolder folder;
    try {
        FileStatus file(folder / "run.sqlite");
        FAIL();
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(), HasSubstr("there is no such trace, and no run serves its status for it"));
    }
}

TEST(FileStatus, finds_the_parts_that_ranks_write) {
    const TemporaryFolder folder;
    for (const char* name :
         {"run.rank-00001.sqlite", "run.rank-00000.sqlite", "run.rank-00000.sqlite-wal", "other.sqlite"})
        std::ofstream(folder / name) << "x";
    EXPECT_THAT(files_of_run(folder / "run.sqlite"),
                ElementsAre(folder / "run.rank-00000.sqlite", folder / "run.rank-00001.sqlite"));
    EXPECT_THAT(files_of_run(folder / "other.sqlite"), ElementsAre(folder / "other.sqlite"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::watch
