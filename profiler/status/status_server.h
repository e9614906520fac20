// Serves a run's status to those who watch it (traces/status): one thread, which nothing in the job waits
// for.
//
// Nobody who connects can slow or stop the job: connections never block, at most kMostWatchers are served and
// kMostVisitors asked for the token; a watcher who does not read misses lines, and is dropped after
// kPatience; what watchers send is discarded, and one who sends more than kMostInput is dropped. Memory: one
// line for all, and one more for each watcher who is behind.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "traces/status/address.h"

namespace shardscope::profiler {

struct StatusServerOptions {
    traces::status::Address address;
    std::string token;  // asked for over TCP; empty: none is
    // The line to send (traces::status::to_line). Called on the server's thread, only while somebody watches,
    // and once at the end.
    std::function<std::string()> line;
    std::chrono::milliseconds period{500};
    std::chrono::milliseconds patience_for_token{5000};
};

class StatusServer {
  public:
    static constexpr std::size_t kMostWatchers = 16, kMostVisitors = 16, kMostInput = 4096;
    static constexpr std::chrono::seconds kPatience{10};

    // Listens. Throws traces::status::StatusError: it cannot.
    explicit StatusServer(StatusServerOptions options);
    // Sends the last line to those who watch, without waiting for them, and removes the socket.
    ~StatusServer();
    StatusServer(const StatusServer&) = delete;
    StatusServer& operator=(const StatusServer&) = delete;

    const traces::status::Address& address() const;
    std::size_t watchers() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::profiler
