// Rank 0's door while the processes come together: who connects must say within a few seconds that it belongs
// to the job; whoever does not is shown out and disturbs nobody. Used on the World's thread only.
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

namespace shardscope::trainer {

class Reception {
  public:
    struct Events {
        // A process of the job; the link is the caller's from now on, who hands it on.
        std::function<void(const Hello& hello, const std::shared_ptr<Link>& link)> on_member;
        // The job cannot come together: one sentence.
        std::function<void(const std::string& sentence)> on_error;
    };

    Reception(asio::io_context& io, Listener listener, const Hello& own, std::string token, double hello_s,
              Events events);

    // Tells those of the job that are at the door, and whoever still comes, why it cannot come together.
    void refuse(const std::string& sentence);
    bool all_refused() const;  // whether every process of the job has been a member or been refused
    bool all_written() const;  // whether what they were told is on its way
    // The door is shut: who still stands there is turned away. It must outlive the io_context's run, closed.
    void close();

  private:
    struct Visitor {
        std::shared_ptr<Link> link;
        asio::steady_timer patience;
        Nonces nonces;               // once it has said hello
        std::optional<Hello> hello;  // shown, and of this job
        bool accepted = false;
    };
    // A call may come for one who has just left: it is looked up.
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
    std::map<Number, Visitor> visitors_;      // in the order in which they came
    std::vector<std::optional<Hello>> here_;  // by rank
    std::string refusal_;                     // empty: the job may come together
    std::vector<bool> refused_;               // by rank
};

}  // namespace shardscope::trainer
