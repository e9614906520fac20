// A private directory in which injected programs leave their records, and the file in it that tells them
// whether and how to record; the tool keeps it locked.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profiler/base/private_folder.h"
#include "profiler/inject/session_format.h"

namespace shardscope::profiler {

// The instructions for injected programs, written once (inject/session_format.h).
struct SessionOptions {
    std::uint64_t max_bytes_per_process = std::uint64_t{256} << 20;
    std::uint32_t sources = kSourceNvtx;
    WindowKind window = WindowKind::always;
    std::int64_t first_step = 0, last_step = 0;
    std::string range_name;                                    // as SessionHeader::range_name
    std::vector<std::pair<std::int32_t, std::int32_t>> ranks;  // both included; empty: all
};

class Session {
  public:
    // Throws std::runtime_error with a sentence.
    explicit Session(const SessionOptions& options = {});
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    const std::string& directory() const { return folder_.path(); }
    void set_state(SessionState state);

  private:
    PrivateFolder folder_;
    SessionHeader* header_ = nullptr;  // mapped
};

}  // namespace shardscope::profiler
