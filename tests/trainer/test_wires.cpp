// The wires over connections, between threads; MPI's wires are tested in test_mpi_wire.cpp.
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "tests/trainer/wire_checks.h"
#include "trainer/comm/gloo_wire.h"
#include "trainer/comm/tcp_address.h"
#include "trainer/comm/tcp_connect.h"
#include "trainer/comm/tcp_wire.h"
#include "trainer/world/listener.h"
#include "trainer/world/own_addresses.h"

using namespace shardscope::trainer;
using namespace shardscope::trainer::comm;
using namespace shardscope::trainer::testing;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace TEST_FILE {

// A place where the ranks, which are threads here, exchange values.
class Room {
  public:
    explicit Room(int ranks) : ranks_(ranks) {}

    std::vector<std::string> gather(int rank, const std::string& mine) {
        std::unique_lock lock(mutex_);
        const int round = rounds_[static_cast<std::size_t>(rank)]++;
        if (static_cast<int>(said_.size()) <= round) said_.resize(static_cast<std::size_t>(round) + 1);
        auto& texts = said_[static_cast<std::size_t>(round)];
        texts.resize(static_cast<std::size_t>(ranks_));
        texts[static_cast<std::size_t>(rank)] = {true, mine};
        changed_.notify_all();
        changed_.wait(lock, [&] {
            const auto& now = said_[static_cast<std::size_t>(round)];
            return std::all_of(now.begin(), now.end(), [](const Said& each) { return each.said; });
        });
        std::vector<std::string> all;
        for (const Said& each : said_[static_cast<std::size_t>(round)]) all.push_back(each.text);
        return all;
    }

    WirePeers peers(int rank) {
        WirePeers peers;
        peers.rank = rank;
        peers.ranks = ranks_;
        peers.token = "token";
        peers.gather = [this, rank](const std::string& mine) { return gather(rank, mine); };
        peers.broadcast = [this, rank](const std::string& mine) { return gather(rank, mine)[0]; };
        return peers;
    }

  private:
    struct Said {
        bool said = false;
        std::string text;
    };
    int ranks_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<int> rounds_ = std::vector<int>(64);  // indexed by rank
    std::vector<std::vector<Said>> said_;             // indexed by round and rank
};

// Runs `body(rank)` on a thread for each rank; an exception in one fails the test.
template <class Body>
void on_threads(int ranks, const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; rank++) {
        threads.emplace_back([&body, rank] {
            try {
                body(rank);
            } catch (const std::exception& error) {
                ADD_FAILURE() << "rank " << rank << ": " << error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TcpWireOptions option(bool local_sockets, bool direct_reads) {
    TcpWireOptions options;
    options.local_sockets = local_sockets;
    options.direct_reads = direct_reads;
    return options;
}

struct Way {
    const char* name;
    const char* engine;
    std::function<std::unique_ptr<Wire>(Room& room, int rank)> open;
};

Way tcp_way(const char* name, bool local_sockets, bool direct_reads) {
    return {name, "tcp", [=](Room& room, int rank) {
                return make_tcp_wire(room.peers(rank), option(local_sockets, direct_reads));
            }};
}
const Way kTcp = tcp_way("tcp", false, false);      // between hosts
const Way kLocal = tcp_way("local", true, false);   // within one host
const Way kDirect = tcp_way("direct", true, true);  // within one whose kernel lets processes read each other
const Way kGloo = {"gloo", "gloo", [](Room& room, int rank) { return make_gloo_wire(room.peers(rank)); }};

std::string name_of(const ::testing::TestParamInfo<Way>& info) {
    return info.param.name;
}

template <class Body>
void with_wires(int ranks, const Way& way, const Body& body) {
    Room room(ranks);
    on_threads(ranks, [&](int rank) {
        const std::unique_ptr<Wire> wire = way.open(room, rank);
        body(*wire);
    });
}

class Wires : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, Wires, ::testing::Values(kTcp, kLocal, kDirect, kGloo), name_of);

TEST_P(Wires, MessagesOfATagArriveInTheirOrder) {
    with_wires(3, GetParam(), [](Wire& wire) {
        check_order(wire, true);
        check_order(wire, false);
    });
}

TEST_P(Wires, TagsDoNotDisturbEachOther) {
    with_wires(4, GetParam(), check_tags);
}

TEST_P(Wires, ALargeMessageBlocksNoOther) {
    with_wires(3, GetParam(), check_overtaking);
}

TEST_P(Wires, ManyMessagesInRandomOrder) {
    with_wires(4, GetParam(), [](Wire& wire) { check_soak(wire, 7, 8); });
}

// Gloo would end the process, so the group compares calls before it sends their data.
class WiresThatCompareSizes : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, WiresThatCompareSizes, ::testing::Values(kTcp, kLocal, kDirect), name_of);

TEST_P(WiresThatCompareSizes, OfAnotherSizeIsAnError) {
    for (const auto& [sent, expected] :
         {std::pair<std::size_t, std::size_t>{10, 11}, {100'000, 10}, {10, 100'000}}) {
        with_wires(2, GetParam(), [&, sent = sent, expected = expected](Wire& wire) {
            check_wrong_size(wire, sent, expected);
        });
    }
}

TEST_P(Wires, ManyRanksConnect) {
    with_wires(12, GetParam(), [](Wire& wire) {
        EXPECT_EQ(wire.ranks(), 12);
        EXPECT_STREQ(wire.name(), GetParam().engine);
        meet(wire);
    });
}

// Covers both sides of each pair, whichever is done first.
TEST(TcpWire, ReadsTheMemoryOfItsHostsProcesses) {
    int value = 7, read = 0;
    const iovec here{&read, sizeof read}, there{&value, sizeof value};
    if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != sizeof read) {
        GTEST_SKIP() << "the kernel lets no process read another's memory";
    }
    for (const TcpWireOptions& options : {option(true, true), option(true, false), option(false, true)}) {
        Room room(4);
        on_threads(4, [&](int rank) {
            const std::vector<TcpConnection> connections = connect_all(room.peers(rank), options);
            const bool reads = options.local_sockets && options.direct_reads;
            for (int other = 0; other < 4; other++) {
                const TcpConnection& connection = connections[static_cast<std::size_t>(other)];
                EXPECT_EQ(static_cast<bool>(connection.socket), other != rank);
                EXPECT_EQ(connection.memory_of, reads && other != rank ? ::getpid() : -1) << rank << other;
            }
        });
    }
}

// Makes the wires as the trainer does.
template <class Open>
void expect_from_a_world(const Open& open) {
    constexpr int kRanks = 3;
    const world::Listener listener = world::Listener::on_loopback();
    on_threads(kRanks, [&](int rank) {
        world::Place place;
        place.rank = place.local_rank = rank;
        place.ranks = place.local_ranks = kRanks;
        place.master = "127.0.0.1";
        place.port = listener.port();
        place.token = "token";
        if (rank == 0) place.listen_fd = ::dup(listener.descriptor());
        world::WorldOptions options;
        options.timeout_s = 60;
        options.version = "1";
        world::World world(place, options);
        {
            const std::unique_ptr<Wire> wire = open(world);
            EXPECT_EQ(wire->rank(), rank);
            check_order(*wire, true);
        }
        world.leave();
    });
}

TEST(TcpWire, IsMadeFromAWorld) {
    expect_from_a_world([](world::World& world) { return make_tcp_wire(world); });
}

TEST(GlooWire, IsMadeFromAWorld) {
    expect_from_a_world([](world::World& world) { return make_gloo_wire(world); });
}

TEST_P(Wires, HaveNoPeersWithOneRank) {
    with_wires(1, GetParam(), [](Wire& wire) {
        EXPECT_FALSE(wire.progress(0));
        EXPECT_THROW(wire.send(0, 0, {}), std::logic_error);
    });
}

// Rank 1 leaves when it has done its part: for ranks that need nothing more from it, this is not a failure.
TEST_P(Wires, ARankThatLeavesWhenAllIsDoneIsNotMissed) {
    Room room(3);
    on_threads(3, [&](int rank) {
        std::unique_ptr<Wire> wire = GetParam().open(room, rank);
        Traffic traffic(*wire);
        const auto exchange = [&](int other, std::size_t size) {
            traffic.send(other, 0, 0, size);
            traffic.receive(other, 0, 0, size);
        };
        if (rank != 1) exchange(1, 1'000'000);
        if (rank == 1) {
            exchange(0, 1'000'000);
            exchange(2, 1'000'000);
        }
        traffic.finish();
        if (rank == 1) wire.reset();
        room.gather(rank, "rank 1 has left");
        if (rank == 1) return;
        wire->progress(1000);
        exchange(2 - rank, 100'000);
        traffic.finish();
    });
}

// Rank 1 ends in the middle of its messages; a rank that waits for one of them learns which rank it was.
TEST_P(Wires, ARankThatEndsTooEarlyIsNamed) {
    Room room(2);
    on_threads(2, [&](int rank) {
        std::unique_ptr<Wire> wire = GetParam().open(room, rank);
        Bytes bytes(10'000'000);
        if (rank == 1) {
            const Wire::Ticket sent = wire->send(0, 0, std::span(bytes).first(10));
            for (int i = 0; i < 5000 && !wire->done(sent); i++) wire->progress(1000);
            room.gather(rank, "sent");
            wire.reset();
            return;
        }
        const Wire::Ticket first = wire->receive(1, 0, std::span(bytes).first(10));
        room.gather(rank, "");
        // What was sent before still arrives.
        wire->receive(1, 0, std::span(bytes).subspan(10));
        try {
            for (int i = 0; i < 5000; i++) wire->progress(1000);
            ADD_FAILURE() << "the end of rank 1 was not reported";
        } catch (const WireError& error) {
            EXPECT_EQ(error.peer(), 1);
            EXPECT_STREQ(error.what(), "the connection to rank 1 has ended");
        }
        EXPECT_TRUE(wire->done(first));
    });
}

TEST_P(Wires, AWaitEndsWhenAnotherThreadWakesIt) {
    with_wires(2, GetParam(), [](Wire& wire) {
        if (wire.rank() != 0) return;
        const auto begin = std::chrono::steady_clock::now();
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            wire.wake();
        });
        EXPECT_FALSE(wire.progress(60'000'000));
        const auto waited = std::chrono::steady_clock::now() - begin;
        other.join();
        EXPECT_GE(waited, std::chrono::milliseconds(29));
        EXPECT_LT(waited, std::chrono::seconds(20));
        wire.wake();  // before the wait, which therefore returns immediately
        EXPECT_FALSE(wire.progress(60'000'000));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
    });
}

TEST_P(Wires, AWaitTakesTheGivenTime) {
    with_wires(2, GetParam(), [](Wire& wire) {
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_FALSE(wire.progress(20'000));
        const auto waited = std::chrono::steady_clock::now() - begin;
        EXPECT_GE(waited, std::chrono::milliseconds(20));
    });
}

// Strangers connect to the port and send all kinds of data; the ranks find each other nevertheless.
TEST(TcpWire, StrangersAreKeptOut) {
    Room room(2);
    std::atomic<int> port = 0;
    std::thread stranger([&] {
        while (port == 0) std::this_thread::yield();
        for (const std::string& text :
             {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(500, 'x')}) {
            const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            address.sin_port = htons(static_cast<std::uint16_t>(port.load()));
            EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
            EXPECT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL),
                      static_cast<ssize_t>(text.size()));
            if (text.size() > 100) {
                // Closed without an answer: end of file, or a reset if the stranger had sent more.
                const timeval patience{10, 0};
                ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
                char answer = 0;
                const ssize_t bytes = ::recv(socket, &answer, 1, 0);
                EXPECT_LE(bytes, 0);
                EXPECT_TRUE(bytes == 0 || errno == ECONNRESET) << errno;
            }
            ::close(socket);
        }
        port = 0;
    });
    on_threads(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        peers.gather = [&](const std::string& mine) {
            const std::vector<std::string> all = room.gather(rank, mine);
            if (rank == 1) {  // connects after the strangers
                port = parse_tcp_address(all[0]).port;
                while (port != 0) std::this_thread::yield();
            }
            return all;
        };
        const std::unique_ptr<Wire> wire = make_tcp_wire(peers, option(false, false));
        meet(*wire);
    });
    stranger.join();
}

TEST(TcpWire, AProcessThatDoesNotConnectIsNamed) {
    Room room(2);
    on_threads(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        peers.where = [](int each) { return each == 0 ? "rank 0 on host a" : "rank 1 on host b"; };
        if (rank == 1) {
            peers.gather = [&](const std::string& mine) {
                room.gather(1, mine);
                throw std::runtime_error("rank 1 has other plans");
                return std::vector<std::string>();
            };
        }
        TcpWireOptions options;
        options.timeout_s = 0.3;
        try {
            make_tcp_wire(peers, options);
            ADD_FAILURE() << "the wire is there";
        } catch (const world::WorldError& error) {
            EXPECT_EQ(rank, 0);
            EXPECT_THAT(error.what(),
                        HasSubstr("rank 1 on host b did not connect to rank 0 on host a within 0.3 s"));
        } catch (const std::runtime_error&) {
            EXPECT_EQ(rank, 1);
        }
    });
}

TEST(TcpWire, AProcessThatCannotBeReachedIsNamed) {
    Room room(2);
    on_threads(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        if (rank == 0) {
            peers.gather = [&](const std::string& mine) {
                room.gather(0, mine);
                throw std::runtime_error("rank 0 ends");
                return std::vector<std::string>();
            };
        }
        TcpWireOptions options;
        options.timeout_s = 0.3;
        try {
            make_tcp_wire(peers, options);
            ADD_FAILURE() << "the wire is there";
        } catch (const world::WorldError& error) {
            EXPECT_EQ(rank, 1);
            EXPECT_THAT(error.what(), HasSubstr("rank 1 cannot reach rank 0 within 0.3 s ("));
            EXPECT_THAT(error.what(), HasSubstr("127.0.0.1 port "));
        } catch (const std::runtime_error&) {
            EXPECT_EQ(rank, 0);
        }
    });
}

TEST(TcpWire, AFailureElsewhereEndsTheWaiting) {
    Room room(2);
    std::atomic<bool> failed = false;
    on_threads(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        peers.failed = [&] { return failed.load(); };
        if (rank == 1) {
            peers.broadcast(std::string());
            peers.gather("1 - -");
            failed = true;
            return;
        }
        EXPECT_THROW(make_tcp_wire(peers), world::WorldError);
    });
}

// Nothing is written into the memory of messages that were under way.
TEST_P(Wires, AbandonedTouchNoMemory) {
    Room room(2);
    on_threads(2, [&](int rank) {
        const std::unique_ptr<Wire> wire = GetParam().open(room, rank);
        Bytes bytes(10'000'000, std::byte{1});
        if (rank == 0) wire->receive(1, 0, bytes);
        if (rank == 0) wire->abandon();
        room.gather(rank, "abandoned");
        if (rank == 1) {
            wire->send(0, 0, bytes);
            for (int i = 0; i < 20; i++) wire->progress(1000);
        }
        const Bytes before = bytes;
        room.gather(rank, "sent");
        EXPECT_EQ(bytes, before);
        wire->wake();
        if (rank == 1) wire->abandon();
    });
}

// What `open` throws on each rank.
template <class Open>
std::vector<std::string> errors_of(int ranks, const Open& open) {
    std::vector<std::string> errors(static_cast<std::size_t>(ranks));
    on_threads(ranks, [&](int rank) {
        try {
            open(rank);
        } catch (const world::WorldError& error) {
            errors[static_cast<std::size_t>(rank)] = error.what();
        }
    });
    return errors;
}

TEST(GlooWire, NoRankJoinsWithoutTheToken) {
    Room room(2);
    const std::vector<std::string> errors = errors_of(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        if (rank == 1) peers.token = "another token";
        make_gloo_wire(peers, 5);
    });
    // If one rank has refused the other, the other may see the end of the connection first.
    const auto refused = HasSubstr("does not know the job's token");
    EXPECT_THAT(errors, Contains(refused));
    EXPECT_THAT(errors, Each(AnyOf(refused, HasSubstr("were not connected"))));
}

// A stranger takes a rank's place before the rank arrives: the job does not start, and sends it no proof.
TEST(GlooWire, AStrangerGetsNothing) {
    Room room(2);
    std::vector<int> sockets;
    std::mutex mutex;
    const auto errors = errors_of(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        peers.gather = [&, round = 0](const std::string& mine) mutable {
            const std::vector<std::string> all = room.gather(rank, mine);
            if (++round == 1) return all;  // the addresses
            // The ports: the address of rank 1's connection to this rank, or this one's to rank 1.
            constexpr std::size_t kNonce = 16;
            const std::string& theirs = all[static_cast<std::size_t>(1 - rank)];
            const std::size_t size = (theirs.size() - kNonce) / 2;
            sockaddr_in address{};
            std::memcpy(&address, theirs.data() + kNonce + static_cast<std::size_t>(rank) * size,
                        sizeof address);
            const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
            EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
            EXPECT_EQ(::send(socket, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
            {
                const std::lock_guard lock(mutex);
                sockets.push_back(socket);
            }
            room.gather(rank, "the stranger is here");
            return all;
        };
        make_gloo_wire(peers, 0.5);
    });
    for (const std::string& error : errors)
        EXPECT_THAT(error, AnyOf(HasSubstr("does not know the job's token"),
                                 HasSubstr("were not connected within 0.5 s")));
    for (const int socket : sockets) {
        std::array<char, 1000> got{};
        const ssize_t bytes = ::recv(socket, got.data(), got.size(), MSG_DONTWAIT);
        // At most the headers of two messages: of one that waits for its receiver, and one that is waited
        // for.
        EXPECT_LE(bytes, 96);
        ::close(socket);
    }
}

TEST(GlooWire, ARankThatDoesNotConnectIsNamed) {
    Room room(2);
    std::vector<std::string> errors(2);
    on_threads(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        peers.where = [](int each) { return each == 0 ? "rank 0 on host a" : "rank 1 on host b"; };
        peers.gather = [&, round = 0](const std::string& mine) mutable {
            const std::vector<std::string> all = room.gather(rank, mine);
            if (++round == 2 && rank == 1) throw std::runtime_error("rank 1 has other plans");
            return all;
        };
        try {
            make_gloo_wire(peers, 0.3);
            ADD_FAILURE() << "the wire is there";
        } catch (const world::WorldError& error) {
            errors[static_cast<std::size_t>(rank)] = error.what();
        }
    });
    EXPECT_THAT(errors[0],
                HasSubstr("rank 0 on host a and rank 1 on host b were not connected within 0.3 s ("));
    EXPECT_EQ(errors[1], "Gloo cannot be used: rank 1 has other plans");
}

TEST(GlooWire, AFailureElsewhereEndsTheWaiting) {
    Room room(2);
    std::atomic<bool> failed = false;
    on_threads(2, [&](int rank) {
        WirePeers peers = room.peers(rank);
        peers.failed = [&] { return failed.load(); };
        if (rank == 1) {
            peers.gather = [&, round = 0](const std::string& mine) mutable {
                const std::vector<std::string> all = room.gather(rank, mine);
                if (++round == 2) {
                    failed = true;
                    std::this_thread::sleep_for(std::chrono::milliseconds(300));
                }
                return all;
            };
        }
        EXPECT_THROW(make_gloo_wire(peers), world::WorldError);
    });
}

TEST(TcpAddress, OneOfOurNetworksIsTriedFirst) {
    const std::vector<std::string> mine = {"172.17.0.1", "10.1.2.3", "fd00::3", "127.0.0.1"};
    EXPECT_THAT(nearest_first({"172.17.0.1", "192.168.0.7", "10.1.2.200", "fd00::7", "127.0.0.1"}, mine),
                ElementsAre("fd00::7", "10.1.2.200", "192.168.0.7", "172.17.0.1", "127.0.0.1"));
    EXPECT_THAT(world::interface_addresses(), Contains("127.0.0.1"));
}

TEST(TcpAddress, IsALineAndBack) {
    TcpAddress address;
    address.port = 4711;
    address.addresses = {"10.0.0.1", "fd00::1"};
    EXPECT_EQ(print(address), "4711 - - 10.0.0.1 fd00::1");
    const TcpAddress back = parse_tcp_address("4711 name 77/1 10.0.0.1 fd00::1");
    EXPECT_EQ(back.port, 4711);
    EXPECT_EQ(back.local_name, "name");
    EXPECT_EQ(back.kernel, "77/1");
    EXPECT_EQ(back.addresses, address.addresses);
    EXPECT_THROW(parse_tcp_address("70000 - -"), std::invalid_argument);
    EXPECT_THROW(parse_tcp_address("here"), std::invalid_argument);
}

}  // namespace TEST_FILE
