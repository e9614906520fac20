#include "traces/watch/screen.h"

#include <atomic>
#include <csignal>
#include <cstdio>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace shardscope::traces::watch {

namespace {

std::atomic<int> received_signal = 0;
std::atomic<bool> suspend_asked = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler sets them");

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
struct sigaction g_before[std::size(kEnding)], g_suspend_before;

void note(int signal) {
    if (signal == SIGTSTP) {
        suspend_asked = true;
    } else {
        int none = 0;
        received_signal.compare_exchange_strong(none, signal);
    }
}

const char* code_of(Emphasis emphasis) {
    switch (emphasis) {
        case Emphasis::heading:
            return "\x1b[1m";
        case Emphasis::alarm:
            return "\x1b[1;31m";
        case Emphasis::none:
            break;
    }
    return "";
}

std::string styled(const DisplayLine& line, bool colours) {
    if (!colours || line.emphasis == Emphasis::none) return line.text;
    return code_of(line.emphasis) + line.text + "\x1b[0m";
}

void write_out(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
}

}  // namespace

NotedSignals::NotedSignals(bool suspends) {
    received_signal = 0;
    suspend_asked = false;
    struct sigaction action = {};
    action.sa_handler = note;
    ::sigemptyset(&action.sa_mask);
    const auto take = [&](int signal, struct sigaction& before) {
        ::sigaction(signal, &action, &before);
        if (before.sa_handler == SIG_IGN) ::sigaction(signal, &before, nullptr);  // as under nohup
    };
    for (std::size_t i = 0; i < std::size(kEnding); ++i) take(kEnding[i], g_before[i]);
    ::sigaction(SIGTSTP, nullptr, &g_suspend_before);
    if (suspends) take(SIGTSTP, g_suspend_before);
}

NotedSignals::~NotedSignals() {
    for (std::size_t i = 0; i < std::size(kEnding); ++i) ::sigaction(kEnding[i], &g_before[i], nullptr);
    ::sigaction(SIGTSTP, &g_suspend_before, nullptr);
}

int NotedSignals::received() {
    return received_signal;
}

bool NotedSignals::take_suspend() {
    return suspend_asked.exchange(false);
}

Screen::Size Screen::size() {
    winsize own{};
    Size size;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &own) != 0) return size;
    if (own.ws_col > 0) size.width = own.ws_col;
    if (own.ws_row > 0) size.height = own.ws_row;
    return size;
}

void Screen::draw(const std::vector<DisplayLine>& lines) {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i)
        text += (i > 0 ? "\r\n" : "") + styled(lines[i], colours_) + "\x1b[K";
    write_out(text + "\x1b[J");
}

void Screen::suspend() {
    leave();
    struct sigaction ours, usual = {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGTSTP, &usual, &ours);
    ::raise(SIGTSTP);  // returns when the program continues
    ::sigaction(SIGTSTP, &ours, nullptr);
    enter();
}

// The second screen, without a cursor, no wrapping of long lines.
void Screen::enter() {
    write_out("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J");
}

void Screen::leave() {
    write_out("\x1b[?7h\x1b[?25h\x1b[?1049l");
}

std::string text_of(const std::vector<DisplayLine>& lines, bool colours) {
    std::string text;
    for (const DisplayLine& line : lines) text += styled(line, colours) + "\n";
    return text;
}

}  // namespace shardscope::traces::watch
