// The scripts that a newcomer runs first: what they install, and their messages if they cannot. Package
// managers are simulated by small scripts in a folder that comes first in PATH; nothing is installed.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_command.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kScripts = SHARDSCOPE_SCRIPTS;

class Packages : public ::testing::Test {
  protected:
    // A program with that name that runs `body` under bash.
    void play(const std::string& name, const std::string& body) {
        std::ofstream(folder_ / name) << "#!/bin/bash\n" << body << "\n";
        fs::permissions(folder_ / name, fs::perms::owner_all);
    }
    // dpkg-query that knows all packages except `missing`; apt-get that logs its arguments and exits with
    // `status`; sudo that just runs its command.
    void play_debian(const std::string& missing, int status) {
        play("dpkg-query", "[[ \" " + missing + " \" == *\" ${*: -1} \"* ]] && exit 1; echo -n installed");
        play("apt-get", "echo \"$*\" >>" + log() + "; exit " + std::to_string(status));
        play("sudo", "exec \"$@\"");
    }
    Outcome run(const std::vector<std::string>& arguments) {
        std::vector<std::string> command = {"env", "PATH=" + folder_.path() + ":/usr/bin:/bin", "bash",
                                            kScripts + "/scripts/packages.sh"};
        command.insert(command.end(), arguments.begin(), arguments.end());
        return run_command(command);
    }
    std::string log() const { return folder_ / "apt-get.log"; }
    std::string asked() const {
        std::ifstream stream(log());
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    TemporaryFolder folder_;
};

TEST_F(Packages, InstalledOnesAreLeftAlone) {
    play_debian("", 0);
    const Outcome outcome = run({"build", "view", "test"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "");
    EXPECT_EQ(asked(), "");  // not even an update was requested
}

TEST_F(Packages, OnlyMissingOnesAreInstalledWithoutQuestions) {
    play_debian("libfmt-dev ninja-build", 0);
    const Outcome outcome = run({"build"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "-- installing ninja-build libfmt-dev\n");
    EXPECT_THAT(asked(), HasSubstr(" update\n"));
    EXPECT_THAT(asked(), EndsWith(" install --yes --no-install-recommends ninja-build libfmt-dev\n"));
}

TEST_F(Packages, AreNamedIfTheyCannotBeInstalled) {
    play_debian("libfmt-dev ninja-build", 100);
    const Outcome outcome = run({"build"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err,
                EndsWith("install these packages, then run this again: ninja-build libfmt-dev\n"));
}

TEST_F(Packages, AreNamedOnASystemWithoutApt) {
    const Outcome outcome =
        run_command({"env", "PATH=/nonexistent", "/bin/bash", kScripts + "/scripts/packages.sh", "lint"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("this system has no apt-get"));
    EXPECT_THAT(outcome.err, EndsWith(": clang-format clang-tidy shellcheck universal-ctags git\n"));
}

TEST_F(Packages, AreForAKnownPurpose) {
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{}, {"biuld"}, {"--list"}}) {
        const Outcome outcome = run(wrong);
        EXPECT_EQ(outcome.status, 2);
        EXPECT_THAT(outcome.err, HasSubstr("use build, mpi, view, test, lint, sanitize or package"));
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    }
}

// Runs the check of scripts/type_names.sh on two headers.
Outcome check_type_names(const std::string& left, const std::string& right) {
    const TemporaryFolder folder;
    std::ofstream(folder / "left.h") << left;
    std::ofstream(folder / "right.h") << right;
    return run_command({kScripts + "/scripts/type_names.sh", folder / "left.h", folder / "right.h"});
}

TEST(TypeNames, AreRefusedWhenTwoFilesDefineOneName) {
    struct Case {
        std::string name, left, right;
    };
    const std::string memory = "namespace room {\n// Of memory.\nstruct Block { int bytes; };\n}\n";
    for (const Case& c :
         {Case{"room::Block", memory, "namespace room {\nclass Block final { char of[9]; };\n}"},
          Case{"room::Block", memory, "namespace room {\ntemplate <class T> class Block { T of; };\n}"},
          Case{"room::inner::Kind", "namespace room::inner {\n\nenum class Kind { a };\n}",
               "namespace room { namespace inner {\nenum class Kind : short { b }; } }"},
          Case{"Live", "\n\nunion Live { int a; };\n", "\nstruct Live { char b; };\n"}}) {
        const Outcome outcome = check_type_names(c.left, c.right);
        EXPECT_EQ(outcome.status, 1) << c.name;
        EXPECT_THAT(outcome.out, HasSubstr("right.h:2: " + c.name + " is a type of "));
        EXPECT_THAT(outcome.out, HasSubstr("left.h:3, too\n"));
        EXPECT_THAT(outcome.err, HasSubstr("give one of the types above another name"));
    }
}

TEST(TypeNames, MayBeRepeatedIfTheLinkerKeepsThemApart) {
    const std::string own = "namespace room {\nstruct Block { int bytes; };\n}\n";
    for (const std::string other :
         {"namespace room {\nnamespace {\nstruct Block { char of[9]; };\n}\n}\n",
          "namespace hall {\nstruct Block { char of[9]; };\n}\n", "namespace room {\nstruct Block;\n}\n",
          "namespace room {\nvoid f() {\nstruct Block { char of[9]; } b;\n}\n}\n",
          "namespace room {\nstruct Wall { struct Block { char of[9]; }; };\n}\n"}) {
        const Outcome outcome = check_type_names(own, other);
        EXPECT_EQ(outcome.status, 0) << other;
        EXPECT_EQ(outcome.out + outcome.err, "") << other;
    }
}

// Checks a small source tree: `files` (path, text), and a page that lists traces/low before traces/high.
Outcome check_includes(const std::vector<std::pair<std::string, std::string>>& files) {
    const TemporaryFolder folder;
    const auto write = [&](const std::string& path, const std::string& text) {
        fs::create_directories(fs::path(folder / path).parent_path());
        std::ofstream(folder / path) << text;
    };
    write("docs/architecture.md", "| traces/low | 2 | it |\n| traces/high | 2 | it |\n| viewer | 2 | it |\n");
    for (const auto& [path, text] : files) write(path, text);
    fs::create_directories(folder / "scripts");
    fs::copy_file(kScripts + "/scripts/check_includes.sh", folder / "scripts/check_includes.sh");
    EXPECT_EQ(run_command({"git", "-C", folder.path(), "init", "-q"}).status, 0);
    EXPECT_EQ(run_command({"git", "-C", folder.path(), "add", "."}).status, 0);
    return run_command({"bash", folder / "scripts/check_includes.sh"});
}

TEST(Includes, RunOneWay) {
    const std::pair<std::string, std::string> low = {"traces/low/a.h", "#pragma once\n"},
                                              high = {"traces/high/b.h", "#include \"traces/low/a.h\"\n"},
                                              viewer = {"viewer/main.cpp", "#include \"traces/high/b.h\"\n"};
    const Outcome whole = check_includes({low, high, viewer});
    EXPECT_EQ(whole.status, 0);
    EXPECT_EQ(whole.out + whole.err, "");

    const auto refused = [&](const std::string& path, const std::string& text) {
        std::vector<std::pair<std::string, std::string>> files = {low, high, viewer};
        std::erase_if(files, [&](const auto& file) { return file.first == path; });
        files.emplace_back(path, text);
        const Outcome outcome = check_includes(files);
        EXPECT_EQ(outcome.status, 1) << path << text;
        return outcome.out;
    };
    EXPECT_THAT(
        refused("traces/low/a.h", "\n#include \"traces/high/b.h\"\n"),
        AllOf(HasSubstr("traces/low/a.h:2: traces/low includes traces/high/b.h, of a folder above it"),
              HasSubstr("include each other in a circle: traces/high/b.h traces/low/a.h")));
    EXPECT_THAT(refused("traces/high/b.h", "#include \"viewer/main.h\"\n"),
                HasSubstr("traces/high/b.h:1: traces includes viewer/main.h; it may include traces only"));
    EXPECT_THAT(refused("traces/cellar/c.h", "\n"),
                HasSubstr("traces/cellar: docs/architecture.md does not list"));
    EXPECT_THAT(refused("traces/high/b.h", std::string(200, '\n')),
                HasSubstr("traces/high: docs/architecture.md says 2 lines, there are 200; correct its row"));
}

TEST(Quickstart, ExplainsItselfAndRefusesUnknownOptions) {
    const Outcome help = run_command({kScripts + "/quickstart.sh", "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, HasSubstr("quickstart.sh [--no-view]"));
    EXPECT_THAT(help.out, Not(HasSubstr("#")));
    const Outcome wrong = run_command({kScripts + "/quickstart.sh", "--noview"});
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(wrong.err, "quickstart.sh: \"--noview\" is not an option; use --no-view or nothing.\n");
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
