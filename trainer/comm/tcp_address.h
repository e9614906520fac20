// Where a process can be reached, as it tells the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

namespace shardscope::trainer::comm {

struct TcpAddress {
    std::uint16_t port = 0;
    std::string local_name;              // name of its local socket; empty: none
    std::string kernel;                  // processes with equal values reach each other's local sockets
    std::vector<std::string> addresses;  // of its interfaces; loopback last
};

// Conversion to one line of text and back. Throws std::invalid_argument.
std::string print(const TcpAddress& address);
TcpAddress parse_tcp_address(const std::string& line);

// Sorts addresses by the order in which to try them: those in one of our networks first, so that no process
// waits for an address that does not answer while another does.
std::vector<std::string> nearest_first(const std::vector<std::string>& theirs,
                                       const std::vector<std::string>& mine);

// This host's value of TcpAddress::kernel.
std::string kernel_identity();

// The socket address of a name that is not in the file system (an abstract one).
struct LocalAddress {
    sockaddr_un address{};
    socklen_t size = 0;
};
LocalAddress local_address(const std::string& name);

}  // namespace shardscope::trainer::comm
