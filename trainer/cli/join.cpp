#include "trainer/cli/join.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <shardscope/version.h>

#include "trainer/cli/rank_errors.h"
#include "trainer/comm/gloo_wire.h"
#include "trainer/comm/tcp_wire.h"
#include "trainer/world/listener.h"
#include "trainer/world/own_addresses.h"
#include "trainer/world/own_launcher.h"

namespace shardscope::trainer::cli {

namespace {

// If the job cannot be read, the processes wait only briefly to report that.
constexpr double kTimeoutWithoutJob = 60;

// srun starts MPI processes only where it is configured to (--mpi, or the cluster's MpiDefault); otherwise
// MPI_Init ends the process.
bool srun_started_mpi() {
    return std::getenv("PMIX_RANK") || std::getenv("PMI_RANK");
}

// Opens MPI if its launcher started the processes or the job requests it. srun may start either kind.
std::unique_ptr<comm::MpiModule> open_mpi(const world::Place& place, const job::Job* job) {
    const job::CommKind comm = job ? job->run.comm : job::CommKind::automatic;
    const bool asked = comm == job::CommKind::mpi;
    const bool useful = comm == job::CommKind::automatic && (!job || job->run.device == job::DeviceKind::cpu);
    const bool needed = place.launcher == world::Launcher::mpirun && (useful || place.master.empty());
    if (asked && place.launcher == world::Launcher::srun && !srun_started_mpi()) {
        throw world::WorldError(
            "run.comm = \"mpi\": srun has not started the processes for an MPI; use srun --mpi=pmix, or "
            "run.comm = \"tcp\"");
    }
    if (asked || needed) return comm::MpiModule::open();
    if (place.launcher != world::Launcher::srun || !useful || !srun_started_mpi()) return nullptr;
    try {
        return comm::MpiModule::open();
    } catch (const world::WorldError&) {  // srun without MPI: like torchrun
        return nullptr;
    }
}

// Rank 0 broadcasts its listening address and the token to the others through MPI.
void meet_through(comm::MpiModule& mpi, world::Place& place) {
    std::string message;
    if (place.rank == 0) {
        world::Listener listener = world::Listener::on_ports(0, 1, place.local_ranks == place.ranks);
        const char* token = std::getenv(world::kTokenVariable);
        if (!token || !*token) place.token = world::random_token();  // MPI carries it
        place.token_is_guessable = false;
        message = fmt::format("{} {} {}", world::own_addresses(), listener.port(), place.token);
        place.listen_fd = listener.release();
    }
    message = mpi.broadcast(message);
    const std::size_t port = message.find(' '), token = message.find(' ', port + 1);
    if (token == std::string::npos)
        throw world::WorldError("rank 0 does not announce where it listens; start the job again");
    place.master = message.substr(0, port);
    std::from_chars(message.data() + port + 1, message.data() + token, place.port);
    place.token = message.substr(token + 1);
}

// Time for the first failure to reach all processes, and time for the process that reports it to do so: once
// a process ends, its launcher may end the others.
constexpr auto kKnown = std::chrono::seconds(1);
constexpr auto kSaid = std::chrono::milliseconds(300);

struct FirstFailure {
    std::mutex mutex;
    std::condition_variable known;
    std::optional<world::Failure> failure;
};

// Ranks with the same failure name different ranks in it, each its own.
std::string without_rank(std::string reason, int rank) {
    const std::string name = fmt::format("rank {}:", rank);
    for (auto at = reason.find(name); at != std::string::npos; at = reason.find(name, at))
        reason.replace(at, name.size(), "rank:");
    return reason;
}

}  // namespace

Joined::Joined(world::Place place, const job::Job* job)
    : mpi_(open_mpi(place, job)),
      comm_(job ? job->run.comm : job::CommKind::automatic),
      over_mpi_(mpi_ && comm_ != job::CommKind::gloo && comm_ != job::CommKind::tcp),
      gpus_(job && job->run.device == job::DeviceKind::cuda),
      exceptions_(std::uncaught_exceptions()) {
    if (mpi_) mpi_library_ = mpi_->library();
    if (mpi_ && place.master.empty()) meet_through(*mpi_, place);
    world::WorldOptions options;
    options.timeout_s = job ? job->run.timeout : kTimeoutWithoutJob;
    options.version = kVersion;
    world_ = std::make_unique<world::World>(place, options);
    processes_.world = world_.get();
    processes_.open_wire = [this] { return open_wire(); };
}

Joined::~Joined() {
    const bool failed = (std::uncaught_exceptions() > exceptions_ && !agreed_) || world_->failed();
    if (failed) {
        if (mpi_) mpi_->abandon();
    } else {
        world_->leave();
    }
}

std::unique_ptr<comm::Wire> Joined::open_wire() {
    if (over_mpi_) return mpi_->wire();
    return comm_ == job::CommKind::gloo ? comm::make_gloo_wire(*world_) : comm::make_tcp_wire(*world_);
}

std::vector<traces::schema::RunInfoRow> Joined::facts() const {
    std::vector<traces::schema::RunInfoRow> facts = {{"launcher", name(world_->place().launcher)},
                                                     {"hosts", std::to_string(world_->hosts())}};
    if (over_mpi_) facts.push_back({"mpi", mpi_library_});
    return facts;
}

std::string Joined::line() const {
    const int hosts = world_->hosts();
    return fmt::format("{} processes on {} host{}, started by {}{}", world_->ranks(), hosts,
                       hosts == 1 ? "" : "s", name(world_->place().launcher),
                       gpus_                          ? ""
                       : over_mpi_                    ? ", collectives over " + mpi_library_
                       : comm_ == job::CommKind::gloo ? ", collectives over Gloo"
                                                      : ", collectives over TCP");
}

void Joined::agree(const std::exception* error) {
    RankError own;
    if (error) own = {sentence_of(*error), status_of(*error)};
    const std::vector<std::string> texts = world_->gather(own.text());
    std::vector<RankError> errors;
    std::vector<std::string> hosts;
    int status = 0;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
        errors.push_back(RankError::from_text(texts[rank]));
        hosts.push_back(world_->members()[rank].host);
        if (errors.back().status == 0) continue;
        status = status == 0 ? errors.back().status : std::min(status, errors.back().status);
    }
    if (status == 0) return;
    agreed_ = true;
    // Printed before any process leaves: once a process ends, its launcher may end the others.
    if (world_->rank() == 0) {
        for (const std::string& sentence : rank_error_sentences(errors, hosts))
            fmt::print(stderr, "shardscope-train: {}\n", sentence);
        std::fflush(stderr);
    }
    throw ReportedTogether(status);
}

ErrorReporter Joined::reporter(const std::exception& error) {
    const std::string reason = ": " + sentence_of(error);
    const auto first = std::make_shared<FirstFailure>();
    world_->on_failure([first](const world::Failure& failure) {
        const std::lock_guard lock(first->mutex);
        first->failure = failure;
        first->known.notify_all();
    });
    world_->fail({world_->rank(), reason, false});
    std::unique_lock lock(first->mutex);
    if (!first->known.wait_for(lock, kKnown, [&] { return first->failure.has_value(); }))
        return ErrorReporter::itself;
    const world::Failure& failure = *first->failure;
    if (failure.rank == world_->rank()) return ErrorReporter::first;
    if (without_rank(failure.reason, failure.rank) != without_rank(reason, world_->rank()))
        return ErrorReporter::itself;
    std::this_thread::sleep_for(kSaid);
    return ErrorReporter::other;
}

}  // namespace shardscope::trainer::cli
