// A process's place in its job, from the variables that launchers set.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/world/node_list.h"
#include "trainer/world/own_launcher.h"
#include "trainer/world/place.h"

namespace shardscope::trainer::world {
namespace TEST_FILE {

using Variables = std::map<std::string, std::string>;

std::optional<Place> place_of(const Variables& variables) {
    return place_from_environment([&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    });
}

std::string error_of(const Variables& variables) {
    try {
        place_of(variables);
    } catch (const WorldError& error) {
        return error.what();
    }
    return "";
}

Variables with(Variables variables, const Variables& more) {
    for (const auto& [name, value] : more) variables[name] = value;
    return variables;
}

Variables without(Variables variables, const std::string& name) {
    variables.erase(name);
    return variables;
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node3"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "job-7"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"OMPI_MCA_ess_base_jobid", "12345"}};
const Variables kSrun = {{"SLURM_JOB_ID", "4711"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURM_PROCID", "5"},
                         {"SLURM_NTASKS", "7"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_STEP_NUM_TASKS", "7"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),3"},
                         {"SLURM_NODELIST", "node[01-09]"},
                         {"SLURM_STEP_NODELIST", "node[03-05]"}};

TEST(WorldPlace, WithoutALauncherThereIsNoPlace) {
    EXPECT_FALSE(place_of({}));
    EXPECT_FALSE(place_of({{"RANK", ""}, {"HOME", "/"}}));
    // The variables have a job's token, but the process was started alone.
    EXPECT_FALSE(place_of({{"SHARDSCOPE_JOB_TOKEN", "secret"}}));
}

TEST(WorldPlace, Torchrun) {
    const std::optional<Place> place = place_of(kTorchrun);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->launcher, Launcher::torchrun);
    EXPECT_EQ(place->rank, 5);
    EXPECT_EQ(place->ranks, 8);
    EXPECT_EQ(place->local_rank, 1);
    EXPECT_EQ(place->local_ranks, 4);
    EXPECT_EQ(place->master, "node3");
    EXPECT_EQ(place->port, 29501);  // the agent itself uses 29500
    EXPECT_EQ(place_of(without(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE"))->port, 29500);
}

TEST(WorldPlace, TorchrunsTokenDistinguishesJobsAndRestarts) {
    const std::string token = place_of(kTorchrun)->token;
    EXPECT_THAT(token, testing::HasSubstr("job-7"));
    EXPECT_EQ(place_of(with(kTorchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}}))->token, token);
    EXPECT_NE(place_of(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "job-8"}}))->token, token);
    EXPECT_NE(place_of(with(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}}))->token, token);
    EXPECT_NE(place_of(with(kTorchrun, {{"MASTER_PORT", "29600"}}))->token, token);
    EXPECT_EQ(place_of(with(kTorchrun, {{"SHARDSCOPE_JOB_TOKEN", "mine"}}))->token, "mine");
}

TEST(WorldPlace, SaysWhereStrangersMayGuessTheToken) {
    const auto note = [](const Variables& variables) { return token_note(*place_of(variables)); };
    EXPECT_THAT(note(kTorchrun), testing::AllOf(testing::HasSubstr("port 29501 of node3"),
                                                testing::HasSubstr("set SHARDSCOPE_JOB_TOKEN")));
    EXPECT_NE(note(kSrun), "");
    EXPECT_NE(note(with(kMpirun, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "4000"}})), "");
    EXPECT_EQ(note(with(kTorchrun, {{"SHARDSCOPE_JOB_TOKEN", "mine"}})), "");
    for (const char* own : {"localhost", "127.0.0.1", "::1"})
        EXPECT_EQ(note(with(kTorchrun, {{"MASTER_ADDR", own}})), "") << own;
    // torchrun --standalone makes a random run id; without one, torchrun's id is "none".
    const auto with_id = [&](const char* id) { return note(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", id}})); };
    EXPECT_EQ(with_id("0b46dc49-6f0a-4c2f-9b1e-8a1d2f3c4b5d"), "");
    EXPECT_NE(with_id("none"), "");
    EXPECT_NE(with_id("0b46dc49-6f0a-1c2f-9b1e-8a1d2f3c4b5d"), "");  // of a time and a host
}

TEST(WorldPlace, RanksWithoutLocalRanksAreOneToAHost) {
    const Variables alone = without(without(kTorchrun, "LOCAL_RANK"), "LOCAL_WORLD_SIZE");
    EXPECT_EQ(place_of(alone)->local_rank, 0);
    EXPECT_EQ(place_of(alone)->local_ranks, 1);
}

TEST(WorldPlace, OneRankHasNoPlace) {
    EXPECT_FALSE(place_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
    EXPECT_FALSE(place_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
    EXPECT_FALSE(place_of({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
}

TEST(WorldPlace, MpirunLeavesTheMeetingToMpi) {
    const std::optional<Place> place = place_of(kMpirun);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->launcher, Launcher::mpirun);
    EXPECT_EQ(place->rank, 3);
    EXPECT_EQ(place->ranks, 4);
    EXPECT_EQ(place->local_rank, 1);
    EXPECT_EQ(place->local_ranks, 2);
    EXPECT_EQ(place->master, "");
    EXPECT_EQ(place->port, 0);
    EXPECT_EQ(place->token, "mpirun 12345");
}

TEST(WorldPlace, MpirunWithAMeetingPoint) {
    const std::optional<Place> place =
        place_of(with(kMpirun, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "4000"}}));
    EXPECT_EQ(place->launcher, Launcher::mpirun);
    EXPECT_EQ(place->master, "a");
    EXPECT_EQ(place->port, 4000);
    EXPECT_THAT(error_of(with(kMpirun, {{"MASTER_ADDR", "a"}})),
                testing::AllOf(testing::HasSubstr("MASTER_ADDR"), testing::HasSubstr("MASTER_PORT")));
}

TEST(WorldPlace, MpichsMpirun) {
    const std::optional<Place> place =
        place_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}});
    ASSERT_TRUE(place);
    EXPECT_EQ(place->launcher, Launcher::mpirun);
    EXPECT_EQ(place->rank, 2);
    EXPECT_EQ(place->local_ranks, 2);
}

TEST(WorldPlace, Srun) {
    const std::optional<Place> place = place_of(kSrun);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->launcher, Launcher::srun);
    EXPECT_EQ(place->rank, 5);
    EXPECT_EQ(place->ranks, 7);
    EXPECT_EQ(place->local_rank, 1);
    EXPECT_EQ(place->local_ranks, 3);
    EXPECT_EQ(place->master, "node03");
    EXPECT_EQ(place->token, "srun 4711.2");
    EXPECT_EQ(place_of(with(kSrun, {{"MASTER_ADDR", "b"}, {"MASTER_PORT", "77"}}))->master, "b");
    EXPECT_EQ(place_of(with(kSrun, {{"MASTER_ADDR", "b"}, {"MASTER_PORT", "77"}}))->port, 77);
}

TEST(WorldPlace, SrunsPortFollowsFromTheStep) {
    const int port = place_of(kSrun)->port;
    EXPECT_EQ(
        place_of(with(kSrun, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}}))->port,
        port);
    const int next_step = place_of(with(kSrun, {{"SLURM_STEP_ID", "3"}}))->port;
    EXPECT_GE(std::abs(next_step - port), kPorts);
    for (const int each : {port, next_step}) {
        EXPECT_GE(each, 1024);
        EXPECT_LT(each + kPorts, 32768);  // from here on Linux assigns ports dynamically
    }
}

TEST(WorldPlace, AJobsShellIsNotAStep) {
    // A batch script, and the shell of salloc, which is a step of its own.
    EXPECT_FALSE(place_of({{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
    EXPECT_FALSE(place_of(with(kSrun, {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_PROCID", "0"}})));
    EXPECT_FALSE(place_of(without(kSrun, "SLURM_PROCID")));
}

TEST(WorldPlace, TheInnermostLauncherCounts) {
    // mpirun inside salloc, one torchrun per host inside srun, one torchrun per host inside mpirun.
    EXPECT_EQ(place_of(with(kSrun, kMpirun))->launcher, Launcher::mpirun);
    EXPECT_EQ(place_of(with(kSrun, kTorchrun))->launcher, Launcher::torchrun);
    EXPECT_EQ(place_of(with(kMpirun, kTorchrun))->launcher, Launcher::torchrun);
    // srun --mpi=pmi2 sets the variables of both.
    EXPECT_EQ(place_of(with(kSrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}}))->launcher, Launcher::srun);
    // The innermost launcher is shardscope-train itself, however it was started.
    Variables own = with(kTorchrun, kMpirun);
    own = with(own, {{"SHARDSCOPE_RANK", "1"},
                     {"SHARDSCOPE_RANKS", "2"},
                     {"SHARDSCOPE_MASTER", "127.0.0.1"},
                     {"SHARDSCOPE_PORT", "5000"}});
    EXPECT_EQ(place_of(own)->launcher, Launcher::own);
}

TEST(WorldPlace, RankAndWorldSizeMadeByHandFromALaunchersAreThatLaunchers) {
    const Variables by_hand = {
        {"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
    const std::optional<Place> place = place_of(with(kMpirun, by_hand));
    EXPECT_EQ(place->launcher, Launcher::mpirun);
    EXPECT_EQ(place->master, "a");
}

TEST(WorldPlace, OwnEnvironmentGoesThereAndBack) {
    const Place rank_0{.launcher = Launcher::own,
                       .rank = 0,
                       .ranks = 3,
                       .local_rank = 0,
                       .local_ranks = 3,
                       .master = "127.0.0.1",
                       .port = 5123,
                       .listen_fd = 9,
                       .token = "abc"};
    Place rank_2 = rank_0;
    rank_2.rank = rank_2.local_rank = 2;
    rank_2.listen_fd = -1;
    for (const Place& place : {rank_0, rank_2}) {
        Variables variables;
        for (const std::string& line : environment_for(place)) {
            const std::size_t equals = line.find('=');
            variables[line.substr(0, equals)] = line.substr(equals + 1);
        }
        const std::optional<Place> again = place_of(variables);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->rank, place.rank);
        EXPECT_EQ(again->ranks, 3);
        EXPECT_EQ(again->local_rank, place.local_rank);
        EXPECT_EQ(again->local_ranks, 3);
        EXPECT_EQ(again->master, "127.0.0.1");
        EXPECT_EQ(again->port, 5123);
        EXPECT_EQ(again->listen_fd, place.listen_fd);
        EXPECT_EQ(again->token, "abc");
    }
}

TEST(WorldPlace, TokensAreRandom) {
    EXPECT_EQ(random_token().size(), 32U);
    EXPECT_NE(random_token(), random_token());
}

TEST(WorldPlace, ErrorsNameTheVariables) {
    using testing::AllOf;
    using testing::HasSubstr;
    EXPECT_THAT(error_of({{"RANK", "1"}}), AllOf(HasSubstr("RANK"), HasSubstr("WORLD_SIZE")));
    EXPECT_THAT(error_of({{"WORLD_SIZE", "2"}}), AllOf(HasSubstr("WORLD_SIZE"), HasSubstr("without RANK")));
    EXPECT_THAT(error_of(without(kTorchrun, "MASTER_PORT")), HasSubstr("MASTER_PORT"));
    EXPECT_THAT(error_of(without(kTorchrun, "LOCAL_RANK")),
                AllOf(HasSubstr("LOCAL_RANK"), HasSubstr("LOCAL_WORLD_SIZE")));
    EXPECT_THAT(error_of(with(kTorchrun, {{"RANK", "8"}})),
                AllOf(HasSubstr("RANK=8"), HasSubstr("WORLD_SIZE=8")));
    EXPECT_THAT(error_of(with(kTorchrun, {{"RANK", "-1"}})), HasSubstr("RANK is \"-1\""));
    EXPECT_THAT(error_of(with(kTorchrun, {{"WORLD_SIZE", "8x"}})), HasSubstr("WORLD_SIZE is \"8x\""));
    EXPECT_THAT(error_of(with(kTorchrun, {{"MASTER_PORT", "70000"}})), HasSubstr("MASTER_PORT is \"70000\""));
    EXPECT_THAT(error_of(with(kTorchrun, {{"LOCAL_RANK", "4"}})),
                AllOf(HasSubstr("LOCAL_RANK=4"), HasSubstr("LOCAL_WORLD_SIZE=4")));
    EXPECT_THAT(error_of(without(kMpirun, "OMPI_COMM_WORLD_SIZE")), HasSubstr("OMPI_COMM_WORLD_SIZE"));
    EXPECT_THAT(error_of(with(kSrun, {{"SLURM_STEP_NODELIST", "node[,"}})), HasSubstr("SLURM_STEP_NODELIST"));
    EXPECT_THAT(error_of(without(without(kSrun, "SLURM_NTASKS"), "SLURM_STEP_NUM_TASKS")),
                HasSubstr("SLURM_NTASKS"));
    EXPECT_THAT(error_of({{"SHARDSCOPE_RANK", "1"}, {"SHARDSCOPE_RANKS", "2"}}),
                AllOf(HasSubstr("SHARDSCOPE_MASTER"), HasSubstr("SHARDSCOPE_PORT")));
}

TEST(WorldPlace, FirstNodeOfAList) {
    EXPECT_EQ(first_node("node[03-05,7],b1"), "node03");
    EXPECT_EQ(first_node("b1,node[03-05,7]"), "b1");
    EXPECT_EQ(first_node("gpu-7.cluster"), "gpu-7.cluster");
    EXPECT_EQ(first_node("n[12]"), "n12");
    EXPECT_EQ(first_node("rack[1-2]n[01-16]-ib,x"), "rack1n01-ib");
    for (const char* wrong : {"", ",a", "n[", "n[1-2", "n]", "n[]", "n[a-b]", "n[-3]"})
        EXPECT_EQ(first_node(wrong), "") << wrong;
}

TEST(WorldPlace, TasksOfANode) {
    const std::vector<int> tasks = {2, 2, 2, 1, 4};
    for (std::size_t node = 0; node < tasks.size(); ++node)
        EXPECT_EQ(tasks_on_node("2(x3),1,4", static_cast<int>(node)), tasks[node]);
    EXPECT_FALSE(tasks_on_node("2(x3),1,4", 5));
    for (const char* wrong : {"", "x", "2(x", "2(x3", "2(3)", ",2"})
        EXPECT_FALSE(tasks_on_node(wrong, 1)) << wrong;
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::world
