// The status server, and those who connect to it with bad manners.
#include "profiler/status/status_server.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/traces/temporary_folder.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using traces::TemporaryFolder;
using traces::status::Address;
using traces::store::FileDescriptor;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

// One who connects.
class Visitor {
  public:
    explicit Visitor(const Address& address) : socket_(traces::status::connect_to(address, 5000)) {}

    void say(const std::string& text) {
        [[maybe_unused]] const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    }
    // Everything until a whole line, the end, or a minute; `ended` says which.
    std::string line() {
        std::string text;
        for (int i = 0; i < 600 && text.find('\n') == std::string::npos && !ended; ++i) {
            pollfd wanted{socket_.get(), POLLIN, 0};
            if (::poll(&wanted, 1, 100) <= 0) continue;
            char bytes[4096];
            const auto got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
            if (got <= 0) {
                ended = true;
            } else {
                text.append(bytes, static_cast<std::size_t>(got));
            }
        }
        return text;
    }
    bool ends() {
        while (!ended && !line().empty()) {
        }
        return ended;
    }
    bool ended = false;

  private:
    FileDescriptor socket_;
};

class StatusServerTest : public ::testing::Test {
  protected:
    StatusServerOptions options(const std::string& address, const std::string& token = "") {
        StatusServerOptions options;
        options.address = traces::status::parse_address(address);
        options.token = token;
        options.line = [this] { return "line " + std::to_string(++lines_) + text_ + "\n"; };
        options.period = 20ms;
        return options;
    }
    std::string socket() const { return folder_ / "run.sqlite.status"; }

    const TemporaryFolder folder_;
    std::atomic<int> lines_ = 0;
    std::string text_;
};

TEST_F(StatusServerTest, sends_lines_to_those_who_watch_and_the_last_one_at_the_end) {
    std::optional<StatusServer> server(std::in_place, options(socket()));
    Visitor one(server->address()), two(server->address());
    EXPECT_THAT(one.line(), HasSubstr("line "));
    EXPECT_THAT(two.line(), HasSubstr("line "));
    EXPECT_THAT(one.line(), HasSubstr("line "));
    server.reset();
    EXPECT_TRUE(one.ends());
    EXPECT_TRUE(two.ends());
    EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(StatusServerTest, makes_no_line_while_nobody_watches) {
    const StatusServer server(options(socket()));
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(lines_, 0);
}

TEST_F(StatusServerTest, asks_for_the_token_over_tcp) {
    const StatusServer server(options("127.0.0.1:0", kToken));
    Visitor right(server.address());
    right.say(std::string(kToken) + "\n");
    EXPECT_THAT(right.line(), HasSubstr("line "));
    for (const std::string& wrong : {std::string("x\n"), std::string(kToken) + "x\n", std::string("\n"),
                                     std::string("GET / HTTP/1.1\r\n\r\n"), std::string(300, 'x')}) {
        Visitor visitor(server.address());
        visitor.say(wrong);
        EXPECT_EQ(visitor.line(), "{\"error\":\"the token is wrong\"}\n") << wrong;
        EXPECT_TRUE(visitor.ends());
    }
    // In pieces, as a network may deliver it.
    Visitor slow(server.address());
    for (const char c : std::string(kToken) + "\r\n") slow.say(std::string(1, c));
    EXPECT_THAT(slow.line(), HasSubstr("line "));
}

TEST_F(StatusServerTest, says_nothing_before_the_token) {
    StatusServerOptions impatient = options("127.0.0.1:0", kToken);
    impatient.patience_for_token = 100ms;
    const StatusServer server(std::move(impatient));
    Visitor silent(server.address());
    EXPECT_EQ(silent.line(), "");  // until it is dropped
    EXPECT_TRUE(silent.ended);
    EXPECT_EQ(lines_, 0);
}

TEST_F(StatusServerTest, discards_what_watchers_send_and_drops_those_who_send_much) {
    const StatusServer server(options(socket()));
    Visitor chatty(server.address());
    chatty.say(std::string("\xff\x00{]\n", 5));
    EXPECT_THAT(chatty.line(), HasSubstr("line "));
    Visitor flood(server.address());
    for (int i = 0; i < 100; ++i) flood.say(std::string(1000, 'x'));
    EXPECT_TRUE(flood.ends());
    EXPECT_THAT(chatty.line(), HasSubstr("line "));
}

TEST_F(StatusServerTest, serves_a_limited_number) {
    const StatusServer server(options(socket()));
    std::vector<std::unique_ptr<Visitor>> watchers;
    for (std::size_t i = 0; i < StatusServer::kMostWatchers; ++i) {
        watchers.push_back(std::make_unique<Visitor>(server.address()));
        EXPECT_THAT(watchers.back()->line(), HasSubstr("line "));
    }
    Visitor late(server.address());
    EXPECT_THAT(late.line(), HasSubstr("16 watch this run already"));
    EXPECT_TRUE(late.ends());
    watchers.pop_back();
    for (int tries = 0; tries < 600; ++tries) {  // once the server has seen that one has gone
        Visitor next(server.address());
        if (next.line().find("line ") == 0) return;
        std::this_thread::sleep_for(100ms);
    }
    FAIL() << "nobody is served after one has gone";
}

// One who never reads gets no more than the connection's buffers hold, and the others get all.
TEST_F(StatusServerTest, does_not_wait_for_those_who_do_not_read) {
    text_ = std::string(1 << 20, 'x');
    const StatusServer server(options(socket()));
    Visitor deaf(server.address());
    Visitor reader(server.address());
    for (int i = 0; i < 20; ++i) {
        std::string line;
        while (line.find('\n') == std::string::npos && !reader.ended) line += reader.line();
        EXPECT_GT(line.size(), text_.size());
    }
}

// Connections that are opened, left open, or closed at once, without the token: those who know it are served.
TEST_F(StatusServerTest, survives_a_thousand_connections) {
    const StatusServer server(options("127.0.0.1:0", kToken));
    rlimit descriptors{};
    ::getrlimit(RLIMIT_NOFILE, &descriptors);
    const std::size_t kept = std::min<std::size_t>(500, descriptors.rlim_cur / 4);
    std::vector<std::unique_ptr<Visitor>> open;
    int refused = 0;
    for (int i = 0; i < 1000; ++i) {
        try {
            auto visitor = std::make_unique<Visitor>(server.address());
            if (i % 3 == 0) visitor->say("garbage\n");
            if (open.size() < kept && i % 2 == 0) open.push_back(std::move(visitor));
        } catch (const traces::status::StatusError&) {
            ++refused;  // the queue of the system is full
        }
    }
    EXPECT_LT(refused, 1000);
    for (int tries = 0; tries < 100; ++tries) {
        Visitor friendly(server.address());
        friendly.say(std::string(kToken) + "\n");
        if (friendly.line().find("line ") == 0) return;  // strangers may have pushed it out
    }
    FAIL() << "nobody is served any more";
}

TEST_F(StatusServerTest, survives_a_line_that_cannot_be_made) {
    StatusServerOptions failing = options(socket());
    std::atomic<bool> fails = true;
    failing.line = [&]() -> std::string {
        if (fails) throw std::bad_alloc();
        return "line\n";
    };
    const StatusServer server(std::move(failing));
    Visitor first(server.address());
    EXPECT_TRUE(first.ends());
    fails = false;
    Visitor second(server.address());
    EXPECT_EQ(second.line(), "line\n");
}

TEST_F(StatusServerTest, leaves_the_socket_of_a_later_run) {
    std::optional<StatusServer> first(std::in_place, options(socket()));
    std::filesystem::remove(socket());
    const StatusServer second(options(socket()));
    first.reset();
    EXPECT_TRUE(std::filesystem::exists(socket()));
    Visitor visitor(second.address());
    EXPECT_THAT(visitor.line(), HasSubstr("line "));
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
