// Maps the file that the tool and the injected programs share.
#include "profiler/record/session.h"

#include <iterator>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>

namespace shardscope::profiler {

Session::Session(const SessionOptions& options) : folder_("shardscope-session-", kSessionFile) {
    void* memory = MAP_FAILED;
    if (::posix_fallocate(folder_.lock_file(), 0, sizeof(SessionHeader)) == 0) {
        memory = ::mmap(nullptr, sizeof(SessionHeader), PROT_READ | PROT_WRITE, MAP_SHARED,
                        folder_.lock_file(), 0);
    }
    if (memory == MAP_FAILED) {
        throw std::runtime_error(fmt::format(
            "cannot write {}: no space there; set TMPDIR to a folder with more", folder_.lock_path()));
    }
    header_ = static_cast<SessionHeader*>(memory);
    header_->magic = kSessionMagic;
    header_->format = kRecordFormat;
    header_->clock = clock_source();
    header_->max_bytes = options.max_bytes_per_process;
    header_->sources = options.sources;
    header_->window = options.window;
    header_->first_step = options.first_step;
    header_->last_step = options.last_step;
    options.range_name.copy(header_->range_name, sizeof header_->range_name - 1);  // the rest is zero
    for (const auto& [first, last] : options.ranks) {
        if (header_->rank_ranges == std::size(header_->ranks)) break;
        header_->ranks[header_->rank_ranges++] = {first, last};
    }
    set_state(SessionState::waiting);
}

Session::~Session() {
    set_state(SessionState::stopped);  // programs that still run stop writing
    ::munmap(header_, sizeof(SessionHeader));
}

void Session::set_state(SessionState state) {
    header_->state.store(state, std::memory_order_release);
}

}  // namespace shardscope::profiler
