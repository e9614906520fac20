// How a World ends: by the job's first failure, which rank 0 decides and all learn, or when all processes
// have said goodbye; then its links are closed. Used on the World's thread only.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "trainer/world/board.h"
#include "trainer/world/joining.h"
#include "trainer/world/links.h"

namespace shardscope::trainer::world {

class Ending {
  public:
    // `guarded` makes a call to the World's user, whose failure is the job's.
    Ending(asio::io_context& io, const Place& place, Links& links, Board& board, Joining& joining,
           std::function<void(const std::function<void()>&)> guarded);

    void on_frame(int from, const Frame& frame);
    void on_end(int rank, const std::error_code& error);  // of its link
    void on_silent(int rank, double timeout_s);

    void report(const Failure& what);  // to rank 0, which decides
    void decide(const Failure& what);
    void listen(std::function<void(const Failure&)> handler);
    void say_goodbye();

    bool closing() const { return closing_; }
    void close();  // stops the io_context when what is queued has been written

  private:
    bool first() const { return place_.rank == 0; }
    // Rank 0 gives a rank that is said to be lost time to say itself why: what it says and the end of its
    // connections come on different ways. The end of any link ends the wait.
    void weigh(const Failure& what);
    void lost(int rank, const std::string& reason);
    void count_goodbye(int rank);
    void farewell();
    void close_when_written();

    asio::io_context& io_;
    const Place& place_;
    Links& links_;
    Board& board_;
    Joining& joining_;
    std::function<void(const std::function<void()>&)> guarded_;
    std::vector<std::function<void(const Failure&)>> handlers_;
    std::set<int> goodbyes_;
    asio::steady_timer look_, last_words_;
    std::optional<Failure> weighed_;
    SteadyTime closing_since_;
    bool reported_ = false, closing_ = false, finished_sending_ = false;
};

}  // namespace shardscope::trainer::world
