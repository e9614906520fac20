// The one-way messages received, by topic: passed to their handler, or kept until there is one. Used on the
// World's thread only.
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

    // Sets the handler of a topic, for later messages and for those that are kept.
    void set_handler(const std::string& topic, Handler handler);
    void deliver(int from, std::string_view topic, std::string_view text);

  private:
    struct Topic {
        Handler handler;                                // null: none yet
        std::vector<std::pair<int, std::string>> kept;  // in order of arrival
    };
    std::map<std::string, Topic, std::less<>> topics_;
};

}  // namespace shardscope::trainer
