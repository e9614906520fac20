// What the joined processes of a World send each other: the parts and results of collective calls, one-way
// messages, and the time. Used on the World's thread only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/world/board.h"
#include "trainer/world/clock_turns.h"
#include "trainer/world/links.h"

namespace shardscope::trainer::world {

class Exchanges {
  public:
    using Call = Board::Call;
    using Texts = Board::Texts;
    struct Events {
        std::function<void(const Failure&)> on_failure;  // of the job, on rank 0
        // Makes a call to the World's user, whose failure is the job's.
        std::function<void(const std::function<void()>&)> guarded;
    };

    Exchanges(const Place& place, Links& links, Board& board, Events events);

    void on_frame(int from, const Frame& frame);

    // This process's own part.
    void gather(Call call, std::string_view text);
    void broadcast(Call call, std::string_view text);  // rank 0's
    void measure_clock(Call call);
    void tell(const std::string& topic, std::string_view text);      // to rank 0
    void tell_all(const std::string& topic, std::string_view text);  // rank 0's
    using Handler = std::function<void(int from, std::string_view text)>;
    void listen(const std::string& topic, Handler handler);  // also receives what has arrived

    // The last measurement; callers read it after its call has ended.
    const ClockOffset& clock() const { return measurement_.result(); }
    void stop_delivering() { delivers_ = false; }

  private:
    struct Topic {
        Handler handler;                                // null: none yet
        std::vector<std::pair<int, std::string>> kept;  // for it, in order of arrival
    };

    bool first() const { return place_.rank == 0; }
    void on_frame_at_first(int from, const Frame& frame);
    void on_frame_from_first(const Frame& frame);
    void deliver(int from, std::string_view told);
    void add_part(int from, Call call, std::string_view text);
    void gathered(Call call, Texts texts);

    const Place& place_;
    Links& links_;
    Board& board_;
    Events events_;
    std::map<Call, std::map<int, std::string>> rows_;  // of gathers that still lack a text
    std::map<std::string, Topic, std::less<>> topics_;
    bool delivers_ = true;
    ClockTurns turns_;
    ClockMeasurement measurement_;
    Call clock_call_ = 0;
};

}  // namespace shardscope::trainer::world
