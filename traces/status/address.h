// Where a status server listens, and the secret that it asks for.
//
// A path is a Unix socket, which only this user can open (0600): a run's stands next to its trace and is
// found by the trace's name. HOST:PORT is TCP; where HOST is not this machine's loopback, everybody who can
// reach it must know the token.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "traces/status/run_status.h"
#include "traces/store/file_descriptor.h"

namespace shardscope::traces::status {

struct Address {
    std::string path;  // of a Unix socket; empty: TCP
    std::string host;
    std::uint16_t port = 0;  // 0: a free one, when listening
};

// "HOST:PORT", "[::1]:PORT", ":PORT" (this machine's loopback), or a path: it contains a slash or ends in
// ".status". Throws StatusError.
Address parse_address(std::string_view text);
std::string to_text(const Address& address);

// The socket of a run that writes this trace: "run.sqlite" -> "run.sqlite.status".
std::string socket_of(std::string_view trace);

inline constexpr const char* kTokenVariable = "SHARDSCOPE_STATUS_TOKEN";
inline constexpr const char* kTokenFileVariable = "SHARDSCOPE_STATUS_TOKEN_FILE";
inline constexpr std::size_t kShortestToken = 16, kLongestToken = 256;

// The token of the environment: the first variable's value, or the contents of the file that the second
// names, which only its owner may read. Empty: neither is set. Throws StatusError.
std::string token_of(const std::function<const char*(const char*)>& variable);

// Whether two texts are equal, in a time that depends on the length of `secret` alone.
bool equal_secrets(std::string_view given, std::string_view secret);

// Listens without blocking; sets the port that was free. Removes the socket of a run that is gone. Throws
// StatusError, also if `has_token` is false where a token is needed.
store::FileDescriptor listen_at(Address& address, bool has_token);

// Connects, waiting for at most `timeout_ms`; the descriptor does not block. Throws StatusError.
store::FileDescriptor connect_to(const Address& address, int timeout_ms);

}  // namespace shardscope::traces::status
