// The HTML report: no text of a trace becomes markup, nothing confidential is contained, and the memory curve
// is folded correctly. A real browser renders it if one is installed.
#include "traces/report/html_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/traces/run_builder.h"
#include "tests/traces/temporary_folder.h"
#include "traces/report/html_parts.h"

namespace shardscope::traces::report {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kScript = "<script>document.title='owned'</script>";
constexpr std::string_view kImage = "\"><img src=x onerror=\"document.title='owned'\">";
constexpr std::string_view kSql = "'; DROP TABLE StringIds; --";
constexpr std::string_view kStyle = "</style></title></details><h1>&lt;owned&amp;";

// Every name that a trace can contain is markup or SQL.
std::unique_ptr<store::Trace> hostile_trace() {
    RunBuilder run(2);
    const std::string module = "nn.Module: " + std::string(kScript);
    run.sink().add(schema::RunInfoRow{"model." + std::string(kImage), std::string(kScript)});
    run.sink().add(schema::RunInfoRow{"fsdp.wrap", std::string(kSql)});
    run.sink().add(schema::ModuleRow{
        .id = 0, .name = std::string(kScript), .class_name = std::string(kImage), .path = "a"});
    run.sink().add(schema::UnitRow{.id = 0, .module = 0, .name = std::string(kImage), .bytes = 4096});
    run.sink().add(
        schema::DiagnosticRow{.time = 5, .severity = schema::Severity::warning, .text = std::string(kStyle)});
    for (int r = 0; r < 2; ++r) {
        run.step(r, 0, 0, 10'000);
        run.range(r, 100, 5'000, module, 0);
        run.range(r, 200, 4'000, "nn.Module: " + std::string(kStyle), 0);
        run.kernel(r, 300, 2'000, 250, 7, kScript);
        run.collective(r, 2'100, 4'200, {.bytes = 4096, .group_size = 2, .unit = 0, .launched = 260});
        run.allocate(
            r, 120, 0x1000, 5 << 20,
            {.category = schema::MemoryCategory::parameters, .unit = 0, .module = 0, .name = kImage});
        run.allocate(r, 900, 0x2000, 1 << 20,
                     {.category = schema::MemoryCategory::activations, .name = kStyle});
        run.free(r, 3'000, 0x2000, 1 << 20, {.category = schema::MemoryCategory::activations});
    }
    return run.take();
}

// Rank 0's loss over ten steps, from the seventh of which it diverges; a name is markup.
TEST(HtmlReport, ShowsTrainingWithWhereItDiverged) {
    RunBuilder run(2);
    const schema::StringId hostile = run.sink().intern(kScript),
                           rate = run.sink().intern("images_per_second"),
                           diverged = run.sink().intern("diverged"), memory = run.sink().intern("used_bytes");
    run.sink().add(schema::MetricRow{.step = 3, .time = 3900, .name = memory, .value = 3 << 20});
    for (int s = 0; s < 10; ++s) {
        for (const int rank : {0, 1}) run.step(rank, s, s * 1000, s * 1000 + 900);
        run.sink().add(schema::LossRow{.step = s, .loss = s < 6 ? 3.0 - 0.25 * s : INFINITY});
        run.sink().add(
            schema::MetricRow{.step = s, .time = s * 1000 + 900, .name = rate, .value = 100.0 + s});
    }
    run.sink().add(schema::MetricRow{.step = 6, .time = 6900, .name = diverged, .value = 1});
    run.sink().add(schema::MetricRow{.step = 2, .time = 2900, .name = hostile, .value = 1});
    const std::string html = html_report({reported_run(*run.take(), "run.sqlite", {})}, std::nullopt, {});
    EXPECT_THAT(html, HasSubstr("<a href=\"#training\">Training</a>"));
    EXPECT_THAT(html, HasSubstr("The run diverged from step 6 on (counted from 0)."));
    EXPECT_THAT(html, HasSubstr("images_<wbr>per_<wbr>second<div class=\"dim small\">sum over ranks</div>"));
    EXPECT_THAT(html, HasSubstr("3.0 MiB"));
    EXPECT_THAT(html, Not(HasSubstr(kScript)));
    // 6 finite losses fall over two thirds of the width; the dashed line is at step 6 of 0 to 9.
    EXPECT_THAT(html, HasSubstr("d=\"M2.0 2.0L19.3 8.0L36.7 14.0L54.0 20.0L71.3 26.0L88.7 32.0\"/>"
                                "<path class=\"peak\" d=\"M106.0 0V34\"/>"));
}

std::string report_of(const store::Trace& trace, const std::string& path, const HtmlOptions& options = {}) {
    return html_report({reported_run(trace, path, {})}, std::nullopt, options);
}

// Two steps of 10 us; the second allocates 3 MB more than the first's 1 MB.
std::unique_ptr<store::Trace> two_steps() {
    RunBuilder run(2);
    for (int r = 0; r < 2; ++r) {
        for (int s = 0; s < 2; ++s) {
            const std::int64_t start = 10'000 * s;
            run.step(r, s, start, start + 10'000);
            run.kernel(r, start + 300, start + 2'000, start + 250);
            run.allocate(r, start + 120, 0x1000 + s, s == 0 ? 1 << 20 : 3 << 20);
        }
    }
    return run.take();
}

// The five answers stand above everything else, and each link leads to a section that is there.
TEST(HtmlReport, BeginsWithTheAnswersAndLinksToTheirEvidence) {
    const auto trace = hostile_trace();
    const std::vector<ReportedRun> runs = {reported_run(*trace, "a.sqlite", {}),
                                           reported_run(*trace, "b.sqlite", {})};
    const std::string one = html_report({runs.front()}, std::nullopt);
    const std::string two = html_report(runs, reported_comparison({trace.get(), trace.get()}, {{}, {}}));
    for (const std::string& html : {one, two}) {
        EXPECT_LT(html.find("<dl class=\"answers\">"), html.find("<section"));
        const std::regex link("<dt><a href=\"#([^\"]*)\">");
        int links = 0;
        for (std::sregex_iterator at(html.begin(), html.end(), link), end; at != end; ++at, ++links)
            EXPECT_THAT(html, HasSubstr("<section id=\"" + (*at)[1].str() + "\">"));
        EXPECT_GE(links, 4);
    }
    EXPECT_THAT(one, HasSubstr("Each of 2 ranks peaks at 6.0 MiB"));
    EXPECT_THAT(two, HasSubstr("<a href=\"#comparison\">Which configuration peaks lower, and why?</a>"));
    EXPECT_THAT(two, HasSubstr("Both runs peak alike, at 6.0 MiB."));
    EXPECT_THAT(two, HasSubstr("<a href=\"#run2-memory\">"));
}

TEST(HtmlReport, CoversOnlyTheSelectedPart) {
    const auto trace = two_steps();
    const analysis::Selection first{.rank = 1, .first_step = 0, .last_step = 0};
    const ReportedRun run = reported_run(*trace, "run.sqlite", first);
    ASSERT_EQ(run.curves.size(), 1U) << "of rank 1";
    EXPECT_EQ(run.curves[0].front().time, 0);
    EXPECT_EQ(run.curves[0].back().time, 10'000) << "the step's end";
    EXPECT_EQ(run.curves[0].back().total, 1 << 20) << "what comes later is not in the curve";
    const auto kernels = std::find_if(run.info.counts.begin(), run.info.counts.end(),
                                      [](const auto& count) { return count.first == "kernels"; });
    ASSERT_NE(kernels, run.info.counts.end());
    EXPECT_EQ(kernels->second, 1) << "of 4 in the file";
    const std::string html = html_report({run}, std::nullopt);
    EXPECT_THAT(html, HasSubstr("Of this run only rank 1, step 0."));
    EXPECT_THAT(html, HasSubstr("<b>1 × 1</b>")) << "ranks × steps";
    EXPECT_THAT(html_report({reported_run(*trace, "run.sqlite", {})}, std::nullopt),
                Not(HasSubstr("Of this run only")));
}

// A step of `us` microseconds in which `name` runs for half of it.
std::unique_ptr<store::Trace> one_kernel(const char* name, std::int64_t us) {
    RunBuilder run(1);
    for (int s = 0; s < 3; ++s) {
        const std::int64_t start = s * us * 1000;
        run.step(0, s, start, start + us * 1000);
        run.kernel(0, start + 100, start + 100 + us * 500, start + 50, 7, name);
    }
    return run.take();
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

// The text of the first table row after `from` whose first cell is `name`.
std::string row_of(const std::string& html, std::size_t from, const std::string& name) {
    const std::size_t begin = html.find(">" + name + "<", from);
    if (begin == std::string::npos) return "no row " + name;
    const std::string row = html.substr(begin, html.find("</tr>", begin) - begin);
    const std::string words = std::regex_replace("<" + row, std::regex("<[^>]*>"), " ");
    std::string text = std::regex_replace(words, std::regex("\\s+"), " ");
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

TEST(HtmlReport, ComparesEachOfSeveralRunsWithTheFirst) {
    const auto first = one_kernel("gemm", 100), second = one_kernel("gemm", 200),
               third = one_kernel("other", 100);
    const std::vector<const store::Trace*> traces = {first.get(), second.get(), third.get()};
    std::vector<ReportedRun> runs;
    for (std::size_t i = 0; i < traces.size(); ++i)
        runs.push_back(reported_run(*traces[i], "run" + std::to_string(i) + ".sqlite", {}));
    const std::string html =
        html_report(runs, reported_comparison(traces, std::vector<analysis::Selection>(3)));
    EXPECT_THAT(html, HasSubstr("Side by side"));
    EXPECT_THAT(html, HasSubstr("Where they differ"));
    for (const char* name : {"run0.sqlite", "run1.sqlite", "run2.sqlite"})
        EXPECT_GE(count_of(html, ">" + std::string(name)), 3U) << name << ": in each table and by itself";
    // Kernel time per step: gemm 50 us, then 100 us (a share of +100 %), then none; other: 50 us in the
    // third.
    const std::size_t kernels = html.find("<h3>Kernels</h3>");
    ASSERT_NE(kernels, std::string::npos);
    EXPECT_EQ(row_of(html, kernels, "Name"),
              "Name run0.sqlite (µs/step) run1.sqlite (µs/step) vs. first run run2.sqlite (µs/step) vs. "
              "first run");
    EXPECT_EQ(row_of(html, kernels, "gemm"), "gemm 50.0 100.0 +100.00 % - gone");
    EXPECT_EQ(row_of(html, kernels, "other"), "other - - 50.0 new");
    const std::size_t summary = html.find("Mean per step");
    EXPECT_EQ(row_of(html, summary - 1, "Mean per step"), "Mean per step Rank 0 (µs) Rank 0 (%)");
}

TEST(HtmlReport, HasNothingPerStepForATraceWithoutSteps) {
    RunBuilder run(1);
    run.kernel(0, 1'000, 5'000, 500, 7, "gemm");
    const auto trace = run.take();
    const std::vector<const store::Trace*> traces = {trace.get(), trace.get()};
    const std::vector<ReportedRun> runs(2, reported_run(*trace, "run.sqlite", {}));
    const std::string html =
        html_report(runs, reported_comparison(traces, std::vector<analysis::Selection>(2)));
    for (const char* words : {"us/step", "ms per step", "average step", "Mean per step", "Step time"})
        EXPECT_THAT(html, Not(HasSubstr(words)));
    EXPECT_THAT(html, HasSubstr("Whole trace (µs)"));
    EXPECT_THAT(html, HasSubstr("run.sqlite (µs)")) << "of the kernels";
}

TEST(HtmlReport, HasNoComparisonForOneRun) {
    const auto trace = one_kernel("gemm", 100);
    EXPECT_FALSE(reported_comparison({trace.get()}, std::vector<analysis::Selection>(1)));
}

TEST(HtmlReport, EscapesEveryNameOfATrace) {
    const auto trace = hostile_trace();
    const std::string html = report_of(*trace, std::string(kScript));
    EXPECT_THAT(html, Not(HasSubstr("<script")));
    EXPECT_THAT(html, Not(HasSubstr("<img")));
    EXPECT_THAT(html, Not(HasSubstr("<h1>&lt;owned")));
    EXPECT_THAT(html, HasSubstr("&lt;script&gt;document.title=&#39;owned&#39;&lt;/script&gt;"));
    EXPECT_THAT(html, HasSubstr("&quot;&gt;&lt;img src=x onerror=&quot;"));
    EXPECT_THAT(html, HasSubstr("&#39;; DROP TABLE StringIds; --"));
    EXPECT_THAT(html, HasSubstr("&lt;h1&gt;&amp;lt;owned&amp;amp;"));
}

TEST(HtmlReport, LoadsNothingAndRunsNothing) {
    const std::string html = report_of(*hostile_trace(), "run");
    EXPECT_THAT(html, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"));
    for (const char* word : {"http:", "https:", "<link", "url(", "@import", "<script", "javascript:"})
        EXPECT_THAT(html, Not(HasSubstr(word)));
}

TEST(HtmlReport, PrintsTheAnalysesNumbers) {
    const std::string html = report_of(*hostile_trace(), "/somewhere/run.sqlite");
    EXPECT_THAT(html, HasSubstr("<title>run.sqlite</title>"));
    // 5 MB of parameters and 1 MB of activations: 6 MB, 83.33 % and 16.67 %.
    EXPECT_THAT(html, HasSubstr("Peak 6.00 MiB"));
    EXPECT_THAT(html, HasSubstr("83.33"));
    EXPECT_THAT(html, HasSubstr("16.67"));
    EXPECT_THAT(html, HasSubstr("all_gather"));
}

TEST(HtmlReport, RedactsMachinesPathsAndCommands) {
    RunBuilder run;
    run.sink().add(
        schema::RankRow{.rank = 1, .device = 1, .global_pid = RunBuilder::pid(1), .host = "node17.example"});
    run.sink().add(schema::RunInfoRow{"run.trace", "/home/someuser/secret/run.sqlite"});
    run.sink().add(schema::RunInfoRow{"data.source", "/data/someuser"});
    run.sink().add(schema::RunInfoRow{"command", "train --key hush"});
    run.sink().add(schema::RunInfoRow{"model.width", "64"});
    run.sink().add(schema::DiagnosticRow{
        .time = 1, .severity = schema::Severity::warning, .text = "crashed on node17.example"});
    run.step(0, 0, 0, 1000);
    run.range(0, 0, 1000, "nn.Module: /home/someuser/model.py on node17.example");
    run.kernel(0, 10, 20, 5);
    const auto trace = run.take();
    const std::string open = report_of(*trace, "/home/someuser/run.sqlite");
    const std::string redacted = report_of(*trace, "/home/someuser/run.sqlite", {.redact = true});
    for (const char* word : {"someuser", "node17", "secret", "hush", "model.py"}) {
        EXPECT_THAT(open, HasSubstr(word));
        EXPECT_THAT(redacted, Not(HasSubstr(word)));
    }
    EXPECT_THAT(redacted, HasSubstr("model.width"));
    EXPECT_THAT(redacted, HasSubstr("run.sqlite"));
}

TEST(HtmlReport, FoldsTheMemoryCurveToItsHighestMoments) {
    // 1000 states in 100 columns; the one high moment lasts a nanosecond and must be visible.
    std::vector<analysis::MemoryPoint> curve;
    for (int i = 0; i < 1000; ++i) {
        analysis::MemoryPoint point{.time = i * 10, .total = 100, .bytes = {}};
        if (i == 555) point.total = 1000;
        point.bytes[0] = point.total;
        curve.push_back(point);
    }
    const std::string svg = memory_curve_svg(curve, {.peak_bytes = 1000, .peak_time_ns = 5550}, 180, 150);
    // The plot is 100 high and starts at 24: 1000 is at 24 + 100 (1 - 1 / 1.04) = 27.8, 100 at 114.4.
    EXPECT_THAT(svg, HasSubstr("V27.8"));
    EXPECT_THAT(svg, HasSubstr("V114.4"));
    // The lowest total stays 100 throughout: one straight line.
    EXPECT_THAT(svg, HasSubstr("class=\"low\" d=\"M70 114.4H170\""));
}

// The output of a command; nullopt if it cannot be run.
std::optional<std::string> output_of(const std::string& command) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    if (!pipe) return std::nullopt;
    std::string text;
    char buffer[4096];
    while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe.get())) text.append(buffer, got);
    return text;
}

TEST(HtmlReport, ShowsHostileNamesAsTextInABrowser) {
    if (std::system("command -v chromium > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no chromium";
    const TemporaryFolder folder;
    const std::string page = folder / "report.html";
    std::ofstream(page) << report_of(*hostile_trace(), "run");
    const std::string log = folder / "log";
    const auto dom = output_of(
        "timeout 60 chromium --headless=new --no-sandbox --disable-gpu --enable-logging=stderr "
        "--user-data-dir='" +
        (folder / "profile") + "' --dump-dom 'file://" + page + "' 2> '" + log + "'");
    ASSERT_TRUE(dom);
    if (dom->empty()) GTEST_SKIP() << "chromium does not start here";
    EXPECT_THAT(*dom, HasSubstr("<title>run</title>"));  // no script has changed it
    EXPECT_THAT(*dom, Not(HasSubstr("<script")));
    EXPECT_THAT(*dom, Not(HasSubstr("<img")));
    EXPECT_THAT(*dom, HasSubstr("&lt;script&gt;document.title='owned'&lt;/script&gt;"));
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) EXPECT_THAT(line, Not(HasSubstr("CONSOLE"))) << line;
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::report
