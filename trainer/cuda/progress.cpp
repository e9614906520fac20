#include "trainer/cuda/progress.h"

#include <algorithm>
#include <sstream>

#include <fmt/core.h>

namespace shardscope::trainer::cuda {

namespace {

// Both topics go to process 0, which passes them on to all.
constexpr const char* kAsk = "nccl.progress.ask";
constexpr const char* kAnswer = "nccl.progress.answer";  // one line each: communicator, rank, begun

}  // namespace

std::shared_ptr<Progress> Progress::open(const std::vector<std::vector<int>>& members,
                                         const std::vector<int>& here,
                                         std::shared_ptr<device::Bootstrap> bootstrap) {
    std::shared_ptr<Progress> progress(new Progress(std::move(bootstrap)));
    for (std::size_t id = 0; id < members.size(); ++id) {
        for (const int rank : members[id]) {
            const bool own = std::find(here.begin(), here.end(), rank) != here.end();
            progress->entries_[{plan::CommunicatorId(id), rank}] = {own, own, 0};
        }
    }
    progress->listen();
    return progress;
}

// The bootstrap keeps the handlers, and may call them after this object has been destroyed.
void Progress::listen() {
    const std::weak_ptr<Progress> weak = weak_from_this();
    bootstrap_->on(kAsk, [weak](int, std::string_view) {
        const auto own = weak.lock();
        if (!own) return;
        if (own->bootstrap_->process() == 0) own->bootstrap_->tell_all(kAsk, {});
        own->bootstrap_->tell(kAnswer, own->answer());
    });
    bootstrap_->on(kAnswer, [weak](int, std::string_view text) {
        const auto own = weak.lock();
        if (!own) return;
        own->hear(text);
        if (own->bootstrap_->process() == 0) own->bootstrap_->tell_all(kAnswer, text);
    });
}

void Progress::begins(plan::CommunicatorId communicator, int rank, std::int64_t sequence) {
    const std::lock_guard lock(mutex_);
    entries_[{communicator, rank}].begun = sequence + 1;
}

void Progress::ask() {
    {
        const std::lock_guard lock(mutex_);
        for (auto& [where, entry] : entries_) entry.known = entry.here;
    }
    bootstrap_->tell(kAsk, {});
}

std::optional<std::int64_t> Progress::begun(plan::CommunicatorId communicator, int rank) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find({communicator, rank});
    if (found == entries_.end() || !found->second.known) return std::nullopt;
    return found->second.begun;
}

std::string Progress::answer() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [where, entry] : entries_) {
        if (entry.here) text += fmt::format("{} {} {}\n", where.first, where.second, entry.begun);
    }
    return text;
}

void Progress::hear(std::string_view answer) {
    std::istringstream lines{std::string(answer)};
    int communicator = 0, rank = 0;
    std::int64_t begun = 0;
    const std::lock_guard lock(mutex_);
    while (lines >> communicator >> rank >> begun) {
        const auto found = entries_.find({plan::CommunicatorId{communicator}, rank});
        if (found == entries_.end() || found->second.here) continue;
        found->second.known = true;
        found->second.begun = begun;
    }
}

}  // namespace shardscope::trainer::cuda
