// Where a process can be reached: what it says to the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

namespace shardscope::trainer {

struct TcpAddress {
    std::uint16_t port = 0;
    std::string local_name;              // of its local socket, empty: none
    std::string kernel;                  // processes with the same reach each other's local sockets
    std::vector<std::string> addresses;  // of its interfaces; loopback last
};

// One line, and back. Throws std::invalid_argument.
std::string print(const TcpAddress& address);
TcpAddress parse_tcp_address(const std::string& line);

// The order in which they are tried: those in a network of ours first, so that nobody waits for one that does
// not answer where another does.
std::vector<std::string> nearest_first(const std::vector<std::string>& theirs,
                                       const std::vector<std::string>& mine);

// What `kernel` is on this host.
std::string kernel_identity();

// The socket address of a name that is in no file system.
struct LocalAddress {
    sockaddr_un address{};
    socklen_t size = 0;
};
LocalAddress local_address(const std::string& name);

}  // namespace shardscope::trainer
