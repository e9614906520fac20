#include "trainer/cuda/nccl_watchdog.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/collective/collective_error.h"
#include "trainer/collective/pieces.h"

namespace shardscope::trainer::cuda {

namespace {

constexpr std::chrono::milliseconds kTick{100};
// The time allowed for the other processes' answers, and for the job to notice that a process is gone.
constexpr std::chrono::milliseconds kMoment{1000};
// The time allowed for an NCCL call to return; one that waits for a lost process returns only when aborted.
constexpr std::chrono::seconds kCall{5};

// "rank 3 has", "ranks 3 and 5 have"
std::string have(const std::vector<int>& ranks) {
    if (ranks.size() == 1) return fmt::format("rank {} has", ranks.front());
    const std::vector<int> first(ranks.begin(), ranks.end() - 1);
    return fmt::format("ranks {} and {} have", traces::schema::joined(first, ", "), ranks.back());
}

}  // namespace

NcclWatchdog::NcclWatchdog(const NcclLibrary& nccl, plan::CommunicatorId id, std::vector<int> ranks,
                           double timeout_s, const NcclPeers* peers)
    : nccl_(nccl),
      id_(id),
      ranks_(std::move(ranks)),
      timeout_s_(timeout_s),
      bootstrap_(peers ? peers->bootstrap : nullptr),
      progress_(peers ? peers->progress : nullptr),
      members_(ranks_.size()) {}

NcclWatchdog::~NcclWatchdog() {
    stop();
    for (Member& member : members_) {
        if (!member.here) continue;
        cudaSetDevice(member.gpu);
        if (member.comm) nccl_.CommDestroy(member.comm);
        for (const InFlight& each : member.in_flight) {
            if (each.over) cudaEventDestroy(each.over);
        }
        for (cudaEvent_t event : member.spare) cudaEventDestroy(event);
    }
}

void NcclWatchdog::adopt(std::size_t place, NcclComm* comm, int gpu) {
    const std::lock_guard lock(mutex_);
    members_[place].here = true;
    members_[place].comm = comm;
    members_[place].gpu = gpu;
}

void NcclWatchdog::start(std::function<void(std::exception_ptr)> on_failure) {
    on_failure_ = std::move(on_failure);
    thread_ = std::thread([this] { watch(); });
}

void NcclWatchdog::stop() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

// --- the members' calls ----------------------------------------------------------------------------------

NcclWatchdog::Member& NcclWatchdog::member_of(const device::CollectiveLaunch& collective) {
    Member& member = members_.at(static_cast<std::size_t>(collective.place));
    if (!member.here) throw std::logic_error("a collective was enqueued for a rank of another process");
    return member;
}

NcclComm* NcclWatchdog::begin(const device::CollectiveLaunch& collective) {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    Member& member = member_of(collective);
    member.called = true;
    member.begun = collective.sequence + 1;
    member.in_flight.push_back({collective, Clock::now(), nullptr});
    if (progress_) {
        progress_->begins(id_, ranks_[static_cast<std::size_t>(collective.place)], collective.sequence);
    }
    return member.comm;
}

void NcclWatchdog::end_call(const device::CollectiveLaunch& collective) {
    const std::lock_guard lock(mutex_);
    member_of(collective).called = false;
    changed_.notify_all();
}

void NcclWatchdog::issued(const device::CollectiveLaunch& collective, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    Member& member = member_of(collective);
    cudaEvent_t over = nullptr;
    if (member.spare.empty()) {
        check(cudaEventCreateWithFlags(&over, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    } else {
        over = member.spare.back();
        member.spare.pop_back();
    }
    const cudaError_t result = cudaEventRecord(over, stream);
    member.in_flight.back().over = over;
    check(result, "cudaEventRecord");
}

void NcclWatchdog::refused(const std::exception_ptr& error) {
    std::unique_lock lock(mutex_);
    if (bootstrap_) changed_.wait_for(lock, kMoment, [&] { return error_ != nullptr; });
    std::rethrow_exception(error_ ? error_ : error);
}

std::string NcclWatchdog::text_of(const InFlight& collective) const {
    std::string text =
        fmt::format("{} (number {} of communicator {}, step {}", describe(collective.launch.call),
                    collective.launch.sequence, id_, collective.launch.step);
    if (collective.launch.unit >= 0) text += fmt::format(", unit {}", collective.launch.unit);
    if (collective.launch.phase != plan::Phase::none)
        text += fmt::format(", {}", traces::schema::name(collective.launch.phase));
    return text + ")";
}

std::string NcclWatchdog::waiting() {
    const std::lock_guard lock(mutex_);
    const InFlight* oldest = nullptr;
    for (Member& member : members_) {
        forget_what_is_over(member);
        if (member.in_flight.empty()) continue;
        if (!oldest || member.in_flight.front().since < oldest->since) oldest = &member.in_flight.front();
    }
    return oldest ? text_of(*oldest) : "";
}

// --- what has gone wrong ---------------------------------------------------------------------------------

void NcclWatchdog::watch() {
    std::unique_lock lock(mutex_);
    while (!ends_ && !error_) {
        changed_.wait_for(lock, kTick);
        if (ends_ || error_) return;
        const std::optional<CollectiveFailure> found = find_failure();
        if (!found) {
            failing_since_.reset();
        } else if (confirmed(*found)) {
            return give_up(lock, *found);
        }
    }
}

// Waits before it confirms a failure about which another process may know better.
bool NcclWatchdog::confirmed(const CollectiveFailure& failure) {
    if (!bootstrap_) return true;
    if (!failing_since_) {
        failing_since_ = Clock::now();
        progress_->ask();
        return false;
    }
    return failure.certain || Clock::now() - *failing_since_ > kMoment;
}

// Informs the job first: its other processes would take an aborted communicator for a lost process.
void NcclWatchdog::give_up(std::unique_lock<std::mutex>& lock, const CollectiveFailure& failure) {
    const std::exception_ptr error =
        bootstrap_ ? std::make_exception_ptr(collective::CollectiveError(failure.sentence))
                   : std::make_exception_ptr(CudaError(failure.sentence));
    error_ = error;
    changed_.notify_all();
    lock.unlock();
    if (bootstrap_) bootstrap_->fail(failure.rank, failure.reason);
    abort_communicators();
    if (on_failure_) on_failure_(error);
}

void NcclWatchdog::forget_what_is_over(Member& member) {
    while (!member.in_flight.empty()) {
        cudaEvent_t over = member.in_flight.front().over;
        if (!over || cudaEventQuery(over) != cudaSuccess) break;
        member.spare.push_back(over);
        member.in_flight.pop_front();
    }
    (void)cudaGetLastError();  // "not ready" counts as an error
}

std::optional<NcclWatchdog::CollectiveFailure> NcclWatchdog::find_failure() {
    for (std::size_t m = 0; m < members_.size(); ++m) {
        Member& member = members_[m];
        if (!member.comm) continue;
        int state = kNcclSuccess;
        nccl_.CommGetAsyncError(member.comm, &state);
        if (state != kNcclSuccess && state != kNcclInProgress) {
            const std::string what =
                fmt::format("NCCL failed: {}; NCCL_DEBUG=WARN says more", nccl_.GetErrorString(state));
            return CollectiveFailure{fmt::format("rank {}: {}", ranks_[m], what), ranks_[m],
                                     "says that " + what, false};
        }
        forget_what_is_over(member);
    }
    if (timeout_s_ <= 0) return std::nullopt;
    for (std::size_t m = 0; m < members_.size(); ++m) {
        if (members_[m].in_flight.empty()) continue;
        const InFlight& first = members_[m].in_flight.front();
        if (Clock::now() - first.since > std::chrono::duration<double>(timeout_s_)) return late(m, first);
    }
    return std::nullopt;
}

std::optional<std::int64_t> NcclWatchdog::begun(std::size_t place) const {
    if (members_[place].here || !progress_) return members_[place].begun;
    return progress_->begun(id_, ranks_[place]);
}

// A rank that has not begun the collective is the one that the others wait for.
NcclWatchdog::CollectiveFailure NcclWatchdog::late(std::size_t place, const InFlight& collective) const {
    std::vector<int> missing, silent;
    for (std::size_t m = 0; m < members_.size(); ++m) {
        const std::optional<std::int64_t> count = begun(m);
        if (!count) silent.push_back(ranks_[m]);
        if (count && *count <= collective.launch.sequence) missing.push_back(ranks_[m]);
    }
    const std::string what = text_of(collective);
    std::string who;
    if (!missing.empty()) who = have(missing) + " not begun it";
    if (!silent.empty()) {
        who += (who.empty() ? "" : ", and ") + have(silent) + " not said whether it has begun it";
    }
    if (who.empty()) who = "all its ranks have begun it";
    CollectiveFailure failure;
    failure.sentence = fmt::format("rank {}: {} did not end within the {} s of run.timeout; {}",
                                   ranks_[place], what, timeout_s_, who);
    failure.certain = silent.empty();
    if (!missing.empty()) {
        failure.rank = missing.front();
        failure.reason =
            fmt::format("has not begun {} within the {} s of run.timeout, in which rank {} waits", what,
                        timeout_s_, ranks_[place]);
    } else if (!silent.empty()) {
        failure.rank = silent.front();
        failure.reason =
            fmt::format("does not answer; rank {} has waited for more than the {} s of run.timeout in {}",
                        ranks_[place], timeout_s_, what);
    } else {
        failure.rank = ranks_[place];
        failure.reason = fmt::format(
            "waits in {}, which did not end within the {} s of run.timeout, though all its ranks "
            "have begun it; NCCL_DEBUG=INFO says more",
            what, timeout_s_);
    }
    return failure;
}

// --- aborting --------------------------------------------------------------------------------------------

// Releases streams that wait in NCCL's kernels. As the error is set, no new call begins; an abort frees
// memory that a call uses, so the calls under way must return first. The abort itself runs without the lock,
// because it may take long.
void NcclWatchdog::abort_communicators() {
    std::vector<std::pair<int, NcclComm*>> taken;
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kCall, [this] {
            return std::none_of(members_.begin(), members_.end(), [](const Member& m) { return m.called; });
        });
        for (Member& member : members_) {
            if (member.comm) taken.emplace_back(member.gpu, std::exchange(member.comm, nullptr));
        }
    }
    for (const auto& [gpu, comm] : taken) {
        cudaSetDevice(gpu);
        nccl_.CommAbort(comm);
    }
}

void NcclWatchdog::fail(std::exception_ptr error) {
    {
        const std::lock_guard lock(mutex_);
        if (error_) return;
        error_ = std::move(error);
        changed_.notify_all();
    }
    abort_communicators();
}

}  // namespace shardscope::trainer::cuda
