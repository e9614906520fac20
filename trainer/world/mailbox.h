// The one-way messages that have come, by topic: handed to their handler, or kept until there is one. Used on
// the World's thread only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::trainer {

class Mailbox {
  public:
    using Handler = std::function<void(int from, std::string_view text)>;

    // Of a topic, from now on and of what is kept for it.
    void set_handler(const std::string& topic, Handler handler);
    void deliver(int from, std::string_view topic, std::string_view text);

  private:
    struct Topic {
        Handler handler;                                // null: none yet
        std::vector<std::pair<int, std::string>> kept;  // in the order in which they came
    };
    std::map<std::string, Topic, std::less<>> topics_;
};

}  // namespace shardscope::trainer
