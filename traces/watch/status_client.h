// Reads the lines of a status server.
#pragma once

#include <optional>
#include <string>

#include "traces/status/address.h"

namespace shardscope::traces::watch {

class StatusClient {
  public:
    // Throws StatusError: nobody listens there. `token` empty: none is shown.
    StatusClient(const status::Address& address, const std::string& token);

    // The next line, with its newline; nullopt: none came in that time, a signal arrived, or the server has
    // closed. Throws StatusError: the server refuses, or sends a line without an end.
    std::optional<std::string> next(int timeout_ms);
    bool closed() const { return closed_; }

  private:
    std::optional<std::string> take_line();

    store::FileDescriptor socket_;
    std::string received_;
    std::size_t scanned_ = 0;  // of it, without a newline
    bool closed_ = false;
};

}  // namespace shardscope::traces::watch
