// The scripts of tests/viewer/scripts, run by the real viewer without a display. The values for ${...} come
// from shardscope-trace --format json for the same file: panels and tool must agree.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"
#include "tests/tools/view/picture.h"
#include "tests/viewer/mlp_sample.h"
#include "tests/viewer/plan_sample.h"
#include "traces/store/write/writer.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::tools {
namespace TEST_FILE {

using nlohmann::json;

const std::string kLinear = SHARDSCOPE_SAMPLES "/traces/mlp-linear.sqlite";
const std::string kRoot = SHARDSCOPE_SAMPLES "/traces/mlp-root.sqlite";

using Words = std::map<std::string, std::string>;

std::string filled_in(std::string text, const Words& words) {
    for (std::size_t at = 0; (at = text.find("${", at)) != std::string::npos;) {
        const std::size_t end = text.find('}', at);
        const std::string word = text.substr(at + 2, end - at - 2);
        const auto found = words.find(word);
        EXPECT_NE(found, words.end()) << "nothing is known for ${" << word << "}";
        const std::string value = found == words.end() ? "" : found->second;
        text.replace(at, end + 1 - at, value);
        at += value.size();
    }
    return text;
}

class ViewScripts : public testing::Test {
  protected:
    // Runs tests/viewer/scripts/NAME with the words substituted.
    Outcome run(const std::string& name, Words words) {
        words["linear"] = kLinear;
        words["root"] = kRoot;
        words["folder"] = folder_.path();
        std::ifstream file(SHARDSCOPE_SCRIPTS "/" + name);
        std::stringstream text;
        text << file.rdbuf();
        EXPECT_TRUE(file) << name;
        return run_text(name, filled_in(text.str(), words));
    }
    Outcome run_text(const std::string& name, const std::string& script) {
        const std::string path = folder_ / name;
        std::ofstream(path) << script;
        return run_command({SHARDSCOPE_VIEW, "--script", path});
    }
    static json ask(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), SHARDSCOPE_TRACE);
        arguments.insert(arguments.end(), {"--format", "json"});
        const Outcome outcome = run_command(arguments);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return json::parse(outcome.out, nullptr, false);
    }
    static std::string contents(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        EXPECT_TRUE(file) << path;
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static std::string text(const json& value) {
        return value.is_string() ? value.get<std::string>() : value.dump();
    }

    TemporaryFolder folder_;
};

// The values of rank 0's summary and memory, under `prefix`.
void add_rank_0(Words& words, const std::string& prefix, const json& summary, const json& memory) {
    const json& s = summary["ranks"][0];
    const json& m = memory["ranks"][0];
    words[prefix + "summary.average_step_us"] = s["average_step_us"].dump();
    words[prefix + "summary.steps"] = s["steps"].dump();
    words[prefix + "memory.peak_bytes"] = m["peak_bytes"].dump();
    words[prefix + "memory.peak_time_ns"] = m["peak_time_ns"].dump();
    for (const auto& [category, bytes] : m["at_peak"].items())
        words[prefix + "memory." + category] = bytes.dump();
}

TEST_F(ViewScripts, PanelsShowWhatTheToolPrints) {
    Words words;
    add_rank_0(words, "", ask({"summary", kLinear, "--rank", "0"}), ask({"memory", kLinear, "--rank", "0"}));
    // From the second step to the end of the third.
    const json steps = ask({"steps", kLinear, "--rank", "0"})["ranks"][0]["steps"];
    const std::string from = text(steps[1]["start_ns"]), to = text(steps[2]["end_ns"]);
    words["from"] = from;
    words["to"] = to;
    const std::string range = from + "ns:" + to + "ns";
    add_rank_0(words, "limited.", ask({"summary", kLinear, "--rank", "0", "--range", range}),
               ask({"memory", kLinear, "--rank", "0", "--range", range}));
    const Outcome outcome = run("numbers.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewScripts, StartSaysWhatTheVerbAnswers) {
    const json report = ask({"answers", kLinear, kRoot});
    Words words;
    for (const json& answer : report["compared"])
        words["compared." + text(answer["question"])] = text(answer["answer"]);
    for (const json& answer : report["runs"][0]["answers"])
        words[text(answer["question"])] = text(answer["answer"]);
    const Outcome outcome = run("start.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewScripts, IdleTimeHasTheNamesThatTheVerbPrints) {
    const json waits = ask({"idle", kLinear, "--rank", "0"})["ranks"][0]["waits"];
    Words words;
    double longest = 0;
    for (const json& wait : waits) {
        if (!wait["stream"].is_null()) continue;
        if (words.count("mostly") == 0) {
            std::string title = text(wait["waits_for"]);
            title[0] = static_cast<char>(title[0] - 'a' + 'A');
            words["mostly"] = title;
        }
        if (wait["longest_us"].get<double>() <= longest) continue;
        longest = wait["longest_us"].get<double>();
        words["longest"] = text(wait["longest_for"]);
    }
    const Outcome outcome = run("waits.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// The first node of this name in a module tree, and its path.
const json* find_module(const json& modules, const std::string& name, std::string& path) {
    for (const json& node : modules) {
        const std::string here = (path.empty() ? "" : path + "/") + node["name"].get<std::string>();
        std::string below = here;
        if (node["name"] == name) {
            path = here;
            return &node;
        }
        if (const json* found = find_module(node["children"], name, below)) {
            path = below;
            return found;
        }
    }
    return nullptr;
}

TEST_F(ViewScripts, AModuleIsFoundWithItsFigures) {
    const json modules = ask({"modules", kLinear, "--rank", "0"})["ranks"][0]["modules"];
    std::string path;
    const json* module = find_module(modules, "Linear_3", path);
    ASSERT_NE(module, nullptr);
    Words words = {{"module", "modules." + path}, {"row", "modules.row." + path}};
    for (const char* key : {"occurrences", "device_us", "host_us", "device_self_us"})
        words[std::string("module.") + key] = text((*module)[key]);
    const Outcome outcome = run("modules.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewScripts, CommunicationPanelsShowWhatTheVerbsPrint) {
    const auto first = [](const char* verb, const char* list) {
        return ask({verb, kLinear, "--rank", "0"})["ranks"][0][list];
    };
    Words words;
    const json unit = first("units", "units")[0];
    words["unit"] = text(unit["name"]) + " " + text(unit["phase"]);
    for (const char* key : {"gather_us", "exposed_us", "gathers"})
        words[std::string("unit.") + key] = text(unit[key]);
    for (const json& operation : first("collectives", "operations")) {
        if (operation["name"] != "all_gather") continue;
        for (const char* key : {"count", "us", "busbw_gbps"})
            words[std::string("all_gather.") + key] = text(operation[key]);
    }
    const json kernel = first("kernels", "kernels")[0];
    for (const char* key : {"name", "count", "us"}) words[std::string("kernel.") + key] = text(kernel[key]);
    const json copy = first("copies", "copies")[0];
    for (const char* key : {"name", "count", "us", "exposed_us", "gbps"})
        words[std::string("copy.") + key] = text(copy[key]);
    const json operation = first("operators", "operators")[0];
    for (const char* key : {"name", "calls", "device_us"})
        words[std::string("operator.") + key] = text(operation[key]);
    const Outcome outcome = run("communication.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewScripts, AnAreaOfAllOfARankHasTheFiguresOfTheVerbs) {
    const json kernels = ask({"kernels", kLinear, "--rank", "0"})["ranks"][0]["kernels"];
    const json& kernel = kernels[0];
    const json rank = ask({"overlap", kLinear, "--rank", "0"})["ranks"][0];
    std::int64_t collectives = 0;
    for (const json& one : kernels)
        collectives += one["communication"] ? one["count"].get<std::int64_t>() : 0;
    Words words = {{"from", "0"}, {"to", "100000000000"}};
    for (const char* key : {"name", "count", "us"}) words[std::string("kernel.") + key] = text(kernel[key]);
    words["exposed_us"] = text(rank["device_time"]["exposed_communication_us"]);
    words["collectives"] = std::to_string(collectives);
    const Outcome outcome = run("area.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewScripts, TheSearchFindsAsManyEventsAsTheVerbsCount) {
    std::int64_t kernels = 0;
    const json ranks = ask({"kernels", kLinear, "--rank", "0"})["ranks"];
    for (const json& one : ranks[0]["kernels"])
        kernels += one["communication"] ? 0 : one["count"].get<std::int64_t>();
    const Outcome outcome = run("find.script", {{"kernels", std::to_string(kernels)}});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// The viewer and the tool write the same page, of all of a trace and of a part of its time.
TEST_F(ViewScripts, TheTimelineAsHtmlIsTheTools) {
    const std::string range = "42ms:43ms";
    const Outcome outcome = run("timeline_html.script", {{"range", range}});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto page_of_tool = [&](std::vector<std::string> options) {
        const std::string path = folder_ / "tool.html";
        options.insert(options.begin(), {SHARDSCOPE_TRACE, "timeline", kLinear, "--overwrite", "-o", path});
        const Outcome made = run_command(options);
        EXPECT_EQ(made.status, 0) << made.err;
        EXPECT_THAT(made.err, testing::HasSubstr("tool.html written, "));
        return contents(path);
    };
    const std::string part = page_of_tool({"--range", range});
    EXPECT_EQ(contents(folder_ / "whole.html"), page_of_tool({}));
    EXPECT_EQ(contents(folder_ / "visible.html"), part);
    EXPECT_EQ(contents(folder_ / "window.html"), part);
}

TEST_F(ViewScripts, TwoWrapConfigurationsAreCompared) {
    const json runs = ask({"compare", kLinear, kRoot})["runs"];
    Words words;
    double peaks[2] = {};
    for (int i = 0; i < 2; ++i) {
        const std::string n = "." + std::to_string(i + 1);
        const json& run = runs[static_cast<std::size_t>(i)];
        peaks[i] = run["peak_bytes"].get<double>();
        words["step" + n] = text(run["average_step_us"]);
        words["peak" + n] = std::to_string(peaks[i] / (1 << 20));
        const auto memory = ask({"memory", i == 0 ? kLinear : kRoot, "--rank", "0"});
        words["peak" + n + ".bytes"] = text(memory["ranks"][0]["peak_bytes"]);
    }
    words["peak.change"] = std::to_string(100 * (peaks[1] / peaks[0] - 1));
    const Outcome outcome = run("compare.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// Of three open runs, the third made for this test.
TEST_F(ViewScripts, MetricsAtTheCursorAreThoseOfSql) {
    const std::string third = folder_ / "third.sqlite";
    const auto sql = [](const std::string& path, const std::string& query) {
        return text(ask({"query", path, "SELECT " + query})["rows"][0][0]);
    };
    const int samples = std::stoi(sql(kLinear, "min(sample) FROM metrics"));  // of each step
    {
        traces::store::DatabaseWriter writer({.path = third});
        viewer::write_mlp_sample({.steps = 3}, writer);
        for (int step = 1; step <= 3; ++step)
            writer.add(traces::schema::MetricRow{.step = step,
                                                 .sample = samples * (step + 1),
                                                 .time = 1000 * step,
                                                 .name = writer.intern("learning_rate"),
                                                 .value = 0.1 / step});
        writer.finish(0, 0);
    }
    Words words = {{"third", third}};
    const std::string loss = "value FROM metrics WHERE name = 'loss' ORDER BY step ";
    for (const auto& [name, path] : {std::pair("linear", kLinear), {"root", kRoot}, {"third", third}}) {
        words[name + std::string(".first")] = sql(path, loss + "LIMIT 1");
        words[name + std::string(".last")] = sql(path, loss + "DESC LIMIT 1");
    }
    words["first"] = sql(kLinear, "min(step) FROM metrics");
    words["last"] = sql(kLinear, "max(step) FROM metrics");
    words["linear.mean"] = sql(kLinear, "avg(value) FROM metrics WHERE name = 'loss'");
    words["root.peak"] = sql(kRoot, "value FROM metrics WHERE name = 'peak_bytes' ORDER BY step LIMIT 1");
    const Outcome outcome = run("training.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(read_png(folder_ / "training.png").colors(), 20U);
}

TEST_F(ViewScripts, AQuerysRowLeadsToTheTimeline) {
    const json longest =
        ask({"query", kLinear, "SELECT name FROM kernels ORDER BY duration_ns DESC LIMIT 1"});
    Words words;
    words["query.first_name"] = text(longest["rows"][0][0]);
    const Outcome outcome = run("query.script", words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// Ten seconds on one host: GPU 0 is used at 70 % with 300 W, GPU 1 idles; the two ranks gather 1 KiB and
// 1 MiB, of which each sends the other half.
void write_job(const std::string& path) {
    namespace schema = traces::schema;
    constexpr std::int64_t kMs = 1'000'000;
    traces::store::DatabaseWriter writer({.path = path});
    for (int rank = 0; rank < 2; ++rank) {
        writer.add(schema::RankRow{.rank = rank,
                                   .device = rank,
                                   .global_pid = schema::global_pid(100 + rank),
                                   .global_tid = schema::global_tid(100 + rank, 100 + rank),
                                   .host = "node0"});
        writer.add(schema::DeviceRow{.host = "node0", .kind = "gpu", .number = rank});
        for (int i = 0; i <= 100; ++i) {
            const auto add = [&](int of, const char* name, double value, int device) {
                writer.add(schema::CounterRow{.time = i * 100 * kMs,
                                              .rank = of,
                                              .name = writer.intern(name),
                                              .value = value,
                                              .host = writer.intern("node0"),
                                              .device = device});
            };
            add(rank, "gpu_utilization_percent", rank == 0 ? 70 : 0, rank);
            add(rank, "gpu_power_watts", rank == 0 ? 300 : 60, rank);
            if (rank == 0) add(-1, "host_cpu_cores", 3, -1);
        }
        for (int c = 0; c < 2; ++c) {
            const std::int64_t start = (1 + c) * 1000 * kMs, id = 10 * rank + c + 1;
            writer.add(schema::KernelRow{.start = start,
                                         .end = start + kMs,
                                         .device = rank,
                                         .stream = 7,
                                         .correlation = id,
                                         .global_pid = schema::global_pid(100 + rank),
                                         .short_name = writer.intern("ncclDevKernel_AllGather")});
            writer.add(schema::CollectiveRow{.rank = rank,
                                             .correlation = id,
                                             .operation = schema::Operation::all_gather,
                                             .bytes = c == 0 ? 1 << 10 : 1 << 20,
                                             .group = 1,
                                             .group_size = 2,
                                             .sequence = c});
        }
    }
    writer.add(schema::TopologyRow{.host = "node0",
                                   .from = "GPU0",
                                   .to_host = "node0",
                                   .to = "GPU1",
                                   .link = "NV4",
                                   .lanes = 4,
                                   .source = "nvml"});
    writer.finish(11'000 * kMs, 0);
}

TEST_F(ViewScripts, AJobsDevicesLinksAndBandwidths) {
    write_job(folder_ / "job.sqlite");
    const Outcome outcome = run("job.script", {{"bytes", "1.0 MiB"}});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// What perf script prints of a program of two threads: 60 samples, one each ms, of which `main` computes in
// most, and `loader` copies in each third.
void write_perf(const std::string& path) {
    std::ofstream file(path);
    for (int i = 0; i < 60; ++i) {
        const bool loads = i % 3 == 2;
        file << (loads ? "loader" : "main") << " 4242/" << (loads ? 4250 : 4242) << " [000] 100.0"
             << (i < 10 ? "0" : "") << i << "000: 1000000 cpu-clock:u: \n"
             << (loads ? "\t 10 memcpy+0x1 (/lib/libc.so.6)\n\t 20 next_batch+0x2 (/opt/train)\n"
                       : "\t 30 sgemm+0x1 (/lib/libblas.so)\n\t 40 forward+0x2 (/opt/train)\n")
             << "\t 50 start+0x1 (/opt/train)\n\n";
    }
}

TEST_F(ViewScripts, SamplesOfAPerfScriptAreAFlameGraph) {
    write_perf(folder_ / "perf.txt");
    const json samples = ask({"samples", folder_ / "perf.txt"});
    Words words;
    for (const json& function : samples["functions"]) {
        const std::string name = text(function["function"]);
        words[name.substr(0, name.find(' ')) + ".self"] = function["self_us"].dump();
        words[name.substr(0, name.find(' ')) + ".total"] = function["total_percent"].dump();
    }
    const Outcome outcome = run("samples.script", words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(read_png(folder_ / "samples.png").colors(), 20U);
    EXPECT_GT(read_png(folder_ / "flame.png").colors(), 5U);
}

// A rank's part of a job: a matmul and an all-reduce, as Kineto writes them.
void write_part(const std::string& path, int rank) {
    std::ofstream(path) << R"({"schemaVersion": 1, "distributedInfo": {"world_size": 2, "rank": )" << rank
                        << R"(}, "traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000, "dur": 400,
  "args": {"device": 0, "stream": 7, "correlation": 1}},
 {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 8, "ts": 1500,
  "dur": 300, "args": {"device": 0, "stream": 8, "correlation": 2}}]})";
}

class ViewFiles : public ViewScripts {
  protected:
    void SetUp() override {
        namespace fs = std::filesystem;
        fs::create_directory(folder_ / "sub");
        fs::copy_file(kLinear, folder_ / "linear.sqlite");
        fs::copy_file(kLinear, folder_ / "sub/deep.sqlite");
        fs::copy_file(kRoot, folder_ / "root.sqlite");
        std::ofstream(folder_ / "notes.txt") << "no trace\n";
        for (const int rank : {0, 1}) write_part(folder_ / ("rank" + std::to_string(rank) + ".json"), rank);
    }
};

TEST_F(ViewFiles, WindowsChooseFilesSaveAndFindCommands) {
    const Outcome outcome = run("windows.script", {});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    std::ifstream table(folder_ / "units.json");
    EXPECT_TRUE(json::parse(table, nullptr, false).is_array());
    EXPECT_GT(read_png(folder_ / "units.png").colors(), 20U);
    std::stringstream report;
    report << std::ifstream(folder_ / "all.html").rdbuf();
    EXPECT_THAT(report.str(), testing::HasSubstr("Where they differ"));
    for (const char* name : {"linear.sqlite", "root.sqlite", "deep.sqlite"})
        EXPECT_THAT(report.str(), testing::HasSubstr(name));
}

TEST_F(ViewFiles, TheKeyboardOpensMenusChangesKeysAndFindsFiles) {
    const Outcome outcome = run("desk.script", {});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// Another process opens what the script has saved.
TEST_F(ViewFiles, ASessionOpensAtTheSamePlace) {
    std::ofstream(folder_ / "bad.shardscope-session") << "{}\n";
    const Outcome outcome = run("session.script", {});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string look = folder_ / "look.script", saved = folder_ / "sub/a.shardscope-session";
    std::ofstream(look) << "wait\nexpect timeline.find gemm\nexpect timeline.field.kind Kernel\n"
                           "expect app.status contains root.sqlite\nexpect app.notice absent\n"
                           "expect \"timeline.row.rank 1/stream 0\" compute\n";
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"--session", saved}, std::vector<std::string>{saved}}) {
        std::vector<std::string> command{SHARDSCOPE_VIEW, "--script", look, "--size", "1400x820"};
        command.insert(command.end(), arguments.begin(), arguments.end());
        const Outcome opened = run_command(command);
        EXPECT_EQ(opened.status, 0) << opened.err;
    }
    const Outcome refused = run_command({SHARDSCOPE_VIEW, "--session", folder_ / "bad.shardscope-session",
                                         "--screenshot", folder_ / "none.png"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, testing::HasSubstr("this session cannot be opened: it is not a session"));
}

// Another process goes to the link that the script has copied, in a copy of the trace.
TEST_F(ViewFiles, ViewsAndLinksLeadBackToTheirPlaces) {
    const Outcome outcome = run("views.script", {});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    ASSERT_TRUE(outcome.out.starts_with("shardscope:1?")) << outcome.out;
    const std::string link = outcome.out.substr(0, outcome.out.find('\n'));
    std::ofstream(folder_ / "look.script") << "wait\npanel timeline\nwait\nexpect app.problem.1 absent\n"
                                              "action copy_link\nprint app.link\n";
    const Outcome followed = run_command({SHARDSCOPE_VIEW, link, folder_ / "root.sqlite",
                                          folder_ / "sub/deep.sqlite", "--script", folder_ / "look.script"});
    EXPECT_EQ(followed.status, 0) << followed.err;
    EXPECT_EQ(followed.out.substr(followed.out.find('&')), outcome.out.substr(outcome.out.find('&')));
    const Outcome lost =
        run_command({SHARDSCOPE_VIEW, link, folder_ / "root.sqlite", "--screenshot", folder_ / "lost.png"});
    EXPECT_EQ(lost.status, 1);
    EXPECT_THAT(lost.err,
                testing::HasSubstr("The link is to linear.sqlite (5,335 events), and no open trace has this "
                                   "content"));
}

TEST_F(ViewFiles, PanesAreSplitMovedAndClosedByKeysMenusAndMouse) {
    const Outcome outcome = run("panes.script", {});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewFiles, ASecondWindowHasPanesOfItsOwn) {
    const Outcome outcome = run("second_window.script", {});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(read_png(folder_ / "second.png").colors(), 20U);
}

TEST_F(ViewScripts, ARunningJobSaysSo) {
    const std::string path = folder_ / "live.sqlite";
    traces::store::DatabaseWriter writer({.path = path});
    const auto step = viewer::mlp_in_progress({.per_linear = true}, writer);
    step();
    step();
    const Outcome outcome = run("live.script", {{"live", path}});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewFiles, TwoRunsLieOnOneTimelineAlignedByStep) {
    const Outcome outcome = run("two_runs.script", {});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(ViewScripts, EveryPanelHasAPicture) {
    const std::string plan = folder_ / "plan.sqlite";
    traces::store::DatabaseWriter writer({.path = plan});
    viewer::add_plan_sample(writer);
    writer.finish(0, 0);
    std::string script = "set size 1400x820\nopen " + kLinear + " " + kRoot + "\nwait\n";
    for (const viewer::panels::PanelEntry& panel : viewer::panels::panel_table()) {
        const std::string name(panel.name);
        // The plan is a separate file.
        if (name == "plan") script += "open " + plan + "\nwait\nset trace plan.sqlite\n";
        script += "panel " + name + "\nwait\nshot " + folder_.path() + "/" + name + ".png\n";
    }
    const Outcome outcome = run_text("pictures.script", script);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    constexpr int kRail = 260, kMenus = 60, kStatus = 30;  // pixels around every panel, with a margin
    std::map<std::vector<std::uint32_t>, std::string_view> seen;
    for (const viewer::panels::PanelEntry& panel : viewer::panels::panel_table()) {
        Picture picture = read_png(folder_ / (std::string(panel.name) + ".png"));
        EXPECT_EQ(picture.width, 1400) << panel.name;
        ASSERT_EQ(picture.height, 820) << panel.name;
        picture.height -= kStatus;
        EXPECT_GT(picture.colors_from(kRail, kMenus), 20U) << panel.name << " shows nothing";
        const auto [other, is_new] = seen.emplace(std::move(picture.pixels), panel.name);
        EXPECT_TRUE(is_new) << panel.name << " shows what " << other->second << " shows";
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
