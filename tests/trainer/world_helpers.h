// Jobs of a few processes on this machine, for tests: the processes are threads, or children that a test may
// stop and kill.
#pragma once

#include <csignal>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "trainer/world/listener.h"
#include "trainer/world/own_launcher.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

// Places as shardscope-train makes them: rank 0 already has the listening socket, so each can be used once.
inline std::vector<world::Place> make_places(int ranks) {
    world::Listener listener = world::Listener::on_loopback();
    const std::string token = world::random_token();
    std::vector<world::Place> places;
    places.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
        places.push_back({.launcher = world::Launcher::own,
                          .rank = rank,
                          .ranks = ranks,
                          .local_rank = rank,
                          .local_ranks = ranks,
                          .master = "127.0.0.1",
                          .port = listener.port(),
                          .token = token});
    }
    places[0].listen_fd = listener.release();
    return places;
}

inline world::WorldOptions within(double timeout_s) {
    world::WorldOptions options;
    options.timeout_s = timeout_s;
    options.version = "1.2.3";
    return options;
}

// Runs `process` for each place on a thread of its own; returns the error of each, "" if there was none.
inline std::vector<std::string> run_threads(const std::vector<world::Place>& places,
                                            const std::function<void(const world::Place&)>& process) {
    std::vector<std::string> errors(places.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < places.size(); ++i) {
        threads.emplace_back([&, i] {
            try {
                process(places[i]);
            } catch (const std::exception& error) {
                errors[i] = error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
}

// All of a job's Worlds; each leaves after `work`.
inline std::vector<std::string> run_worlds(int ranks, const std::function<void(world::World&)>& work,
                                           double timeout_s = 20) {
    return run_threads(make_places(ranks), [&](const world::Place& place) {
        world::World world(place, within(timeout_s));
        work(world);
        world.leave();
    });
}

// A process of its own. Start it while the test has no other thread.
class ChildProcess {
  public:
    // Runs `work` in it; result() returns what it returns, or the message of its exception.
    explicit ChildProcess(const std::function<std::string()>& work) {
        int ends[2] = {-1, -1};
        if (::pipe(ends) != 0) std::abort();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ends[0]);
            std::string told;
            try {
                told = work();
            } catch (const std::exception& error) {
                told = error.what();
            }
            const bool written = ::write(ends[1], told.data(), told.size()) >= 0;
            ::_exit(written ? 0 : 1);
        }
        ::close(ends[1]);
        read_end_ = ends[0];
    }
    ~ChildProcess() {
        signal(SIGKILL);
        ::close(read_end_);
        if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    }
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    pid_t pid() const { return pid_; }
    void signal(int number) const {
        if (pid_ > 0) ::kill(pid_, number);
    }
    // Waits for its end; "" if it was killed.
    std::string result() const {
        std::string told;
        char buffer[4096];
        for (ssize_t got = 0; (got = ::read(read_end_, buffer, sizeof buffer)) > 0;)
            told.append(buffer, static_cast<std::size_t>(got));
        return told;
    }

  private:
    pid_t pid_ = -1;
    int read_end_ = -1;
};

}  // namespace shardscope::trainer
