// How a process finds rank 0: every address of its name, every port that it may have taken, repeatedly until
// a process there proves that it knows the job's token. Used on the World's thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include "trainer/world/hello.h"
#include "trainer/world/link.h"
#include "trainer/world/proof.h"

namespace shardscope::trainer::world {

class Search {
  public:
    struct Events {
        // The caller owns the link from now on and hands it on.
        std::function<void(const Hello& rank_0, const std::shared_ptr<Link>& link)> on_found;
        // Rank 0 refuses this process, with its sentence.
        std::function<void(const std::string& sentence)> on_error;
    };

    // `answer_s`: how long one address may keep it waiting.
    Search(asio::io_context& io, const Place& place, const Hello& own, double answer_s, Events events);

    // The trouble to report when time is up: the first process of another job that answered, else the last
    // error: "Connection refused".
    const std::string& trouble() const { return stranger_.empty() ? trouble_ : stranger_; }
    // The object must exist, closed, until the io_context's run() returns.
    void close();

  private:
    void resolve();
    void try_next();
    void connect(const asio::ip::tcp::endpoint& endpoint);
    void greet(const std::shared_ptr<asio::ip::tcp::socket>& socket);
    void on_frame(const Frame& frame);
    // This address is not rank 0's: continues with the next.
    void give_up(const std::string& trouble);
    void disconnect();
    void wait_and_resolve();

    asio::io_context& io_;
    asio::ip::tcp::resolver resolver_;
    asio::steady_timer timer_;
    Place place_;
    Hello own_;
    std::chrono::duration<double> answer_time_;
    Events events_;
    std::vector<std::string> names_;
    std::vector<asio::ip::tcp::endpoint> endpoints_;  // of this round, from last to first
    std::size_t resolved_ = 0;                        // number of names resolved in this round
    std::chrono::milliseconds pause_{20};
    std::shared_ptr<asio::ip::tcp::socket> socket_;  // being connected
    std::shared_ptr<Link> link_;                     // being greeted
    Nonces nonces_;                                  // of that greeting
    std::string trouble_, stranger_;
    bool closed_ = false;
};

}  // namespace shardscope::trainer::world
