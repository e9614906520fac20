#include "trainer/world/hello.h"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "trainer/world/message.h"
#include "trainer/world/wording.h"

namespace shardscope::trainer::world {

namespace {

constexpr std::int64_t kProtocol = 3;

}  // namespace

std::string own_host_name() {
    utsname name{};
    return ::uname(&name) == 0 ? name.nodename : "localhost";
}

Hello own_hello(const Place& place, const std::string& version) {
    return {.protocol = kProtocol,
            .version = version,
            .rank = place.rank,
            .ranks = place.ranks,
            .member = {.host = own_host_name(), .pid = ::getpid(), .local_rank = place.local_rank}};
}

std::string encode(const Hello& hello) {
    return MessageWriter()
        .add(hello.protocol)
        .add(hello.version)
        .add(hello.rank)
        .add(hello.ranks)
        .add(hello.member.host)
        .add(hello.member.pid)
        .add(hello.member.local_rank)
        .take();
}

Hello decode_hello(std::string_view text) {
    MessageReader reader(text);
    Hello hello;
    hello.protocol = reader.number<std::int64_t>();
    hello.version = reader.text();
    if (hello.protocol != kProtocol) return hello;
    hello.rank = reader.number<int>();
    hello.ranks = reader.number<int>();
    hello.member.host = reader.text();
    hello.member.pid = reader.number<std::int64_t>();
    hello.member.local_rank = reader.number<int>();
    return hello;
}

std::string disagreement(const Hello& rank_0, const Hello& other) {
    if (other.protocol != rank_0.protocol || other.version != rank_0.version) {
        const std::string who = other.protocol == rank_0.protocol
                                    ? fmt::format("rank {} ({})", other.rank, process_text(other.member))
                                    : std::string("a process of the job");
        return fmt::format(
            "{} is shardscope {} (protocol {}), rank 0 ({}) is shardscope {} (protocol {}); start the same "
            "version everywhere",
            who, other.version, other.protocol, process_text(rank_0.member), rank_0.version, rank_0.protocol);
    }
    if (other.ranks != rank_0.ranks || other.rank < 1 || other.rank >= rank_0.ranks) {
        return fmt::format(
            "rank {} ({}) was started as one of {} ranks, rank 0 ({}) as one of {}; start all with the same "
            "number",
            other.rank, process_text(other.member), other.ranks, process_text(rank_0.member), rank_0.ranks);
    }
    return {};
}

}  // namespace shardscope::trainer::world
