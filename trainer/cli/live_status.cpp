#include "trainer/cli/live_status.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/core.h>
#include <pthread.h>
#include <shardscope/version.h>
#include <unistd.h>

#include "profiler/base/quiet_thread.h"
#include "traces/status/address.h"
#include "traces/status/hang.h"
#include "traces/store/machine.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::cli {

namespace {

using std::chrono::milliseconds;
using traces::status::Address;
using traces::status::CollectiveStatus;
using traces::status::GroupProgress;
using traces::status::RankProgress;
using traces::status::RankState;
using traces::status::RankStatus;
using traces::status::RunState;
using traces::status::RunStatus;
using traces::status::StatusError;

constexpr const char* kTopic = "status";
// How often a process tells what its rank does: less often where many tell one.
constexpr milliseconds kTellPeriod{250}, kLongestTellPeriod{2000};
// A rank that is in a collective for that long waits, one that has said nothing for that long is silent.
constexpr double kWaitsAfterS = 1.0, kSilentAfterS = 1.2;
// Over which time the share of waiting is taken, and by how much of it the slowest rank must wait less.
constexpr std::chrono::seconds kWaitsWindow{2};
constexpr double kSlowerByPercent = 5;

milliseconds tell_period(int ranks) {
    return std::clamp(milliseconds(ranks), kTellPeriod, kLongestTellPeriod);
}

// For how long a rank that is well may say nothing: four of its reports, where these are far apart.
double silent_after_s(std::size_t ranks) {
    return std::max(kSilentAfterS, 4e-3 * static_cast<double>(tell_period(static_cast<int>(ranks)).count()));
}

std::vector<int> ranks_here(const world::World* world, int ranks) {
    if (world) return {world->rank()};
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

const char* variable(const char* name) {
    return std::getenv(name);
}

job::JobError wrong_status(const std::string& sentence) {
    return job::JobError(
        "command line: " + (sentence.starts_with("--status") ? "" : std::string("--status: ")) + sentence);
}

Address address_for(const job::Job& job, const LiveStatusOptions& options) {
    if (!options.address.empty()) return traces::status::parse_address(options.address);
    Address address;
    address.path = traces::status::socket_of(
        job.run.trace.empty() ? std::filesystem::path(options.job_file).stem().string() : job.run.trace);
    return address;
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

// The collective that the rank has been in longest, or else the one that it left last.
std::optional<CollectiveStatus> collective_of(const std::vector<GroupProgress>& groups) {
    const GroupProgress* shown = nullptr;
    for (const GroupProgress& group : groups) {
        const bool open = group.entered > group.left;
        const bool shown_open = shown && shown->entered > shown->left;
        const bool better = !shown || (open != shown_open ? open
                                       : open             ? group.for_s > shown->for_s
                                                          : group.for_s < shown->for_s);
        if (better) shown = &group;
    }
    if (!shown) return std::nullopt;
    CollectiveStatus collective;
    collective.operation = shown->operation;
    collective.open = shown->entered > shown->left;
    collective.number = collective.open ? shown->left : shown->left - 1;
    collective.group = shown->group;
    collective.for_s = shown->for_s;
    return collective;
}

}  // namespace

// The World's handlers keep it beyond the end of the LiveStatus.
struct LiveStatus::Heard {
    struct Rank {
        executor::LiveRank rank;
        Clock::time_point at;
    };
    std::mutex mutex;
    std::vector<std::optional<Rank>> ranks;
};

void check_status_address(const std::string& address) {
    try {
        if (!address.empty()) traces::status::parse_address(address);
        traces::status::token_of(variable);
    } catch (const StatusError& error) {
        throw wrong_status(error.what());
    }
}

LiveStatus::LiveStatus(const job::Job& job, const plan::Mesh& mesh, const LiveStatusOptions& options)
    : steps_(job.run.steps),
      epochs_(job.train.epochs),
      items_(job),
      members_(mesh.communicators()),
      world_(options.world),
      job_file_(options.job_file),
      trace_(job.run.trace),
      board_(ranks_here(options.world, mesh.ranks)),
      heard_(std::make_shared<Heard>()) {
    heard_->ranks.resize(static_cast<std::size_t>(mesh.ranks));
    if (world_ && world_->rank() > 0) {
        teller_ = profiler::start_quietly([this] { tell_rank_0(); });
        return;
    }
    if (world_) {
        world_->on(kTopic, [heard = heard_](int from, std::string_view text) {
            executor::LiveRank rank;
            try {
                rank = executor::LiveRank::from_text(text);
            } catch (const world::MessageError&) {
                return;
            }
            const std::lock_guard lock(heard->mutex);
            heard->ranks[static_cast<std::size_t>(from)] = Heard::Rank{std::move(rank), Clock::now()};
        });
    }
    try {
        profiler::StatusServerOptions server;
        server.address = address_for(job, options);
        server.token = traces::status::token_of(variable);
        server.line = [this] { return line(); };
        server_ = std::make_unique<profiler::StatusServer>(std::move(server));
    } catch (const StatusError& error) {
        throw wrong_status(error.what());
    }
}

LiveStatus::~LiveStatus() {
    end(RunState::failed, "the run ended without a result");  // unless it has said how it ended
    server_.reset();
    if (teller_.joinable()) teller_.join();
}

std::string LiveStatus::address() const {
    return server_ ? to_text(server_->address()) : std::string();
}

void LiveStatus::watch_stop(const std::atomic<bool>* stop) {
    const std::lock_guard lock(mutex_);
    stop_ = stop;
}

void LiveStatus::end(RunState state, const std::string& reason) {
    {
        const std::lock_guard lock(mutex_);
        stop_ = nullptr;
        if (over_) return;
        over_ = true;
        state_ = state;
        reason_ = reason;
    }
    ends_.notify_all();
}

void LiveStatus::tell_rank_0() {
    ::pthread_setname_np(::pthread_self(), "status");
    const milliseconds period = tell_period(world_->ranks());
    std::unique_lock lock(mutex_);
    while (!over_) {
        lock.unlock();
        world_->tell(kTopic, board_.of(world_->rank()).text());
        lock.lock();
        ends_.wait_for(lock, period, [&] { return over_; });
    }
}

// --- on the server's thread ------------------------------------------------------------------------------

std::string LiveStatus::line() {
    RunStatus status;
    status.tool = fmt::format("shardscope-train {}", kVersion);
    status.run = std::filesystem::path(job_file_).filename().string();
    status.trace = trace_;
    status.host = traces::store::host_name();
    status.pid = ::getpid();
    status.number = ++lines_;
    status.time_s = seconds_between(start_, Clock::now());
    bool stopping = false;
    {
        const std::lock_guard lock(mutex_);
        status.state = state_;
        status.reason = reason_;
        stopping = stop_ && stop_->load(std::memory_order_relaxed);
    }
    add_steps(status);
    if (!is_over(status.state)) {
        if (stopping) {
            status.state = RunState::stopping;
        } else if (!status.steps_done) {
            status.state = RunState::starting;
        }
    }
    add_ranks(status);
    return to_line(status);
}

void LiveStatus::add_steps(RunStatus& status) const {
    const executor::LiveSteps known = board_.steps();
    status.steps = steps_;
    if (epochs_ > 0) status.epochs = epochs_;
    status.items = items_.name;
    if (known.done < 0) return;
    status.steps_done = known.done;
    status.loss = known.loss;
    status.epoch = known.epoch;
    status.step_s = known.step_s > 0 ? known.step_s : known.mean_step_s;
    if (*status.step_s > 0) status.rate = static_cast<double>(items_.count) / *status.step_s;
    status.left_s = known.mean_step_s * static_cast<double>(std::max<std::int64_t>(steps_ - known.done, 0));
}

void LiveStatus::add_ranks(RunStatus& status) {
    const auto now = Clock::now();
    std::vector<RankProgress> progress;
    std::vector<std::int64_t> waited_ns;
    for (std::size_t i = 0; i < heard_->ranks.size(); ++i) {
        RankStatus& rank = status.ranks.emplace_back();
        rank.rank = static_cast<int>(i);
        rank.pid = ::getpid();
        if (world_) {
            rank.host = world_->members()[i].host;
            rank.pid = world_->members()[i].pid;
        } else {
            rank.host = status.host;
        }
        std::optional<executor::LiveRank> live;
        if (!world_ || rank.rank == world_->rank()) {
            live = board_.of(rank.rank);
        } else {
            const std::lock_guard lock(heard_->mutex);
            if (const auto& heard = heard_->ranks[i]) {
                live = heard->rank;
                rank.silent_s = std::max(0.0, seconds_between(heard->at, now));
            }
        }
        waited_ns.push_back(live ? live->waited_ns : 0);
        if (!live) continue;
        if (live->steps_done >= 0) {
            rank.steps_done = live->steps_done;
            rank.memory_bytes = live->memory_bytes;
            rank.peak_bytes = live->peak_bytes;
            rank.state = RankState::running;
        }
        // Until it was heard, it was where it is now.
        for (GroupProgress& group : live->groups) group.for_s += rank.silent_s;
        rank.collective = collective_of(live->groups);
        if (rank.collective && rank.collective->open && *rank.collective->for_s >= kWaitsAfterS)
            rank.state = RankState::waiting;
        if (rank.silent_s >= silent_after_s(status.ranks.size()) && !is_over(status.state))
            rank.state = RankState::silent;
        if (is_over(status.state)) rank.state = RankState::ended;
        progress.push_back({rank.rank, rank.silent_s, std::move(live->groups)});
    }
    if (is_over(status.state)) return;
    find_reason(status, progress);
    if (status.state == RunState::running) add_waits(status, waited_ns);
}

void LiveStatus::find_reason(RunStatus& status, const std::vector<RankProgress>& progress) {
    const auto members = [this](std::int64_t group) {
        const auto at = static_cast<std::size_t>(group);
        return group >= 0 && at < members_.size() ? members_[at] : std::vector<int>();
    };
    const auto process_of = [&](int rank) {
        const RankStatus& own = status.ranks[static_cast<std::size_t>(rank)];
        return fmt::format("process {} on host {}", own.pid, own.host);
    };
    if (const auto hang =
            traces::status::find_hang(progress, members, kWaitsAfterS, silent_after_s(status.ranks.size()))) {
        status.reason = hang->sentence;
        if (hang->rank >= 0 && world_)
            status.reason += fmt::format(" (rank {} is {})", hang->rank, process_of(hang->rank));
        if (status.state != RunState::stopping) status.state = RunState::waiting;
        return;
    }
    for (const RankStatus& rank : status.ranks) {
        if (rank.state != RankState::silent) continue;
        status.reason = fmt::format("rank {} ({}) has not answered for {:.1f} s", rank.rank,
                                    process_of(rank.rank), rank.silent_s);
        return;
    }
}

// How much of the last seconds each rank was in collectives: the one for which the others wait is in them
// least.
void LiveStatus::add_waits(RunStatus& status, const std::vector<std::int64_t>& waited_ns) {
    const auto now = Clock::now();
    if (earlier_.waited_ns.empty()) earlier_ = before_ = {now, waited_ns};
    if (now - before_.at >= kWaitsWindow) {
        earlier_ = std::exchange(before_, {now, waited_ns});
    }
    const double ns = seconds_between(earlier_.at, now) * 1e9;
    const bool known =
        std::any_of(waited_ns.begin(), waited_ns.end(), [](std::int64_t each) { return each > 0; });
    if (ns < 0.5e9 || waited_ns.size() < 2 || !known) return;
    double least = 200, most = -1;
    int slowest = -1;
    for (std::size_t i = 0; i < waited_ns.size(); ++i) {
        const double percent =
            std::clamp(100 * static_cast<double>(waited_ns[i] - earlier_.waited_ns[i]) / ns, 0.0, 100.0);
        status.ranks[i].waits_percent = percent;
        if (percent < least) slowest = static_cast<int>(i);
        least = std::min(least, percent);
        most = std::max(most, percent);
    }
    if (most - least >= kSlowerByPercent) status.slowest_rank = slowest;
}

}  // namespace shardscope::trainer::cli
