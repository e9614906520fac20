#include "trainer/world/mailbox.h"

namespace shardscope::trainer {

void Mailbox::set_handler(const std::string& topic, Handler handler) {
    Topic& entry = topics_[topic];
    entry.handler = std::move(handler);
    if (!entry.handler) return;
    for (const auto& [from, text] : std::exchange(entry.kept, {})) entry.handler(from, text);
}

void Mailbox::deliver(int from, std::string_view topic, std::string_view text) {
    auto found = topics_.find(topic);
    if (found == topics_.end()) found = topics_.try_emplace(std::string(topic)).first;
    Topic& entry = found->second;
    if (entry.handler) {
        entry.handler(from, text);
    } else {
        entry.kept.emplace_back(from, text);
    }
}

}  // namespace shardscope::trainer
