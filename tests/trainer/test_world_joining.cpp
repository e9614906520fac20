// How the processes of a job find each other, and their errors if they do not.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/trainer/world_helpers.h"
#include "trainer/world/frame.h"
#include "trainer/world/hello.h"
#include "trainer/world/message.h"
#include "trainer/world/proof.h"
#include "trainer/world/wording.h"

namespace shardscope::trainer::world {
namespace TEST_FILE {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// A stranger that connects to rank 0's port.
class Stranger {
  public:
    explicit Stranger(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    ~Stranger() { ::close(socket_); }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;

    void say(const std::string& bytes) const {
        EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    void say(FrameKind kind, const std::string& text) const {
        const FrameHeaderBytes header = encode(FrameHeader{kind, text.size()});
        say(std::string(header.data(), header.size()) + text);
    }
    // Everything that is sent to it until the connection is closed.
    std::string hear() const {
        std::string heard;
        char buffer[4096];
        for (ssize_t got = 0; (got = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
            heard.append(buffer, static_cast<std::size_t>(got));
        return heard;
    }

    // The text of the next frame; "" if the connection is closed before.
    std::string hear_text() const {
        FrameHeaderBytes bytes{};
        if (!take(bytes.data(), bytes.size())) return {};
        const auto header = decode(bytes);
        if (!header) return {};
        std::string text(header->bytes, '\0');
        return take(text.data(), text.size()) ? text : std::string();
    }
    // Greets rank 0 and proves that it knows the token.
    void prove(const std::string& token, const std::string& text) const {
        Nonces nonces{std::string(kNonceBytes, 'n'), {}};
        say(FrameKind::hello, nonces.visitor);
        nonces.rank_0 = hear_text();
        say(FrameKind::proof, proof(token, Side::visitor, nonces, text) + text);
    }

  private:
    bool take(char* into, std::size_t size) const {
        return ::recv(socket_, into, size, MSG_WAITALL) == static_cast<ssize_t>(size);
    }

    int socket_;
};

TEST(WorldJoining, StrangersDisturbNoRank) {
    std::vector<Place> places = make_places(3);
    const Stranger garbage(places[0].port), silent(places[0].port), slow(places[0].port),
        large(places[0].port), other_job(places[0].port), gone_job(places[0].port), early(places[0].port);
    garbage.say("GET / HTTP/1.1\r\nHost: rank-0\r\n\r\n");
    slow.say("ShdW");
    // A text of 100 TB is neither waited for nor allocated.
    const FrameHeaderBytes header = encode(FrameHeader{FrameKind::hello, 100'000'000'000'000});
    large.say(std::string(header.data(), header.size()));
    gone_job.say(FrameKind::hello, "too short");
    early.say(FrameKind::confirm, "");  // the stranger has not been accepted yet
    std::thread liar([&] { other_job.prove("somebody else's", encode(own_hello(places[1], "1.2.3"))); });
    const auto errors = run_threads(places, [&](const Place& place) {
        if (place.rank == 1) liar.join();
        World world(place, within(20));
        EXPECT_EQ(world.gather("x").size(), 3U);
        world.leave();
    });
    EXPECT_THAT(errors, Each(""));
    for (const Stranger* stranger : {&garbage, &silent, &slow, &large, &other_job, &gone_job, &early})
        EXPECT_EQ(stranger->hear(), "");
}

TEST(WorldJoining, ASilentStrangerIsDisconnected) {
    std::vector<Place> places = make_places(2);
    const Stranger silent(places[0].port), slow(places[0].port);
    slow.say("ShdW");
    std::thread rank_0([&] {
        EXPECT_THROW(World(places[0], within(0.4)), WorldError);  // rank 1 is not started
    });
    EXPECT_EQ(silent.hear(), "");
    EXPECT_EQ(slow.hear(), "");
    rank_0.join();
}

TEST(WorldJoining, ManyStrangers) {
    std::vector<Place> places = make_places(2);
    std::vector<std::unique_ptr<Stranger>> crowd;
    for (int i = 0; i < 200; ++i) crowd.push_back(std::make_unique<Stranger>(places[0].port));
    const auto errors = run_threads(places, [&](const Place& place) {
        World world(place, within(20));
        world.leave();
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(WorldJoining, ALaunchersPortThatIsTakenIsSkipped) {
    Listener taken = Listener::on_loopback();  // nothing ever answers there
    std::vector<Place> places = make_places(2);
    ::close(places[0].listen_fd);
    for (Place& place : places) {
        place.port = taken.port();
        place.listen_fd = -1;
    }
    const auto errors = run_threads(places, [&](const Place& place) {
        World world(place, within(4));
        world.leave();
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(WorldJoining, SomeMayComeLate) {
    std::vector<int> came;
    std::vector<Place> places = make_places(3);
    ::close(places[0].listen_fd);
    places[0].listen_fd = -1;
    const auto errors = run_threads(places, [&](const Place& place) {
        // Rank 0 arrives last but one, so rank 1 finds no listener at first.
        std::this_thread::sleep_for(std::chrono::milliseconds(place.rank == 0   ? 150
                                                              : place.rank == 2 ? 300
                                                                                : 0));
        WorldOptions options = within(20);
        options.on_join = [&](int rank) { came.push_back(rank); };
        World world(place, options);
        world.leave();
    });
    EXPECT_THAT(errors, Each(""));
    EXPECT_THAT(came, testing::UnorderedElementsAre(1, 2));
}

TEST(WorldJoining, ARankThatDoesNotJoinIsNamed) {
    std::vector<Place> places = make_places(6);
    places.erase(places.begin() + 4);
    places.erase(places.begin() + 2);
    const auto errors = run_threads(places, [&](const Place& place) { const World world(place, within(1)); });
    EXPECT_THAT(errors,
                Each(AllOf(HasSubstr("ranks 2 and 4 of 6 did not join within 1 s"), HasSubstr("127.0.0.1"))));
}

TEST(WorldJoining, AMissingRank0IsNamed) {
    std::vector<Place> places = make_places(2);
    ::close(places[0].listen_fd);
    places.erase(places.begin());
    const auto errors =
        run_threads(places, [&](const Place& place) { const World world(place, within(0.3)); });
    EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 1 did not find rank 0 at 127.0.0.1"), HasSubstr("0.3 s"),
                                 HasSubstr("Connection refused")));
}

TEST(WorldJoining, AnUnknownHostNameIsNamed) {
    Place place = make_places(2)[1];
    place.master = "no-such-host.invalid";
    const auto errors =
        run_threads({place}, [&](const Place& each) { const World world(each, within(0.3)); });
    EXPECT_THAT(errors[0], HasSubstr("no-such-host.invalid"));
}

TEST(WorldJoining, OtherVersionsAreNamedOnBothSides) {
    const auto errors = run_threads(make_places(3), [&](const Place& place) {
        WorldOptions options = within(5);
        if (place.rank == 2) options.version = "1.3.0";
        const World world(place, options);
    });
    EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 2 (process"), HasSubstr("shardscope 1.3.0"),
                                 HasSubstr("rank 0 (process"), HasSubstr("shardscope 1.2.3")));
    EXPECT_EQ(errors[1], errors[0]);
    EXPECT_EQ(errors[2], errors[0]);
}

TEST(WorldJoining, ALateProcessStillLearnsTheFailure) {
    const auto begin = std::chrono::steady_clock::now();
    const auto errors = run_threads(make_places(3), [&](const Place& place) {
        WorldOptions options = within(20);
        if (place.rank == 1) options.version = "1.3.0";
        if (place.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
        const World world(place, options);
    });
    EXPECT_THAT(errors, Each(HasSubstr("shardscope 1.3.0")));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(WorldJoining, AnotherProtocolIsNamed) {
    std::vector<Place> places = make_places(2);
    const Stranger other(places[0].port);
    std::vector<std::string> errors;
    std::thread rank_0([&] {
        errors = run_threads({places[0]}, [&](const Place& place) { const World world(place, within(5)); });
    });
    other.prove(places[0].token, MessageWriter().add(std::int64_t{99}).add("9.0").take());
    rank_0.join();
    EXPECT_THAT(errors[0], HasSubstr("shardscope 9.0 (protocol 99)"));
    EXPECT_THAT(other.hear(), HasSubstr(errors[0]));
}

// A stranger that listens on rank 0's port and pretends to be rank 0: the ranks disclose nothing to it, and
// do not stay.
TEST(WorldJoining, TheTokenIsNotSentToAStrangerThatListens) {
    Listener listener = Listener::on_loopback();
    std::vector<Place> places = make_places(2);
    ::close(places[0].listen_fd);
    places[1].port = listener.port();
    places[1].token = "a very secret token";
    std::string heard;
    int visits = 0;
    std::thread impostor([&] {
        const auto frame = [](FrameKind kind, const std::string& text) {
            const FrameHeaderBytes header = encode(FrameHeader{kind, text.size()});
            return std::string(header.data(), header.size()) + text;
        };
        Place lie = places[1];
        lie.rank = 0;
        const std::string challenge = frame(FrameKind::challenge, std::string(kNonceBytes, 'x'));
        const std::string no_proof(kProofBytes, 'x');
        const std::string accepted = frame(FrameKind::accepted, no_proof + encode(own_hello(lie, "1.2.3")));
        const std::string refused = frame(FrameKind::refused, no_proof + "go away");
        for (int visitor = -1; (visitor = ::accept(listener.descriptor(), nullptr, nullptr)) >= 0; ++visits) {
            char buffer[4096];
            const auto hear = [&] {
                const ssize_t got = ::recv(visitor, buffer, sizeof buffer, 0);
                if (got > 0) heard.append(buffer, static_cast<std::size_t>(got));
                return got > 0;
            };
            ::send(visitor, challenge.data(), challenge.size(), MSG_NOSIGNAL);
            // The greeting and the proof may arrive as one piece or as several.
            const std::size_t before = heard.size();
            while (heard.size() < before + 2 * kFrameHeaderBytes + kNonceBytes + kProofBytes && hear()) {
            }
            const std::string& answer = visits % 2 == 0 ? accepted : refused;
            ::send(visitor, answer.data(), answer.size(), MSG_NOSIGNAL);
            while (hear()) {
            }
            ::close(visitor);
        }
    });
    const auto errors =
        run_threads({places[1]}, [&](const Place& place) { const World world(place, within(1)); });
    ::shutdown(listener.descriptor(), SHUT_RDWR);
    impostor.join();
    EXPECT_THAT(errors[0], HasSubstr("no process of this job answers"));
    EXPECT_GE(visits, 1);
    EXPECT_GT(heard.size(), 2 * kFrameHeaderBytes + kNonceBytes + kProofBytes);
    EXPECT_THAT(heard, Not(HasSubstr("secret")));
}

TEST(WorldJoining, ARankThatJoinsTwiceIsNamedOnAllSides) {
    std::vector<Place> places = make_places(3);
    places[2].rank = 1;
    const auto errors = run_threads(places, [&](const Place& place) { const World world(place, within(5)); });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("two processes say that they are rank 1: process "),
                                   HasSubstr(" and process "))));
}

TEST(WorldJoining, AnotherNumberOfRanksIsNamedOnBothSides) {
    std::vector<Place> places = make_places(2);
    places[1].ranks = 3;
    const auto errors = run_threads(places, [&](const Place& place) { const World world(place, within(5)); });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("one of 3 ranks"), HasSubstr("one of 2"))));
}

TEST(WorldJoining, AProcessThatEndsBeforeAllAreHereEndsTheWaiting) {
    const std::vector<Place> places = make_places(3);  // rank 2 never joins
    const ChildProcess rank_1([&] {
        const World world(places[1], within(4));
        return "";
    });
    const auto begin = std::chrono::steady_clock::now();
    WorldOptions options = within(4);
    options.on_join = [&](int) { rank_1.signal(SIGKILL); };
    std::string error;
    try {
        const World world(places[0], options);
    } catch (const WorldError& caught) {
        error = caught.what();
    }
    EXPECT_EQ(error, "rank 1 (process " + std::to_string(rank_1.pid()) + " on host " + own_host_name() +
                         ") has ended, before all processes had joined");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

TEST(WorldJoining, APlaceWithoutAMeetingPointIsAnError) {
    const auto errors = run_threads({{.launcher = Launcher::mpirun, .rank = 0, .ranks = 2}},
                                    [&](const Place& place) { const World world(place, within(1)); });
    EXPECT_THAT(errors[0], AllOf(HasSubstr("mpirun"), HasSubstr("MASTER_ADDR")));
}

TEST(WorldJoining, ADescriptorThatDoesNotListenIsAnError) {
    Place place = make_places(2)[0];
    ::close(place.listen_fd);
    place.listen_fd = STDIN_FILENO;
    const auto errors = run_threads({place}, [&](const Place& each) { const World world(each, within(1)); });
    EXPECT_THAT(errors[0], HasSubstr("descriptor 0 is not a listening socket"));
}

TEST(WorldJoining, AProofIsOfTheTokenTheSideBothNumbersAndTheText) {
    const Nonces nonces{std::string(kNonceBytes, 'a'), std::string(kNonceBytes, 'b')};
    const Nonces swapped{nonces.rank_0, nonces.visitor};
    const std::string message = proof("token", Side::visitor, nonces, "text") + "text";
    std::string_view rest = message;
    EXPECT_TRUE(take_proof("token", Side::visitor, nonces, rest));
    EXPECT_EQ(rest, "text");
    for (const char* token : {"", "toke", "tokens", "Token"}) {
        rest = message;
        EXPECT_FALSE(take_proof(token, Side::visitor, nonces, rest)) << token;
    }
    EXPECT_FALSE(take_proof("token", Side::rank_0, nonces, rest = message));
    EXPECT_FALSE(take_proof("token", Side::visitor, swapped, rest = message));
    const std::string longer = message + ".";
    EXPECT_FALSE(take_proof("token", Side::visitor, nonces, rest = longer));
    EXPECT_FALSE(take_proof("token", Side::visitor, nonces, rest = rest.substr(0, 5)));
    EXPECT_NE(random_bytes(kNonceBytes), random_bytes(kNonceBytes));
}

TEST(WorldJoining, RanksAreListedShortly) {
    EXPECT_EQ(ranks_text({2}), "rank 2");
    EXPECT_EQ(ranks_text({2, 5}), "ranks 2 and 5");
    EXPECT_EQ(ranks_text({2, 3}), "ranks 2 and 3");
    EXPECT_EQ(ranks_text({2, 5, 6, 7, 12}), "ranks 2, 5-7 and 12");
    EXPECT_EQ(ranks_text({1, 2, 3}), "ranks 1-3");
}

TEST(WorldJoining, FramesSurviveTheirEncoding) {
    const FrameHeader header{FrameKind::farewell, 0x123456789ABC};
    const auto again = decode(encode(header));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->kind, header.kind);
    EXPECT_EQ(again->bytes, header.bytes);
    FrameHeaderBytes wrong = encode(header);
    wrong[8] = 99;
    EXPECT_FALSE(decode(wrong));
    EXPECT_FALSE(decode(FrameHeaderBytes{}));
}

TEST(WorldJoining, MessagesSurviveTheirEncoding) {
    const std::vector<std::int32_t> numbers = {3, -4};
    const std::string text =
        MessageWriter().add(-7).add("a\0b").add(true).add_all(numbers).add(0.5).rest("more").take();
    EXPECT_EQ(text.substr(0, 4), "\xf9\xff\xff\xff");  // the lowest byte first
    MessageReader reader(text);
    EXPECT_EQ(reader.number<int>(), -7);
    EXPECT_EQ(reader.text(), "a\0b");
    EXPECT_TRUE(reader.number<bool>());
    EXPECT_EQ(reader.numbers<std::int32_t>(), numbers);
    EXPECT_EQ(reader.number<double>(), 0.5);
    EXPECT_EQ(reader.rest(), "more");
    EXPECT_THROW(reader.number<std::int64_t>(), MessageError);
    const std::string too_long = MessageWriter().add(std::int64_t{1} << 40U).take();
    EXPECT_THROW(MessageReader(too_long).text(), MessageError);
    EXPECT_THROW(MessageReader(too_long).numbers<double>(), MessageError);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::world
