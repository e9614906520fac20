// A command in a terminal, and its signals: shardscope-record does not interfere.
#include <fstream>
#include <string>

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A program in a terminal of its own.
class Terminal {
  public:
    explicit Terminal(const std::vector<std::string>& command) {
        winsize size{40, 123, 0, 0};
        pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
        if (pid_ == 0) {
            std::vector<char*> arguments;
            for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
            arguments.push_back(nullptr);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
    }
    ~Terminal() {
        if (pid_ > 0 && !ended_) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        ::close(terminal_);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    pid_t pid() const { return pid_; }
    void type(const std::string& text) const {
        ASSERT_EQ(::write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    // Reads until `text` appears; false after ten seconds or at the end.
    bool shows(const std::string& text) {
        for (int i = 0; i < 500 && shown_.find(text) == std::string::npos; ++i) {
            if (!read_some(20)) break;
        }
        return shown_.find(text) != std::string::npos;
    }
    // The status as a shell reports it; a program without output for twenty seconds is killed.
    int ends() {
        while (read_some(20'000)) {
        }
        if (!at_end_) ::kill(pid_, SIGKILL);
        int status = 0;
        ::waitpid(pid_, &status, 0);
        ended_ = true;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    const std::string& shown() const { return shown_; }

  private:
    bool read_some(int milliseconds) {
        pollfd what{terminal_, POLLIN, 0};
        if (::poll(&what, 1, milliseconds) == 0) return milliseconds < 1000;
        char text[4096];
        const ssize_t size = ::read(terminal_, text, sizeof text);
        at_end_ = size <= 0;
        if (at_end_) return false;
        shown_.append(text, static_cast<std::size_t>(size));
        return true;
    }

    pid_t pid_ = -1;
    int terminal_ = -1;
    bool ended_ = false, at_end_ = false;
    std::string shown_;
};

using InATerminal = RecordTool;

void wait_for(const std::string& file) {
    for (int i = 0; i < 500 && !std::ifstream(file).good(); ++i) ::usleep(20'000);
}

TEST_F(InATerminal, an_interrupt_ends_the_command_as_if_alone_and_leaves_a_good_file) {
    Terminal terminal({kRecord, "-o", out_, "--", "bash", "-c", "echo begun; exec sleep 100"});
    ASSERT_TRUE(terminal.shows("begun"));
    ::usleep(50'000);
    terminal.type("\x03");
    EXPECT_EQ(terminal.ends(), 128 + SIGINT);
    EXPECT_EQ(value("SELECT ended FROM SHARD_STATE"), "1");
    EXPECT_EQ(setting("exit_status"), "130");
    EXPECT_THAT(terminal.shown(), HasSubstr("wrote " + out_));
    EXPECT_EQ(run_command({kTrace, "check", out_}).status, 0);
}

TEST_F(InATerminal, each_signal_reaches_the_command_once) {
    Terminal terminal({kRecord, "-o", out_, "--", kJob, "counts_signals", "0", folder_ / "ready"});
    wait_for(folder_ / "ready");
    terminal.type("\x03");
    wait_for(folder_ / "ready.1");
    ::kill(terminal.pid(), SIGUSR1);
    wait_for(folder_ / "ready.2");
    ::kill(terminal.pid(), SIGUSR1);
    wait_for(folder_ / "ready.3");
    ::usleep(100'000);  // time for a signal that would arrive twice
    ::kill(terminal.pid(), SIGTERM);
    EXPECT_EQ(terminal.ends(), 21);  // two USR1, one INT
    EXPECT_EQ(setting("exit_status"), "21");
}

TEST_F(InATerminal, the_terminal_is_the_commands_own) {
    Terminal terminal({kRecord, "-o", out_, "--", "bash", "-c",
                       "test -t 0 && test -t 1 && test -t 2 && stty size && stty raw -echo && x=$(dd bs=1 "
                       "count=3 2>/dev/null); "
                       "stty -raw echo; echo \"got<$x>\"; exit 4"});
    ASSERT_TRUE(terminal.shows("40 123"));
    ::usleep(200'000);
    terminal.type("a\x1c!");  // in raw mode keys send no signals
    EXPECT_EQ(terminal.ends(), 4) << terminal.shown();
    EXPECT_THAT(terminal.shown(), HasSubstr("got<a\x1c!>"));
}

TEST_F(InATerminal, a_shell_stops_and_continues_it) {
    Terminal terminal({"bash", "--norc", "--noprofile", "-i"});
    terminal.type("'" + kRecord + "' -o '" + out_ +
                  "' -- bash -c 'echo be''gun; sleep 0.6; echo en''ded; exit 3'\n");
    ASSERT_TRUE(terminal.shows("begun")) << terminal.shown();
    terminal.type("\x1a");
    ASSERT_TRUE(terminal.shows("Stopped")) << terminal.shown();
    terminal.type("fg; echo status=$?\n");
    EXPECT_TRUE(terminal.shows("status=3")) << terminal.shown();
    EXPECT_THAT(terminal.shown(), HasSubstr("ended"));
    terminal.type("exit\n");
    EXPECT_EQ(terminal.ends(), 0);
    EXPECT_EQ(setting("exit_status"), "3");
}

using Toggle = RecordTool;

TEST_F(Toggle, starts_and_stops_recording) {
    const Outcome outcome = shell(
        "\"$record\" -o \"$out\" --toggle USR2 -- \"$job\" steps 2000 & tool=$!; "
        "sleep 0.5; kill -USR2 $tool; sleep 0.5; kill -USR2 $tool; wait $tool");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_GT(number("SELECT count(*) FROM NVTX_EVENTS WHERE text = 'step'"), 3);
    // The recording contains half a second of the two; the tool polls every 20 ms, and a busy machine may be
    // late to sleep and to signal.
    EXPECT_GT(number("SELECT min(start) FROM NVTX_EVENTS"), 0.4e9);
    EXPECT_LT(number("SELECT max(\"end\") - min(start) FROM NVTX_EVENTS"), 1.2e9);
    EXPECT_EQ(value("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE 'recording was st% by signal %'"),
              "2");
}

TEST_F(Toggle, that_never_comes_leaves_an_empty_trace) {
    const Outcome outcome = record({kJob, "steps", "100"}, {"--toggle", "USR2"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(value("SELECT count(*) FROM NVTX_EVENTS"), "0");
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
