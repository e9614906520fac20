// Rank 0's reception while the processes join: a visitor that connects must show within a few seconds that it
// belongs to the job; one that does not is disconnected and disturbs no other. Used on the World's thread
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include "trainer/world/hello.h"
#include "trainer/world/link.h"
#include "trainer/world/listener.h"
#include "trainer/world/proof.h"

namespace shardscope::trainer::world {

class Reception {
  public:
    struct Events {
        // A process of the job; the caller owns the link from now on and hands it on.
        std::function<void(const Hello& hello, const std::shared_ptr<Link>& link)> on_member;
        // Called once, with a sentence that says why, if the job's processes cannot join.
        std::function<void(const std::string& sentence)> on_error;
    };

    Reception(asio::io_context& io, Listener listener, const Hello& own, std::string token, double hello_s,
              Events events);

    // Tells the job's processes that have connected, and those that still connect, why they cannot join.
    void refuse(const std::string& sentence);
    bool all_refused() const;  // whether every process of the job has been a member or been refused
    bool all_written() const;  // whether everything sent to them is on its way
    // Stops accepting and disconnects the remaining visitors. The object must exist, closed, until the
    // io_context's run() returns.
    void close();

  private:
    struct Visitor {
        std::shared_ptr<Link> link;
        asio::steady_timer patience;
        Nonces nonces;               // once it has said hello
        std::optional<Hello> hello;  // shown, and of this job
        bool accepted = false;
    };
    // A callback may arrive for a visitor that has just left, so visitors are looked up.
    using Number = std::uint64_t;

    void accept();
    void receive(asio::ip::tcp::socket socket);
    void on_frame(Number number, const Frame& frame);
    void challenge(Number number, Visitor& visitor, const Frame& frame);
    void on_proof(Number number, Visitor& visitor, const Frame& frame);
    void turn_away(Visitor& visitor);
    void admit(Number number, const Visitor& visitor);
    void dismiss(Number number);

    asio::io_context& io_;
    asio::ip::tcp::acceptor acceptor_;
    asio::steady_timer pause_;
    Hello own_;
    std::string token_;
    std::chrono::duration<double> hello_time_;
    Events events_;
    Number next_ = 0;
    std::map<Number, Visitor> visitors_;      // in order of arrival
    std::vector<std::optional<Hello>> here_;  // by rank
    std::string refusal_;                     // empty: the job may start
    std::vector<bool> refused_;               // by rank
};

}  // namespace shardscope::trainer::world
