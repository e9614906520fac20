#include "trainer/comm/collective_group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <pthread.h>

#include "trainer/comm/call_header.h"
#include "trainer/comm/header_exchange.h"
#include "trainer/comm/membership.h"
#include "trainer/comm/message_tag.h"
#include "trainer/comm/moves.h"
#include "trainer/comm/ordered_sums.h"
#include "trainer/comm/relax.h"
#include "trainer/comm/ring_sums.h"
#include "trainer/comm/scratch_pool.h"
#include "trainer/comm/transfer.h"

namespace shardscope::trainer::comm {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr std::size_t kOrderedScratch = 4;  // ordered sums that can receive at the same time
constexpr microseconds kIdleWait{1'000'000};
constexpr microseconds kBusyWait{100'000};
// How long to poll before a sleep: about the time in which another member copies and sums a block between two
// polls, and little of the time for which a thread that computes takes the core.
constexpr microseconds kLookBriefly{200};
// How long a member that found a divergence waits for all headers to be exchanged, so that the others find
// it, too.
constexpr microseconds kLastWords{250'000};
// Added to the timeout, so that the World reports a silent process first: it does so at most one beat of its
// pulse (1 s) after the timeout. This group sees only that the ranks that wait for that process do not
// arrive, and must not blame them. Meanwhile the ranks that were asked answer.
constexpr microseconds kWorldFirst{1'500'000};

struct Flight {
    device::CollectiveLaunch launch;
    ProcessGroup::Done done;
    Clock::time_point begun;
    std::uint64_t number = 0;  // counts what this rank has begun, from 1
    // Set by start().
    const std::vector<int>* ranks = nullptr;
    std::unique_ptr<HeaderExchange> headers;
    std::unique_ptr<Transfer> transfer;  // null: nothing but headers is sent (a barrier)
};

class CollectiveGroup : public ProcessGroup {
  public:
    CollectiveGroup(std::unique_ptr<Wire> wire, const CollectiveGroupOptions& options)
        : options_(options),
          name_(wire->name()),
          scratch_(options.sums == Sums::ordered ? kOrderedScratch : std::numeric_limits<std::size_t>::max()),
          wire_(std::move(wire)) {
        if (options.mesh.ranks != wire_->ranks()) {
            throw std::logic_error(fmt::format("the mesh has {} ranks, but the wire connects {}",
                                               options.mesh.ranks, wire_->ranks()));
        }
        thread_ = std::thread([this] { run(); });
        if (options_.inquiry) options_.inquiry->listen([this] { be_asked(); });
    }
    ~CollectiveGroup() override { join(); }

    const char* name() const override { return name_.c_str(); }
    void look_while(std::function<bool()> nothing_to_do) override;
    void begin(const device::CollectiveLaunch& collective, Done done) override;
    void fail(std::exception_ptr error) override;
    std::string waiting() const override;
    void stop() override { join(); }

  private:
    // The ranks of a communicator and this member's progress in it.
    struct Communicator {
        std::vector<int> ranks;               // by place; empty: this rank is none of its members
        std::int64_t first_open = 0;          // all earlier collectives have ended
        std::set<std::int64_t> ended;         // later ones that have ended
        std::map<std::int64_t, Flight> held;  // begun, but too far ahead to start
    };

    // --- on any thread -------------------------------------------------------------------------------------
    void join();
    void be_asked();  // called by the inquiry
    void wake();

    // --- on the group's thread -----------------------------------------------------------------------------
    void run();
    void carry_on();  // returns after stop(), throws at a failure
    bool accept();    // takes what begin() has queued; false: stop() was called and all has ended
    void start(Communicator& communicator, Flight flight);
    bool advance(Flight& flight);  // whether anything changed
    bool advance_all();
    bool look();  // polls briefly; whether there is anything new
    void end(std::list<Flight>::iterator flight);
    void check_divergence(const Flight& flight);
    // Returns the time until the next deadline; throws if a collective is past its own.
    microseconds check_deadlines();
    const Flight& oldest() const;  // the one under way whose begin() was called first
    Standing standing() const;
    void check_held() const;  // called when all else has ended; throws if one waits for one that never began
    CollectiveTrouble lost(const WireError& error) const;
    void refuse(const std::exception_ptr& error);  // ends everything, and what begins before stop()
    CallHeader header(const Flight& flight) const { return header_of(flight.launch); }
    std::string title_of(const CallHeader& call) const {
        return title(call, options_.unit_name, options_.mesh.ends(call.communicator));
    }
    std::string title_of(const Flight& flight) const { return title_of(header(flight)); }

    const CollectiveGroupOptions options_;
    const std::string name_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;           // wakes the thread once it no longer uses the wire
    std::list<Flight> begun_;                   // not yet accepted by the thread
    std::map<std::uint64_t, CallHeader> open_;  // those that have not ended successfully, by number
    std::uint64_t numbers_ = 0;
    std::exception_ptr failure_;  // the first failure
    std::function<bool()> nothing_to_do_;
    bool stopping_ = false, stopped_ = false, asked_ = false;

    std::atomic<bool> woken_{false};

    // Used by the group's thread only.
    ScratchPool scratch_;
    std::map<plan::CommunicatorId, Communicator> communicators_;
    std::list<Flight> flights_;      // under way, in the order in which they started
    std::uint64_t asked_about_ = 0;  // number of the late collective that the others were asked about
    std::unique_ptr<Wire> wire_;     // other threads call only wake()

    std::mutex joining_;
    std::thread thread_;
};

// A failure that the group itself detects.
class Trouble : public collective::CollectiveError {
  public:
    explicit Trouble(const CollectiveTrouble& trouble)
        : collective::CollectiveError(
              trouble.rank < 0 ? trouble.reason : fmt::format("rank {} {}", trouble.rank, trouble.reason)),
          trouble_(trouble) {}
    const CollectiveTrouble& trouble() const { return trouble_; }

  private:
    CollectiveTrouble trouble_;
};

struct ToldToFail {};  // fail() was called

// --- on any thread -----------------------------------------------------------------------------------------

void CollectiveGroup::look_while(std::function<bool()> nothing_to_do) {
    const std::lock_guard lock(mutex_);
    nothing_to_do_ = std::move(nothing_to_do);
}

// Called after each change that the thread must see.
void CollectiveGroup::wake() {
    woken_.store(true, std::memory_order_release);
    changed_.notify_one();
    wire_->wake();
}

void CollectiveGroup::begin(const device::CollectiveLaunch& collective, Done done) {
    check_call(options_.mesh, wire_->rank(), collective);
    Flight flight;
    flight.launch.communicator = collective.communicator;
    flight.launch.place = collective.place;
    flight.launch.members = collective.members;
    flight.launch.sequence = collective.sequence;
    flight.launch.call = collective.call;
    flight.launch.step = collective.step;
    flight.launch.unit = collective.unit;
    flight.launch.phase = collective.phase;
    flight.done = std::move(done);
    flight.begun = Clock::now();
    std::list<Flight> one;
    one.push_back(std::move(flight));
    std::exception_ptr refusal;
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) {
            refusal = failure_ ? failure_
                               : std::make_exception_ptr(std::logic_error(
                                     "a collective began after the process group was stopped"));
        } else {
            one.front().number = ++numbers_;
            open_.emplace(numbers_, header(one.front()));
            begun_.splice(begun_.end(), one);
        }
    }
    if (refusal) return one.front().done(refusal);
    // The group's own thread, in the end of another, looks for what has begun before it waits.
    if (std::this_thread::get_id() != thread_.get_id()) wake();
}

void CollectiveGroup::fail(std::exception_ptr error) {
    {
        const std::lock_guard lock(mutex_);
        if (stopped_ || failure_) return;
        failure_ = std::move(error);
    }
    wake();
}

std::string CollectiveGroup::waiting() const {
    CallHeader oldest;
    {
        const std::lock_guard lock(mutex_);
        if (open_.empty()) return {};
        oldest = open_.begin()->second;
    }
    return title_of(oldest);
}

void CollectiveGroup::join() {
    const std::lock_guard one_at_a_time(joining_);
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake();
    thread_.join();
    if (options_.inquiry) options_.inquiry->stop_listening();
}

void CollectiveGroup::be_asked() {
    {
        const std::lock_guard lock(mutex_);
        asked_ = true;
    }
    wake();
}

// --- on the group's thread ---------------------------------------------------------------------------------

void CollectiveGroup::run() {
    ::pthread_setname_np(::pthread_self(), "collectives");
    std::exception_ptr failure;
    try {
        carry_on();
        check_held();
    } catch (const ToldToFail&) {
        const std::lock_guard lock(mutex_);
        failure = failure_;
    } catch (const Trouble& trouble) {
        if (options_.on_trouble) options_.on_trouble(trouble.trouble());
        failure = std::make_exception_ptr(collective::CollectiveError(trouble.what()));
    } catch (const WireError& error) {
        const Trouble trouble(lost(error));
        if (options_.on_trouble) options_.on_trouble(trouble.trouble());
        failure = std::make_exception_ptr(collective::CollectiveError(trouble.what()));
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        wire_->abandon();
        refuse(failure);
    }
    const std::lock_guard lock(mutex_);
    stopped_ = true;
}

// Sleeps between polls while the rank's other threads have work: this thread's core may be their only one.
void CollectiveGroup::carry_on() {
    while (accept()) {
        const bool changed = advance_all() || look();
        const microseconds until_deadline = check_deadlines();
        const microseconds wait = changed            ? microseconds(0)
                                  : flights_.empty() ? kIdleWait
                                                     : std::min(kBusyWait, until_deadline);
        wire_->progress(static_cast<int>(wait.count()));
    }
}

// A thread that wakes from a sleep is late, and must first wake its core if that is idle. So it polls for a
// while before it sleeps if no other thread needs the core.
bool CollectiveGroup::look() {
    if (!wire_->moves_in_progress()) return false;
    if (flights_.empty() || !nothing_to_do_) return false;  // nothing_to_do_ is set before any flight begins
    for (const auto until = Clock::now() + kLookBriefly; nothing_to_do_() && Clock::now() < until;) {
        if (wire_->progress(0) || woken_.load(std::memory_order_acquire)) return true;
        relax();
    }
    return false;
}

bool CollectiveGroup::accept() {
    std::list<Flight> begun;
    bool asked = false;
    woken_.store(false, std::memory_order_relaxed);
    {
        const std::lock_guard lock(mutex_);
        if (failure_) throw ToldToFail();
        begun.swap(begun_);
        asked = std::exchange(asked_, false);
        if (stopping_ && begun.empty() && flights_.empty()) return false;
    }
    // Answered on this thread, so that a thread that is stuck does not answer.
    if (asked) options_.inquiry->answer(standing());
    for (Flight& flight : begun) {
        Communicator& communicator = communicators_[flight.launch.communicator];
        if (communicator.ranks.empty())
            communicator.ranks = members_of(options_.mesh, wire_->rank(), flight.launch.communicator);
        if (flight.launch.sequence < communicator.first_open + kUnderWay) {
            start(communicator, std::move(flight));
        } else {
            communicator.held.emplace(flight.launch.sequence, std::move(flight));
        }
    }
    return true;
}

void CollectiveGroup::start(Communicator& communicator, Flight given) {
    if (options_.delays) options_.delays->maybe_sleep();
    Flight& flight = flights_.emplace_back(std::move(given));
    flight.ranks = &communicator.ranks;
    flight.headers =
        std::make_unique<HeaderExchange>(*wire_, header(flight), communicator.ranks, flight.launch.place);
    const TransferContext context{*wire_,        scratch_,           *flight.headers,
                                  flight.launch, communicator.ranks, options_.delays};
    switch (flight.launch.call.operation) {
        case plan::Operation::all_gather:
        case plan::Operation::all_to_all:
            flight.transfer = make_exchange(context);
            break;
        case plan::Operation::broadcast:
            flight.transfer = make_broadcast(context);
            break;
        case plan::Operation::send:
        case plan::Operation::recv:
            flight.transfer = make_message(context);
            break;
        case plan::Operation::reduce_scatter:
        case plan::Operation::all_reduce:
            flight.transfer =
                options_.sums == Sums::ordered ? make_ordered_sums(context) : make_ring_sums(context);
            break;
        default:
            break;
    }
}

bool CollectiveGroup::advance_all() {
    bool changed = false;
    for (auto flight = flights_.begin(); flight != flights_.end();) {
        const auto current = flight++;
        changed |= advance(*current);
        const bool over = current->headers->ended() && (!current->transfer || current->transfer->ended());
        if (!over) continue;
        end(current);
        changed = true;
    }
    return changed;
}

bool CollectiveGroup::advance(Flight& flight) {
    bool changed = flight.headers->advance();
    if (flight.headers->divergent()) check_divergence(flight);
    if (flight.transfer) changed |= flight.transfer->advance();
    return changed;
}

void CollectiveGroup::end(std::list<Flight>::iterator flight) {
    std::list<Flight> ended;
    ended.splice(ended.end(), flights_, flight);
    Communicator& communicator = communicators_[flight->launch.communicator];
    communicator.ended.insert(flight->launch.sequence);
    while (communicator.ended.erase(communicator.first_open) > 0) ++communicator.first_open;
    flight->transfer.reset();
    {
        const std::lock_guard lock(mutex_);
        open_.erase(flight->number);
    }
    flight->done(nullptr);
    while (!communicator.held.empty() &&
           communicator.held.begin()->first < communicator.first_open + kUnderWay) {
        start(communicator, std::move(communicator.held.extract(communicator.held.begin()).mapped()));
    }
}

// Both sides blame the same rank: the one whose call fewer members share, or the higher one if as many share
// each call.
void CollectiveGroup::check_divergence(const Flight& flight) {
    const int place = *flight.headers->divergent();
    const int rank = (*flight.ranks)[static_cast<std::size_t>(place)];
    const CallHeader own = flight.headers->own(), theirs = flight.headers->of(place);
    const auto until = Clock::now() + kLastWords;
    const auto all_told = [&] {
        for (Flight& other : flights_) other.headers->advance();
        return std::all_of(flights_.begin(), flights_.end(),
                           [](const Flight& other) { return other.headers->told(); });
    };
    while ((!all_told() || flight.headers->first_missing()) && Clock::now() < until) wire_->progress(1000);
    const int with_own = flight.headers->agreeing(own), with_theirs = flight.headers->agreeing(theirs);
    const std::vector<int> ends = options_.mesh.ends(own.communicator);
    if (with_own == with_theirs ? rank > wire_->rank() : with_own > with_theirs)
        throw Trouble({rank, divergence(theirs, wire_->rank(), own, options_.unit_name, ends)});
    throw Trouble({wire_->rank(), divergence(own, rank, theirs, options_.unit_name, ends)});
}

const Flight& CollectiveGroup::oldest() const {
    return *std::min_element(flights_.begin(), flights_.end(),
                             [](const Flight& a, const Flight& b) { return a.begun < b.begun; });
}

Standing CollectiveGroup::standing() const {
    if (flights_.empty()) return {};
    const Flight& flight = oldest();
    Standing standing;
    standing.collective = title_of(flight);
    std::optional<std::size_t> place;
    if (const auto missing = flight.headers->first_missing()) place = static_cast<std::size_t>(*missing);
    standing.waited_began = !place;
    if (!place && flight.transfer) place = flight.transfer->awaits();
    if (place) standing.waits_for = (*flight.ranks)[*place];
    return standing;
}

microseconds CollectiveGroup::check_deadlines() {
    if (options_.timeout_s <= 0 || flights_.empty()) return kIdleWait;
    const Flight& late = oldest();
    const auto now = Clock::now();
    const auto timeout = late.begun + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(options_.timeout_s));
    const auto until = [&](Clock::time_point then) { return std::chrono::ceil<microseconds>(then - now); };
    if (now < timeout) return until(timeout);
    if (options_.inquiry && std::exchange(asked_about_, late.number) != late.number) options_.inquiry->ask();
    if (now < timeout + kWorldFirst) return until(timeout + kWorldFirst);
    throw Trouble(end_of_chain(wire_->rank(), standing(), options_.timeout_s, options_.inquiry.get()));
}

CollectiveTrouble CollectiveGroup::lost(const WireError& error) const {
    const auto concerns = [&](const Flight& flight) {
        return flight.ranks &&
               std::find(flight.ranks->begin(), flight.ranks->end(), error.peer()) != flight.ranks->end();
    };
    auto flight = std::find_if(flights_.begin(), flights_.end(), concerns);
    if (flight == flights_.end()) flight = flights_.begin();
    const std::string during = flight == flights_.end() ? "" : " in " + title_of(*flight);
    if (error.peer() >= 0) return {error.peer(), fmt::format("is lost{}: {}", during, error.what()), true};
    return {-1, fmt::format("the connections between the ranks broke{}: {}", during, error.what())};
}

void CollectiveGroup::check_held() const {
    for (const auto& [id, communicator] : communicators_) {
        if (communicator.held.empty()) continue;
        throw std::logic_error(
            fmt::format("collective {} of communicator {} began, but collective {} never did",
                        communicator.held.begin()->first, id, communicator.first_open));
    }
}

void CollectiveGroup::refuse(const std::exception_ptr& error) {
    std::list<Flight> over;
    over.swap(flights_);
    for (auto& [id, communicator] : communicators_) {
        for (auto& [sequence, flight] : communicator.held) over.push_back(std::move(flight));
        communicator.held.clear();
    }
    std::unique_lock lock(mutex_);
    if (!failure_) failure_ = error;
    while (true) {
        over.splice(over.end(), begun_);
        lock.unlock();
        for (Flight& flight : over) flight.done(error);
        over.clear();
        lock.lock();
        changed_.wait(lock, [&] { return stopping_ || !begun_.empty(); });
        if (begun_.empty()) return;
    }
}

}  // namespace

std::unique_ptr<ProcessGroup> make_collective_group(std::unique_ptr<Wire> wire,
                                                    const CollectiveGroupOptions& options) {
    return std::make_unique<CollectiveGroup>(std::move(wire), options);
}

}  // namespace shardscope::trainer::comm
