// Runs shardscope-view: pictures of every panel without a display, wrong command lines, files that are not
// traces, and a real window under Xvfb.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/tools/run_command.h"
#include "tests/tools/view/picture.h"
#include "tests/viewer/mlp_sample.h"
#include "traces/schema/schema.h"
#include "traces/store/write/writer.h"

namespace shardscope::tools {
namespace TEST_FILE {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Runs the viewer without a display, even if the machine has one.
Outcome view(std::vector<std::string> arguments) {
    std::vector<std::string> command = {"env", "-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", SHARDSCOPE_VIEW};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_command(command);
}

// Two runs, written as the trainer writes them.
class ViewTest : public testing::Test {
  protected:
    ViewTest()
        : root_(folder_ / "root.sqlite"), linear_(folder_ / "linear.sqlite"), png_(folder_ / "out.png") {
        write(root_, false);
        write(linear_, true);
    }
    static void write(const std::string& path, bool per_linear) {
        traces::store::DatabaseWriter writer({.path = path});
        viewer::write_mlp_sample({.per_linear = per_linear}, writer);
        writer.finish(20'000'000, 0);
    }
    // The names of all files: only the original and the requested ones are expected.
    std::set<std::string> files() const {
        std::set<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
            names.insert(entry.path().filename().string());
        }
        return names;
    }

    TemporaryFolder folder_;
    std::string root_, linear_, png_;
};

TEST_F(ViewTest, PrintsItsVersionAndTheSchemas) {
    const Outcome outcome = view({"--version"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "shardscope-view " SHARDSCOPE_VERSION " (schema " +
                               std::to_string(traces::schema::kSchemaVersion) + ")\n");
}

TEST_F(ViewTest, HelpNamesEveryOptionAndPanel) {
    const Outcome outcome = view({"--help"});
    EXPECT_EQ(outcome.status, 0);
    for (const char* word : {"FILE", "--panel", "--screenshot", "--size", "--range", "--version", "runs",
                             "timeline", "modules", "summary", "memory", "compare", "Exit status"}) {
        EXPECT_THAT(outcome.out, HasSubstr(word));
    }
}

TEST_F(ViewTest, DrawsEveryPanelWithoutADisplay) {
    std::set<std::vector<std::uint32_t>> different;
    for (const char* panel : {"runs", "timeline", "modules", "summary", "memory", "compare"}) {
        const Outcome outcome =
            view({root_, linear_, "--panel", panel, "--screenshot", png_, "--size", "1000x620"});
        ASSERT_EQ(outcome.status, 0) << panel << ": " << outcome.err;
        EXPECT_EQ(outcome.out + outcome.err, "");
        const Picture picture = read_png(png_);
        EXPECT_EQ(picture.width, 1000);
        EXPECT_EQ(picture.height, 620);
        EXPECT_GT(picture.colors(), 20U) << panel;
        different.insert(picture.pixels);
    }
    EXPECT_EQ(different.size(), 6U);
    EXPECT_EQ(files(), (std::set<std::string>{"root.sqlite", "linear.sqlite", "out.png"}));
}

TEST_F(ViewTest, DrawsTheStartPageWhereNoPanelIsNamed) {
    ASSERT_EQ(view({root_, "--screenshot", png_}).status, 0);
    const Picture unnamed = read_png(png_);
    EXPECT_EQ(unnamed.width, 1600);
    EXPECT_EQ(unnamed.height, 900);
    ASSERT_EQ(view({root_, "--screenshot", png_, "--panel", "start"}).status, 0);
    EXPECT_EQ(read_png(png_).pixels, unnamed.pixels);  // and draws the same pixels twice
}

TEST_F(ViewTest, RangeChangesTheVisibleTime) {
    ASSERT_EQ(view({root_, "--screenshot", png_, "--panel", "timeline"}).status, 0);
    const Picture whole = read_png(png_);
    ASSERT_EQ(view({root_, "--screenshot", png_, "--range", "1:2.5", "--panel", "timeline"}).status, 0);
    const Picture milliseconds = read_png(png_);
    EXPECT_NE(milliseconds.pixels, whole.pixels);
    ASSERT_EQ(view({root_, "--screenshot", png_, "--range", "1000us:2500us", "--panel", "timeline"}).status,
              0);
    EXPECT_EQ(read_png(png_).pixels, milliseconds.pixels);
}

TEST_F(ViewTest, DrawsAPictureOfNothing) {
    ASSERT_EQ(view({"--screenshot", png_}).status, 0);
    EXPECT_GT(read_png(png_).colors(), 5U);
}

TEST_F(ViewTest, RefusesAWrongCommandLineWithOneSentence) {
    const std::vector<std::vector<std::string>> wrong = {
        {"--panel", "sumary"}, {"--size", "big"},    {"--size", "10x10"},  {"--range", "5"},
        {"--range", "5:1"},    {"--screenshot", ""}, {"--no-such-option"}, {"--panel"},
    };
    for (const auto& arguments : wrong) {
        std::vector<std::string> all = {root_};
        all.insert(all.end(), arguments.begin(), arguments.end());
        const Outcome outcome = view(all);
        EXPECT_EQ(outcome.status, 2) << arguments[0];
        EXPECT_EQ(outcome.out, "");
        EXPECT_THAT(outcome.err, StartsWith("shardscope-view: "));
        EXPECT_THAT(outcome.err, HasSubstr(arguments[0]));
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
}

TEST_F(ViewTest, NamesTheFileThatIsNotATrace) {
    const std::string text = folder_ / "notes.txt", absent = folder_ / "absent.sqlite",
                      cut = folder_ / "cut.sqlite";
    std::ofstream(text) << "a few words, no database\n";
    std::filesystem::copy_file(root_, cut);
    std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 3);
    std::ofstream(png_) << "an older picture";
    for (const std::string& file : {text, absent, cut, folder_.path()}) {
        // A wrong file fails with a picture requested, together with a valid file, and as a window that never
        // opens.
        for (const std::vector<std::string>& more :
             {std::vector<std::string>{"--screenshot", png_},
              std::vector<std::string>{root_, "--screenshot", png_}, std::vector<std::string>{}}) {
            std::vector<std::string> all = {file};
            all.insert(all.end(), more.begin(), more.end());
            const Outcome outcome = view(all);
            EXPECT_EQ(outcome.status, 1) << file;
            EXPECT_THAT(outcome.err, HasSubstr(file));
            EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
        }
    }
    std::string left;
    std::getline(std::ifstream(png_), left);
    EXPECT_EQ(left, "an older picture");  // a failure keeps the older file
}

TEST_F(ViewTest, SaysWhereAPictureCannotBeWritten) {
    const std::string nowhere = folder_ / "absent/out.png";
    const Outcome outcome = view({root_, "--screenshot", nowhere});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr(nowhere));
}

TEST_F(ViewTest, WithoutADisplayPointsToScreenshot) {
    const Outcome outcome = view({root_});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("--screenshot"));
}

// The GLFW path: a window opens, draws and stays until it is told to close.
TEST_F(ViewTest, OpensAWindowUnderXvfb) {
    if (run_command({"sh", "-c", "command -v xvfb-run xauth"}).status != 0) {
        GTEST_SKIP() << "xvfb-run is not installed: the window was not tried";
    }
    // The shell prints the status, because xvfb-run's own may be that of its cleanup.
    const Outcome outcome = run_command({"xvfb-run", "-a", "-s", "-screen 0 1280x800x24", "sh", "-c",
                                         R"(timeout 4 "$@"; echo "status $?")", "sh", SHARDSCOPE_VIEW, root_,
                                         linear_, "--size", "1000x620"});
    EXPECT_THAT(outcome.out, HasSubstr("status 124\n"))
        << outcome.err;  // timeout ended it, so it was still running
    EXPECT_THAT(outcome.err, Not(HasSubstr("shardscope-view:")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
