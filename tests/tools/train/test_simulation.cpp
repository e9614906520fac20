// shardscope-train --run.device=sim: it prints like a run, its trace opens like any other, and errors name
// what is wrong.
#include <cstdint>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Words simulation(const Words& more) {
    Words words = {sample("mlp.toml"), "--run.device=sim", "--run.steps=4"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// The job is as wide as in the tests of real runs: it has the same peak, but no losses.
TEST(Simulation, IsPrintedAsARun) {
    const Json simulated = train_json(simulation({"--model.width=64"}));
    const Json real = train_json({sample("mlp.toml"), "--run.steps=4", "--model.width=64"});
    EXPECT_EQ(simulated.at("losses"), Json::array());
    EXPECT_EQ(simulated.at("steps_done"), 4);
    EXPECT_GT(simulated.at("average_step_us"), 0.0);
    ASSERT_EQ(simulated.at("ranks").size(), 4u);
    for (std::size_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(simulated["ranks"][rank].at("peak_bytes"), real["ranks"][rank].at("peak_bytes"));
        EXPECT_EQ(simulated["ranks"][rank].at("at_peak"), real["ranks"][rank].at("at_peak"));
    }
    EXPECT_EQ(simulated.at("simulation").at("cluster"), "laptop");

    const Outcome table = train(simulation({"--sim.cluster=h100_ib", "--run.ranks=32"}));
    EXPECT_EQ(table.status, 0) << table.err;
    EXPECT_THAT(table.out, AllOf(HasSubstr("Average step: "), HasSubstr("exposed communication"),
                                 HasSubstr("Peak memory of rank 0: "), Not(HasSubstr("Loss"))));
    EXPECT_THAT(table.err, HasSubstr("simulated on h100_ib (4 nodes of up to 8"));
}

TEST(Simulation, LeavesATraceThatEveryVerbReads) {
    const TemporaryFolder folder;
    const std::string trace = folder / "sim.sqlite";
    const Json run = train_json(simulation({"--run.ranks=16", "--sim.trace_ranks=2", "--sim.cluster=h100_ib",
                                            "--sim.slow_rank=9:3", "--trace", trace}));
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
    const Json summary = trace_json({"summary", trace});
    ASSERT_EQ(summary.at("ranks").size(), 3u);  // 0, 1 and the slow one
    EXPECT_EQ(summary["ranks"][2].at("rank"), 9);
    EXPECT_EQ(summary["ranks"][0].at("steps"), 4);
    EXPECT_NEAR(summary["ranks"][0].at("average_step_us").get<double>(),
                run.at("average_step_us").get<double>(), 0.02 * run.at("average_step_us").get<double>());
    const Json memory = trace_json({"memory", trace});
    EXPECT_EQ(memory["ranks"][0].at("peak_bytes"), run["ranks"][0].at("peak_bytes"));
    EXPECT_GT(number(trace, "SELECT count(*) FROM collectives"), 0);
    for (const std::string verb : {"modules", "units", "kernels", "collectives", "distributed", "idle",
                                   "critical-path", "stragglers", "advice", "answers"}) {
        EXPECT_EQ(trace_tool({verb, trace}).status, 0) << verb;
    }
    EXPECT_EQ(train(simulation({"--trace", trace})).status, 2);  // the trace exists already
}

// A kernel of rank 9 takes three times as long as the same one of rank 0.
TEST(Simulation, ShowsTheKernelsOfAStraggler) {
    const TemporaryFolder folder;
    const std::string trace = folder / "sim.sqlite";
    train_json(
        simulation({"--run.ranks=16", "--sim.cluster=h100_ib", "--sim.slow_rank=9:3", "--trace", trace}));
    const auto longest = [&](int rank) {
        return number(
            trace,
            "SELECT max(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName "
            "WHERE value NOT LIKE 'nccl%' AND deviceId = " +
                std::to_string(rank));
    };
    EXPECT_NEAR(static_cast<double>(longest(9)), 3.0 * static_cast<double>(longest(0)), 3);
}

// The answers to the five questions, of two runs whose truth is what was injected: a rank that computes 1.5
// times as long; a root unit that gathers everything at once.
TEST(Simulation, AnswersNameWhatWasInjected) {
    const TemporaryFolder folder;
    const std::string slow = folder / "slow.sqlite", even = folder / "even.sqlite";
    const Words job = {sample("gpt_7b.toml"), "--run.steps=4", "--model.layers=6"};
    const auto with = [&](Words words) {
        words.insert(words.begin(), job.begin(), job.end());
        return train_json(words);
    };
    with({"--sim.slow_rank=2:1.5", "--trace", slow});
    with({"--fsdp.wrap=root", "--trace", even});
    const Json report = trace_json({"answers", slow, even});
    const auto said = [](const Json& answers, std::size_t question) {
        return answers.at(question).at("answer").get<std::string>();
    };
    const Json& of_slow = report.at("runs").at(0).at("answers");
    EXPECT_EQ(of_slow.at(3).at("rank"), 2);
    EXPECT_THAT(said(of_slow, 3), AllOf(HasSubstr("Rank 2 is late: the other 7 ranks wait in communication "),
                                        HasSubstr("because its compute takes 1.5 times as long")));
    EXPECT_EQ(of_slow.at(4).at("rule"), "straggler");
    // Without the slow rank the run takes as long as the replay says.
    const double faster = with({"--trace", folder / "base.sqlite"}).at("average_step_us");
    const double average = trace_json({"compare", slow, even}).at("runs").at(0).at("average_step_us");
    EXPECT_NEAR(of_slow.at(4).at("figures").at(0).at("value").get<double>(), average - faster,
                0.05 * average);
    // The others have nothing to compute for as long as the slow rank makes the step longer.
    const auto exposed = [&](std::size_t figure) {
        return of_slow.at(3).at("figures").at(figure).at("value").get<double>();
    };
    EXPECT_NEAR(exposed(1) - exposed(2), average - faster, 0.05 * average);
    const Json& of_even = report.at("runs").at(1).at("answers");
    EXPECT_EQ(of_even.at(3).at("rank"), nullptr);
    EXPECT_THAT(said(of_even, 3), HasSubstr("No rank is late"));
    EXPECT_EQ(of_even.at(2).at("unit"), "root");
    const double high = trace_json({"memory", even}).at("ranks").at(0).at("peak_bytes");
    const double low = trace_json({"memory", slow}).at("ranks").at(0).at("peak_bytes");
    ASSERT_LT(low, high);
    EXPECT_THAT(said(report.at("compared"), 0), HasSubstr("slow.sqlite peaks lower"));
    EXPECT_EQ(report["compared"][0].at("figures").at(0).at("value"), low);
    EXPECT_EQ(report["compared"][0].at("figures").at(1).at("value"), high);
}

TEST(Simulation, ASweepComparesWithoutLosses) {
    const TemporaryFolder folder;
    const Json runs = train_json({"sweep", sample("mlp.toml"), "--run.device=sim", "--run.ranks=8", "-o",
                                  folder / "out", "--sim.cluster=h100_ib,a100"})
                          .at("runs");
    ASSERT_EQ(runs.size(), 2u);
    for (const Json& run : runs) {
        EXPECT_EQ(run.at("error"), nullptr);
        EXPECT_EQ(run.at("first_loss"), nullptr);
        EXPECT_GT(run.at("average_step_us"), 0.0);
    }
    EXPECT_NE(runs[0].at("average_step_us"), runs[1].at("average_step_us"));
}

TEST(Simulation, ASweepComparesCommunicationHooks) {
    const TemporaryFolder folder;
    const Json runs = train_json({"sweep", sample("mlp.toml"), "--run.device=sim", "--run.ranks=8",
                                  "--run.steps=6", "--parallel.mode=ddp", "--sim.slow_link=intra:0.001", "-o",
                                  folder / "out", "--ddp.comm_hook=none,bf16,topk:0.01,powersgd:4"})
                          .at("runs");
    ASSERT_EQ(runs.size(), 4u);
    double before = 1e300;
    for (const Json& run : runs) {
        EXPECT_EQ(run.at("error"), nullptr);
        const double step = run.at("average_step_us");
        EXPECT_LT(step, before) << run.at("settings");
        before = step;
    }
}

// Four devices with a rank each, and with two: small kernels leave the device idle between launches.
TEST(Simulation, ASweepComparesRanksPerDevice) {
    const TemporaryFolder folder;
    Words words = {"sweep",
                   sample("mlp.toml"),
                   "--run.device=sim",
                   "--run.steps=12",
                   "--sim.cluster=h100_ib",
                   "--run.ranks=4,8",
                   "--run.ranks_per_device=1,2",
                   "-o",
                   folder / "out"};
    const Json runs = train_json(words).at("runs");
    ASSERT_EQ(runs.size(), 4u);
    const Json &alone = runs[0], &shared = runs[3];
    EXPECT_GT(shared.at("items_per_second").get<double>(), 1.2 * alone.at("items_per_second").get<double>());
    EXPECT_GT(shared.at("utilization_percent").get<double>(), alone.at("utilization_percent").get<double>());
    EXPECT_GT(alone.at("utilization_percent").get<double>(), 0);
    EXPECT_LE(shared.at("utilization_percent").get<double>(), 100);
    // The trace says which ranks share a device.
    const Json use = trace_json({"utilization", shared.at("trace").get<std::string>()});
    EXPECT_EQ(use.at("job").at("devices"), 4);
    EXPECT_EQ(use.at("hosts").at(0).at("devices").at(3).at("ranks"), "6,7");
    words.emplace_back("--overwrite");
    EXPECT_THAT(train(words).out, ContainsRegex("samples/s +utilization %"));

    const Outcome one =
        train(simulation({"--sim.cluster=h100_ib", "--run.ranks=8", "--run.ranks_per_device=2"}));
    EXPECT_THAT(one.err, HasSubstr("(1 node of up to 8 × NVIDIA H100 80GB HBM3, 2 ranks on each)"));
    EXPECT_THAT(one.out, HasSubstr("Devices: 4, each with 2 ranks; a kernel of theirs runs for "));
}

// A device of 80 GB with a reserve that leaves each of two ranks 1 MB, and one rank alone 40 GB.
TEST(Simulation, TheRanksOfADeviceShareItsMemory) {
    const auto on = [](const Words& more) {
        Words words = {"--sim.cluster=h100_ib", "--run.memory_reserve=39999000000"};
        words.insert(words.end(), more.begin(), more.end());
        return train(simulation(words));
    };
    EXPECT_EQ(on({}).status, 0);
    const Outcome two = on({"--run.ranks_per_device=2"});
    EXPECT_EQ(two.status, 1);
    EXPECT_THAT(two.err,
                AllOf(HasSubstr("do not fit into the 40000000000 bytes that each of 2 ranks has of a "
                                "device of the cluster h100_ib less a reserve of 39999000000"),
                      HasSubstr("lower run.ranks_per_device, choose a sim.cluster with more")));
    EXPECT_THAT(on({"--run.ranks_per_device=2", "--dry-run"}).err,
                HasSubstr("exceeds the 1,000,000 bytes that a rank has"));
}

TEST(Simulation, RefusesImpossibleJobs) {
    const TemporaryFolder folder;
    const auto refused = [&](const Words& more, const std::string& why) {
        const Outcome outcome = train(simulation(more));
        EXPECT_EQ(outcome.status, 2) << why;
        EXPECT_EQ(outcome.out, "");
        EXPECT_THAT(outcome.err, HasSubstr(why));
    };
    refused({"--sim.cluster=h200"}, "command line: sim.cluster: there is no cost model \"h200\"");
    refused({"--sim.cluster=h200_nvlink", "--run.ranks=9"},
            "command line: run.ranks: 9 ranks do not fit the 8 devices of the cluster h200_nvlink");
    refused({"--sim.cluster=h100_ib", "--run.ranks_per_device=3"},
            "command line: run.ranks_per_device: 4 ranks cannot be divided among devices of 3 ranks each");
    refused({"--run.ranks_per_device=2"},
            "run.ranks_per_device: the ranks of a node of the cluster laptop share");
    refused({"--run.comm=local"}, "run.comm: the cost model decides how the collectives of a simulation run");
    refused({"--sim.slow_rank=4:2"}, "sim.slow_rank: there is no rank 4; use 0 to 3");
    refused({"--sim.slow_link=inter@1:0.5"}, "sim.slow_link: there is no node 1");
    write_file(folder / "mine.toml", "[cluster]\nname = \"mine\"\ndevices = 8\n[device]\nname = \"d\"\n");
    refused({"--sim.cluster", folder / "mine.toml"}, "mine.toml:4: device.type: the figure is missing");
}

// 3,600 USD for an hour of each of 4 devices: 4 USD for each second.
TEST(Simulation, PrintsThePriceIfTheModelHasOne) {
    const TemporaryFolder folder;
    const std::string model = read_file(sample("clusters/h100_ib.toml"));
    const std::string type = "type = \"gpu\"\n";
    const auto at = model.find(type);
    ASSERT_NE(at, std::string::npos);
    write_file(folder / "priced.toml", model.substr(0, at) + "price_per_hour = 3600\n" + model.substr(at));
    const Json priced = train_json(simulation({"--sim.cluster", folder / "priced.toml"}));
    EXPECT_NEAR(priced.at("simulation").at("usd_per_step").get<double>(),
                4e-6 * priced.at("average_step_us").get<double>(), 1e-12);
    EXPECT_FALSE(train_json(simulation({"--sim.cluster=h100_ib"})).at("simulation").contains("usd_per_step"));
}

// The first step's backward runs before Adam's moments exist.
TEST(Simulation, OneStepPrintsThePeakOfTheLaterSteps) {
    const auto run = [](const std::string& steps) {
        return train_json({sample("gpt_175b.toml"), "--data.batch=2", "--run.steps=" + steps});
    };
    const Json one = run("1"), more = run("4");
    const Json& simulation = one.at("simulation");
    EXPECT_EQ(simulation.at("steady_peak_bytes"), more.at("ranks").at(0).at("peak_bytes"));
    EXPECT_GT(simulation.at("steady_peak_bytes"), one.at("ranks").at(0).at("peak_bytes"));
    EXPECT_EQ(simulation.at("steady_peak_from_step"), 2);
    EXPECT_FALSE(more.at("simulation").contains("steady_peak_bytes"));
    EXPECT_THAT(train({sample("gpt_175b.toml"), "--data.batch=2"}).out, HasSubstr("from step 2 on"));
}

// Tensor groups inside the nodes, a pipeline across them: each place of the pipeline is a class of ranks.
TEST(Simulation, OfALargeMeshPrintsEachPlaceOfThePipeline) {
    const Json run = train_json({sample("llama_70b_tp_pp.toml")});
    ASSERT_EQ(run.at("ranks").size(), 1024U);
    std::set<std::int64_t> peaks;
    for (const Json& rank : run.at("ranks")) peaks.insert(rank.at("peak_bytes").get<std::int64_t>());
    EXPECT_EQ(peaks.size(), 4U);
    EXPECT_LT(*peaks.rbegin(), 78'000'000'000);
    EXPECT_THAT(train({sample("llama_70b_tp_pp.toml"), "--train.accumulation=4", "--dry-run"}).out,
                AllOf(HasSubstr("to place 3 of the pipeline group"), HasSubstr("tensor group"),
                      HasSubstr("70,553,706,496 parameters")));
}

// If the device's memory is exceeded, the run ends as a real one does; the trace up to there can be read.
TEST(Simulation, EndsWhenADeviceIsFull) {
    const TemporaryFolder folder;
    const std::string trace = folder / "sim.sqlite";
    const Outcome outcome =
        train(simulation({"--sim.cluster=v100_pcie", "--model.width=40000", "--trace", trace}));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("out of memory: "),
                      HasSubstr("into the 32000000000 bytes of a device of the cluster v100_pcie"),
                      HasSubstr("choose a sim.cluster with more, or make the units")));
    const Json info = trace_json({"info", trace});
    EXPECT_EQ(info.at("device"), "Tesla V100-PCIE-32GB (simulated)");
    EXPECT_THAT(info.at("device_note"), HasSubstr("nothing ran"));
}

TEST(Simulation, NeedsNoDataAndSaysWhatItOmits) {
    const Outcome outcome =
        train({sample("gpt-text.toml"), "--run.device=sim", "--data.path=/nowhere/at/all"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("checkpoint.save: a simulation saves nothing"),
                                   HasSubstr("data.validation: a simulation computes no loss")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
