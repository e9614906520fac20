#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/core.h>

#include "trainer/world/wording.h"
#include "trainer/world/world_impl.h"

namespace shardscope::trainer {

namespace {

// How long a process that has connected may take to identify itself, and rank 0 to answer; less where the
// timeout for joining is short.
constexpr double kHelloSeconds = 5;
constexpr double kHelloShare = 1.0 / 8;
constexpr std::size_t kMostTokenBytes = 1024;

void check(const Place& place) {
    if (place.token.size() > kMostTokenBytes) {
        throw WorldError(fmt::format("the job's token (SHARDSCOPE_JOB_TOKEN) has {} bytes; {} are the most",
                                     place.token.size(), kMostTokenBytes));
    }
    if (place.ranks > 1 && (place.master.empty() || place.port == 0)) {
        throw WorldError(
            fmt::format("{} does not say where the {} processes meet; set MASTER_ADDR to the host of rank 0 "
                        "and MASTER_PORT to a free port there",
                        name(place.launcher), place.ranks));
    }
}

// A thread on which no signal handler runs: signal handlers belong to the program.
std::thread start_without_signals(const std::function<void()>& function) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(function);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

}  // namespace

World::Impl::Impl(const Place& at, const WorldOptions& with)
    : place(at),
      options(with),
      own(own_hello(at, with.version)),
      turns(
          at.ranks, [this](int rank) { links.at(rank)->send(FrameKind::clock_turn); },
          [this] {
              send_to_all(FrameKind::clock_end, FrameWriter().number(clock_call).take());
              put_result(clock_call, {});
          }) {
    check(place);
    members.resize(static_cast<std::size_t>(place.ranks));
    members[static_cast<std::size_t>(place.rank)] = own.member;
    if (place.ranks == 1) {
        joined();
    } else {
        first() ? open_door() : look_for_first();
        pulse.emplace(io, links, options.timeout_s, [this](int rank) { on_silent(rank); });
        if (options.timeout_s > 0) {
            deadline.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(
                std::chrono::duration<double>(options.timeout_s)));
            deadline.async_wait([this](const std::error_code& stopped) {
                if (!stopped) time_is_up();
            });
        }
    }
    thread = start_without_signals([this] { run(); });
}

std::chrono::duration<double> World::Impl::hello_time() const {
    const double share = options.timeout_s * kHelloShare;
    return std::chrono::duration<double>(share > 0 ? std::min(kHelloSeconds, share) : kHelloSeconds);
}

void World::Impl::open_door() {
    Listener listener = place.listen_fd >= 0
                            ? Listener::inherited(place.listen_fd)
                            : Listener::on_ports(place.port, kPorts, is_loopback(place.master));
    reception.emplace(io, std::move(listener), own, place.token, hello_time().count(),
                      Reception::Events{.on_member =
                                            [this](const Hello& hello, const std::shared_ptr<Link>& link) {
                                                add(hello.rank, hello, link);
                                            },
                                        .on_error = [this](const std::string& why) { refuse(why); }});
}

void World::Impl::look_for_first() {
    search.emplace(
        io, place, own, hello_time().count(),
        Search::Events{.on_found = [this](const Hello& hello,
                                          const std::shared_ptr<Link>& link) { add(0, hello, link); },
                       .on_error = [this](const std::string& why) { refuse(why); }});
}

void World::Impl::add(int rank, const Hello& hello, const std::shared_ptr<Link>& link) {
    members[static_cast<std::size_t>(rank)] = hello.member;
    link->hand_to({.on_frame = [this, rank](Frame&& frame) { on_frame(rank, frame); },
                   .on_end = [this, rank](const std::error_code& error) { on_end(rank, error); }},
                  kMostFrameBytes);
    links[rank] = link;
    if (!first()) return;
    if (options.on_join) guarded([this, rank] { options.on_join(rank); });
    if (links.size() + 1 == members.size()) all_are_here();
}

void World::Impl::all_are_here() {
    if (state != State::joining) return;
    reception->close();
    send_to_all(FrameKind::together, encode_members());
    joined();
}

void World::Impl::joined() {
    deadline.cancel();
    number_hosts();
    const std::scoped_lock lock(mutex);
    state = State::joined;
    changed.notify_all();
}

void World::Impl::time_is_up() {
    if (state != State::joining) return;
    const std::string time = seconds_text(options.timeout_s);
    const std::string where = fmt::format("{}, port {}", place.master, place.port);
    if (!first()) {
        if (!links.empty()) return;  // found: rank 0 reports when time is up
        return refuse(fmt::format(
            "rank {} did not find rank 0 at {} within {} ({}); see whether rank 0 was started, and whether "
            "this host ({}) can reach it",
            place.rank, where, time, search->trouble(), own.member.host));
    }
    std::vector<int> missing;
    for (int rank = 1; rank < place.ranks; ++rank) {
        if (!links.contains(rank)) missing.push_back(rank);
    }
    refuse(fmt::format(
        "{} of {} did not join within {}; see whether their processes were started, and whether their hosts "
        "can reach rank 0 at {}",
        ranks_text(missing), place.ranks, time, where));
    refuses_late = false;  // they have had their time
}

void World::Impl::refuse(const std::string& why) {
    if (state != State::joining) return;
    if (first()) {
        send_to_all(FrameKind::refused, why);
        reception->refuse(why);
        refuses_late = true;
    }
    const std::scoped_lock lock(mutex);
    state = State::refused;
    sentence = why;
    changed.notify_all();
}

void World::Impl::number_hosts() {
    std::map<std::string, int> numbers;
    for (const Member& member : members) {
        const auto number = static_cast<int>(numbers.size());
        host_numbers.push_back(numbers.try_emplace(member.host, number).first->second);
    }
}

std::string World::Impl::encode_members() const {
    FrameWriter writer;
    for (const Member& member : members)
        writer.text(member.host).number(member.pid).number(member.local_rank);
    return writer.take();
}

void World::Impl::decode_members(std::string_view text) {
    FrameReader reader(text);
    for (Member& member : members) {
        member.host = reader.text();
        member.pid = reader.number();
        member.local_rank = reader.small_number();
    }
}

}  // namespace shardscope::trainer
