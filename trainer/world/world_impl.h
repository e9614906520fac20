// The World's implementation: state shared with callers under a mutex, and state that only its thread
// touches. Its functions are in world.cpp (callers), world_joining.cpp (joining), world_frames.cpp (frames
// from the links) and world_ending.cpp (failure, leaving, closing).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "trainer/world/clock_turns.h"
#include "trainer/world/mailbox.h"
#include "trainer/world/pulse.h"
#include "trainer/world/reception.h"
#include "trainer/world/search.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

struct World::Impl {
    using Texts = std::vector<std::string>;
    // The number of a collective call; the processes' calls with the same number are one.
    using Call = std::int64_t;
    enum class State : std::uint8_t { joining, joined, refused };

    Impl(const Place& at, const WorldOptions& with);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    // --- world.cpp: the caller's threads -----------------------------------------------------------------
    void wait_for_all();  // throws WorldError
    template <class Function>
    void on_thread(Function function) {
        asio::post(io, std::move(function));
    }
    Texts wait_for(Call call);  // throws WorldFailure
    void throw_failure();       // if there is one
    bool first() const { return place.rank == 0; }
    Link& to_first() { return *links.at(0); }
    void put_result(Call call, Texts texts);  // any thread

    // --- world_joining.cpp: the World's thread -----------------------------------------------------------
    std::chrono::duration<double> hello_time() const;  // limit for a hello and its answer
    void open_door();
    void look_for_first();
    void add(int rank, const Hello& hello, const std::shared_ptr<Link>& link);
    void all_are_here();
    void joined();
    void time_is_up();
    // The processes cannot join: ends the joining here, on rank 0 for all.
    void refuse(const std::string& why);
    void number_hosts();
    std::string encode_members() const;
    void decode_members(std::string_view text);

    // --- world_frames.cpp: the World's thread ------------------------------------------------------------
    void on_frame(int from, const Frame& frame);
    void on_frame_at_first(int from, const Frame& frame);
    void on_frame_from_first(const Frame& frame);
    void send_to_all(FrameKind kind, std::string text);
    void deliver(int from, std::string_view told);
    void add_part(int from, Call call, std::string_view text);
    void gathered(Call call, Texts texts);

    // --- world_ending.cpp: the World's thread ------------------------------------------------------------
    void on_end(int rank, const std::error_code& error);
    void on_silent(int rank);
    void lost(int rank, const std::string& reason);
    void report(const Failure& what);  // to rank 0, which decides
    void decide(const Failure& what);
    void say_goodbye();
    void count_goodbye(int rank);
    void set_farewell();
    void run();
    void begin_to_close();
    void close_when_written();
    bool all_written() const;
    bool all_ended() const;
    // Calls a callback of the World's user; its failure is the job's.
    void guarded(const std::function<void()>& call);

    const Place place;
    const WorldOptions options;
    const Hello own;

    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};

    // The World's thread's.
    Pulse::Links links;  // on rank 0 all others, else only rank 0
    std::optional<Reception> reception;
    std::optional<Search> search;
    std::optional<Pulse> pulse;
    asio::steady_timer deadline{io};
    Mailbox mailbox;
    std::vector<std::function<void(const Failure&)>> failure_handlers;
    std::map<Call, std::map<int, std::string>> rows;  // of gathers that still lack a text
    ClockTurns turns;
    ClockMeasurement measurement;
    Call clock_call = 0;
    std::set<int> goodbyes;
    bool reported = false, closing = false, finished_sending = false;
    bool refuses_late = false;  // on rank 0: late processes are told why
    SteadyTime closing_since;

    // Set by the World's thread before it says that all are here.
    std::vector<Member> members;
    std::vector<int> host_numbers;

    mutable std::mutex mutex;
    std::condition_variable changed;
    State state = State::joining;  // under the mutex, as what follows
    std::string sentence;          // why it was refused
    std::optional<Failure> failure;
    bool failure_told = false;  // to the handlers; waiting callers learn of it after them
    bool farewell = false;
    std::map<Call, Texts> results;
    ClockOffset clock;

    Call calls = 0;  // used by callers, which call one at a time
    std::thread thread;
};

}  // namespace shardscope::trainer
