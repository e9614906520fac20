#include "trainer/world/joining.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "trainer/world/wording.h"

namespace shardscope::trainer::world {

namespace {

// How long a process that has connected may take to identify itself, and rank 0 to answer; less where the
// timeout for joining is short.
constexpr double kHelloSeconds = 5;
constexpr double kHelloShare = 1.0 / 8;
constexpr std::size_t kMostTokenBytes = 1024;

void check(const Place& place) {
    if (place.token.size() > kMostTokenBytes) {
        throw WorldError(fmt::format("the job's token (SHARDSCOPE_JOB_TOKEN) has {} bytes; the limit is {}",
                                     place.token.size(), kMostTokenBytes));
    }
    if (place.ranks > 1 && (place.master.empty() || place.port == 0)) {
        throw WorldError(
            fmt::format("{} does not say where the {} processes meet; set MASTER_ADDR to the host of rank 0 "
                        "and MASTER_PORT to a free port there",
                        name(place.launcher), place.ranks));
    }
}

}  // namespace

Joining::Joining(asio::io_context& io, const Place& place, const WorldOptions& options, Links& links,
                 Board& board, std::function<void(int rank)> on_link)
    : io_(io),
      place_(place),
      options_(options),
      links_(links),
      board_(board),
      on_link_(std::move(on_link)),
      own_(own_hello(place, options.version)),
      deadline_(io),
      members_(static_cast<std::size_t>(place.ranks)) {
    check(place);
    members_[static_cast<std::size_t>(place.rank)] = own_.member;
}

void Joining::begin() {
    if (place_.ranks == 1) return joined();
    first() ? open_door() : look_for_first();
    if (options_.timeout_s <= 0) return;
    deadline_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(options_.timeout_s)));
    deadline_.async_wait([this](const std::error_code& stopped) {
        if (!stopped) time_is_up();
    });
}

std::chrono::duration<double> Joining::hello_time() const {
    const double share = options_.timeout_s * kHelloShare;
    return std::chrono::duration<double>(share > 0 ? std::min(kHelloSeconds, share) : kHelloSeconds);
}

void Joining::open_door() {
    Listener listener = place_.listen_fd >= 0
                            ? Listener::inherited(place_.listen_fd)
                            : Listener::on_ports(place_.port, kPorts, is_loopback(place_.master));
    reception_.emplace(io_, std::move(listener), own_, place_.token, hello_time().count(),
                       Reception::Events{.on_member =
                                             [this](const Hello& hello, const std::shared_ptr<Link>& link) {
                                                 add(hello.rank, hello, link);
                                             },
                                         .on_error = [this](const std::string& why) { refuse(why); }});
}

void Joining::look_for_first() {
    search_.emplace(
        io_, place_, own_, hello_time().count(),
        Search::Events{.on_found = [this](const Hello& hello,
                                          const std::shared_ptr<Link>& link) { add(0, hello, link); },
                       .on_error = [this](const std::string& why) { refuse(why); }});
}

void Joining::add(int rank, const Hello& hello, const std::shared_ptr<Link>& link) {
    members_[static_cast<std::size_t>(rank)] = hello.member;
    links_.add(rank, link);
    on_link_(rank);
    if (first() && links_.size() + 1 == members_.size()) all_are_here();
}

void Joining::all_are_here() {
    if (!board_.is_joining()) return;
    reception_->close();
    links_.send_to_all(FrameKind::together, encode_members());
    joined();
}

void Joining::joined() {
    deadline_.cancel();
    board_.joined();
}

void Joining::on_frame(const Frame& frame) {
    if (frame.kind == FrameKind::refused) return refuse(frame.text);
    decode_members(frame.text);
    joined();
}

void Joining::time_is_up() {
    if (!board_.is_joining()) return;
    const std::string time = seconds_text(options_.timeout_s);
    const std::string where = fmt::format("{}, port {}", place_.master, place_.port);
    if (!first()) {
        if (!links_.empty()) return;  // found: rank 0 reports when time is up
        return refuse(fmt::format(
            "rank {} did not find rank 0 at {} within {} ({}); see whether rank 0 was started, and whether "
            "this host ({}) can reach it",
            place_.rank, where, time, search_->trouble(), own_.member.host));
    }
    std::vector<int> missing;
    for (int rank = 1; rank < place_.ranks; ++rank) {
        if (!links_.has(rank)) missing.push_back(rank);
    }
    refuse(fmt::format(
        "{} of {} did not join within {}; see whether their processes were started, and whether their hosts "
        "can reach rank 0 at {}",
        ranks_text(missing), place_.ranks, time, where));
    refuses_late_ = false;  // they have had their time
}

void Joining::refuse(const std::string& why) {
    if (!board_.is_joining()) return;
    if (first()) {
        links_.send_to_all(FrameKind::refused, why);
        reception_->refuse(why);
        refuses_late_ = true;
    }
    board_.refused(why);
}

void Joining::stop_looking() {
    if (search_) search_->close();
}

bool Joining::all_told(std::chrono::duration<double> waited) const {
    return !refuses_late_ || reception_->all_refused() || waited > hello_time();
}

void Joining::close() {
    if (reception_) reception_->close();
}

std::string Joining::encode_members() const {
    MessageWriter writer;
    for (const Member& member : members_) writer.add(member.host).add(member.pid).add(member.local_rank);
    return writer.take();
}

void Joining::decode_members(std::string_view text) {
    MessageReader reader(text);
    for (Member& member : members_) {
        member.host = reader.text();
        member.pid = reader.number<std::int64_t>();
        member.local_rank = reader.number<int>();
    }
}

}  // namespace shardscope::trainer::world
