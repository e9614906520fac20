// How the processes of a World come together: rank 0 receives the others, they look for it, and when all are
// here each knows all members; or it turns out that they cannot join, which all learn. Used on the World's
// thread only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "trainer/world/board.h"
#include "trainer/world/hello.h"
#include "trainer/world/links.h"
#include "trainer/world/reception.h"
#include "trainer/world/search.h"

namespace shardscope::trainer::world {

class Joining {
  public:
    // `on_link`: a process of the job has come, and its link is among the links; the callee hands it on.
    // Nothing begins before begin().
    Joining(asio::io_context& io, const Place& place, const WorldOptions& options, Links& links, Board& board,
            std::function<void(int rank)> on_link);

    void begin();
    // A frame of rank 0: it refuses, or all are here.
    void on_frame(const Frame& frame);
    // The processes cannot join: ends the joining here, on rank 0 for all.
    void refuse(const std::string& why);

    const std::vector<Member>& members() const { return members_; }  // complete once all are here

    void stop_looking();  // for rank 0
    // Whether nothing is left to write to the processes that were refused.
    bool all_written() const { return !reception_ || reception_->all_written(); }
    // Whether all that were refused know why, or `waited` is long enough to give up on late ones.
    bool all_told(std::chrono::duration<double> waited) const;
    void close();  // the object must exist, closed, until the io_context's run() returns

  private:
    bool first() const { return place_.rank == 0; }
    std::chrono::duration<double> hello_time() const;  // limit for a hello and its answer
    void open_door();
    void look_for_first();
    void add(int rank, const Hello& hello, const std::shared_ptr<Link>& link);
    void all_are_here();
    void joined();
    void time_is_up();
    std::string encode_members() const;
    void decode_members(std::string_view text);

    asio::io_context& io_;
    const Place& place_;
    const WorldOptions& options_;
    Links& links_;
    Board& board_;
    std::function<void(int rank)> on_link_;
    const Hello own_;
    std::optional<Reception> reception_;  // rank 0's
    std::optional<Search> search_;        // the others'
    asio::steady_timer deadline_;
    std::vector<Member> members_;
    bool refuses_late_ = false;  // on rank 0: late processes are told why
};

}  // namespace shardscope::trainer::world
