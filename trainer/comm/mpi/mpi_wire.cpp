#include "trainer/comm/mpi/mpi_wire.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fmt/core.h>
#include <sys/eventfd.h>

#include "profiler/base/clock.h"
#include "trainer/comm/mpi/mpi_job.h"
#include "trainer/comm/relax.h"
#include "trainer/comm/sleep.h"

namespace shardscope::trainer::comm::mpi {

namespace {

constexpr std::uint64_t kWireTags = std::uint64_t{1} << 32;
// The most communicators that are made if a library's tags are small; Open MPI needs two.
constexpr std::uint64_t kMostCommunicators = 8;

// A send of at most this is usually over when MPI_Isend returns, which one MPI_Test tells.
constexpr std::size_t kSmallBytes = 4096;

// A wait polls for kSpinNs while messages are under way, then sleeps between polls, first for kFirstSleepNs
// and each time half as long again. MPI moves data only when it is polled: with messages under way no sleep
// is longer than kBusySleepNs; with none, a poll at most sends what MPI has buffered. The spin takes about as
// long as one part of a large message, so that its parts follow each other without a sleep. It does not yield
// the core, which threads that compute would give back only after milliseconds.
constexpr long kSpinNs = 50'000;
constexpr long kFirstSleepNs = 20'000;
constexpr long kBusySleepNs = 200'000;
constexpr long kIdleSleepNs = 2'000'000;

}  // namespace

MpiWire::MpiWire(const MpiWireOptions& options, std::string library)
    : options_(options), library_(std::move(library)), waker_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    options_.chunk_bytes = std::clamp<std::size_t>(options_.chunk_bytes, 1, INT_MAX);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    const int* upper_bound = nullptr;
    int known = 0;
    const int code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper_bound, &known);
    tags_ =
        (code == MPI_SUCCESS && known && upper_bound ? static_cast<std::uint64_t>(*upper_bound) : 32767) + 1;
    if (options_.tags != 0) tags_ = std::min(tags_, options_.tags);
    const std::uint64_t needed = std::min((kWireTags + tags_ - 1) / tags_, kMostCommunicators);
    communicators_.resize(needed, MPI_COMM_NULL);
    for (MPI_Comm& communicator : communicators_) {
        const int made = MPI_Comm_dup(MPI_COMM_WORLD, &communicator);  // inherits its error handler
        if (made != MPI_SUCCESS) fail("MPI_Comm_dup", made, -1);
    }
    if (!waker_) throw WireError(fmt::format("no eventfd can be made ({})", std::strerror(errno)));
}

void MpiWire::fail(const char* call, int code, int peer) const {
    const std::string what = describe_error(call, code);
    if (peer < 0) throw WireError(fmt::format("{} failed ({})", library_, what));
    throw WireError(fmt::format("{} failed between rank {} and rank {} ({})", library_, rank_, peer, what),
                    peer);
}

MpiWire::Channel MpiWire::channel(std::uint32_t tag) const {
    if (tag < tags_) return {communicators_[0], static_cast<int>(tag)};
    if (tag / tags_ >= communicators_.size()) {
        throw WireError(
            fmt::format("{} supports only tags below {}, but tag {} is needed; use run.comm = \"tcp\"",
                        library_, tags_ * communicators_.size(), tag));
    }
    return {communicators_[tag / tags_], static_cast<int>(tag % tags_)};
}

std::size_t MpiWire::open_message() {
    if (free_.empty()) {
        parts_left_.push_back(0);
        return parts_left_.size() - 1;
    }
    const std::size_t message = free_.back();
    free_.pop_back();
    return message;
}

// An empty message has one part, too.
template <class Byte, class Start>
Wire::Ticket MpiWire::start(int peer, std::uint32_t tag, std::span<Byte> data, bool receives,
                            const Start& start_part) {
    const Channel where = channel(tag);
    const std::size_t message = open_message();
    std::size_t offset = 0;
    do {
        const int bytes = static_cast<int>(std::min(options_.chunk_bytes, data.size() - offset));
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = start_part(data.data() + offset, bytes, where, &request);
        if (code != MPI_SUCCESS) fail(receives ? "MPI_Irecv" : "MPI_Isend", code, peer);
        if (!receives && data.size() <= kSmallBytes && over(request, peer)) break;
        requests_.push_back(request);
        parts_.push_back({message, peer, receives ? bytes : -1});
        parts_left_[message]++;
        offset += static_cast<std::size_t>(bytes);
    } while (offset < data.size());
    return message + 1;
}

bool MpiWire::over(MPI_Request& sent, int peer) const {
    int flag = 0;
    const int code = MPI_Test(&sent, &flag, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) fail("MPI_Isend", code, peer);
    return flag != 0;
}

Wire::Ticket MpiWire::send(int to, std::uint32_t tag, std::span<const std::byte> data) {
    return start(to, tag, data, false,
                 [to](const std::byte* part, int bytes, const Channel& where, MPI_Request* request) {
                     return MPI_Isend(part, bytes, MPI_BYTE, to, where.tag, where.communicator, request);
                 });
}

Wire::Ticket MpiWire::receive(int from, std::uint32_t tag, std::span<std::byte> data) {
    return start(from, tag, data, true,
                 [from](std::byte* part, int bytes, const Channel& where, MPI_Request* request) {
                     return MPI_Irecv(part, bytes, MPI_BYTE, from, where.tag, where.communicator, request);
                 });
}

bool MpiWire::done(Ticket ticket) {
    const std::size_t message = ticket - 1;
    if (parts_left_[message] != 0) return false;
    free_.push_back(message);
    return true;
}

// A part is over.
void MpiWire::finish(const Part& part, int code, const MPI_Status& status) {
    if (code != MPI_SUCCESS) fail(part.bytes < 0 ? "MPI_Isend" : "MPI_Irecv", code, part.peer);
    int bytes = 0;
    if (part.bytes >= 0 && MPI_Get_count(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes != part.bytes) {
        throw WireError(fmt::format("rank {} sent a message of {} bytes, but {} were expected", part.peer,
                                    bytes, part.bytes),
                        part.peer);
    }
    parts_left_[part.message]--;
}

bool MpiWire::test() {
    if (requests_.empty()) {
        // Lets MPI send what it has buffered: a small message is over for its sender before it has left.
        int there = 0;
        const int code =
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicators_[0], &there, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) fail("MPI_Iprobe", code, -1);
        return false;
    }
    return requests_.size() == 1 ? test_one() : test_some();
}

// The usual case of a round trip, in which MPI_Testsome and sorting would cost as much as the message.
bool MpiWire::test_one() {
    int over = 0;
    MPI_Status status;
    const int code = MPI_Test(requests_.data(), &over, &status);
    if (code == MPI_SUCCESS && !over) return false;
    finish(parts_[0], code, status);
    requests_.clear();
    parts_.clear();
    return true;
}

bool MpiWire::test_some() {
    finished_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                  finished_.data(), statuses_.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) fail("MPI_Testsome", code, -1);
    if (count == MPI_UNDEFINED || count == 0) return false;
    for (int i = 0; i < count; i++) {
        const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
        finish(parts_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)])],
               code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS, status);
    }
    // From the last one down, so that the entry moved into a finished one's place is not finished itself.
    std::sort(finished_.begin(), finished_.begin() + count);
    for (int i = count - 1; i >= 0; i--) {
        const auto at = static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)]);
        requests_[at] = requests_.back();
        parts_[at] = parts_.back();
        requests_.pop_back();
        parts_.pop_back();
    }
    return true;
}

bool MpiWire::progress(int wait_us) {
    if (test()) return true;
    if (wait_us <= 0) return false;
    const long begin = profiler::monotonic_ns(), deadline = begin + wait_us * 1'000L;
    long length = kFirstSleepNs;
    for (long now = begin;; now = profiler::monotonic_ns()) {
        if (woken_.exchange(false, std::memory_order_acquire)) {
            take_pokes(waker_.get());
            return test();
        }
        if (now >= deadline) return false;
        if (now - begin < kSpinNs && !requests_.empty()) {
            relax();
        } else {
            sleep_on(waker_.get(), std::min(length, deadline - now));
            length = std::min(length + length / 2, requests_.empty() ? kIdleSleepNs : kBusySleepNs);
        }
        if (test()) return true;
    }
}

void MpiWire::wake() {
    woken_.store(true, std::memory_order_release);
    poke(waker_.get());
}

}  // namespace shardscope::trainer::comm::mpi
