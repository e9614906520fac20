// `cmake --install` puts complete tools under a prefix: they run there, and find their files there.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_command.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Installed : public ::testing::Test {
  protected:
    Installed() {
        const Outcome install =
            run_command({SHARDSCOPE_CMAKE, "--install", SHARDSCOPE_BUILD, "--prefix", prefix_.path()});
        if (install.status != 0)
            throw std::runtime_error("cmake --install failed: " + install.out + install.err);
    }
    std::string tool(const std::string& name) const { return prefix_ / ("bin/" + name); }
    std::string sample(const std::string& name) const {
        return prefix_ / ("share/shardscope/samples/" + name);
    }

    // Every tool prints its name, the version and the schema's version.
    void expect_version(const std::string& name) const {
        const Outcome version = run_command({tool(name), "--version"});
        EXPECT_EQ(version.status, 0) << version.err;
        EXPECT_THAT(version.out, StartsWith(name + " " + SHARDSCOPE_VERSION));
        EXPECT_THAT(version.out, HasSubstr("schema"));
        EXPECT_EQ(version.err, "");
    }
    void expect_help(const std::string& name, const std::string& option) const {
        const Outcome help = run_command({tool(name), "--help"});
        EXPECT_EQ(help.status, 0) << help.err;
        EXPECT_THAT(help.out, HasSubstr(name));
        EXPECT_THAT(help.out, HasSubstr(option));
        EXPECT_EQ(help.err, "");
    }

    TemporaryFolder prefix_;
};

TEST_F(Installed, TheTraceToolRuns) {
    expect_version("shardscope-trace");
    expect_help("shardscope-trace", "compare");
}

TEST_F(Installed, SamplesAreNextToTheTools) {
    for (const std::string name : {"mlp.toml", "gpt.toml", "ddp.toml", "queries"}) {
        EXPECT_TRUE(fs::exists(sample(name))) << sample(name);
    }
}

#ifdef SHARDSCOPE_HAS_TRAINER
TEST_F(Installed, TheTrainerRunsAnInstalledSampleAndItsTraceIsWhole) {
    expect_version("shardscope-train");
    expect_help("shardscope-train", "limit_all_gathers");
    const std::string trace = prefix_ / "mlp.sqlite";
    const Outcome train = run_command({tool("shardscope-train"), sample("mlp.toml"), "--run.steps=2",
                                       "--model.width=32", "--trace", trace});
    ASSERT_EQ(train.status, 0) << train.err;
    const Outcome check = run_command({tool("shardscope-trace"), "check", trace});
    EXPECT_EQ(check.status, 0) << check.out << check.err;
}
#endif

#ifdef SHARDSCOPE_HAS_PROFILER
TEST_F(Installed, TheRecorderFindsItsInjectedLibraryAndExitsAsItsCommand) {
    expect_version("shardscope-record");
    expect_help("shardscope-record", "--overwrite");
    const std::string trace = prefix_ / "record.sqlite";
    const Outcome record = run_command({tool("shardscope-record"), "-o", trace, "--", "/bin/sh", "-c",
                                        "test -r \"$NVTX_INJECTION64_PATH\" && exit 7"});
    EXPECT_EQ(record.status, 7) << record.err;
    EXPECT_TRUE(fs::exists(trace));
}
#endif

#ifdef SHARDSCOPE_HAS_VIEWER
TEST_F(Installed, TheViewerRuns) {
    expect_version("shardscope-view");
    expect_help("shardscope-view", "--screenshot");
    for (const char* file : {"applications/shardscope-view.desktop", "mime/packages/shardscope.xml",
                             "icons/hicolor/scalable/apps/shardscope-view.svg"})
        EXPECT_TRUE(fs::exists(std::filesystem::path(prefix_ / "share") / file)) << file;
}
#endif

}  // namespace TEST_FILE
}  // namespace shardscope::tools
