// Rank 0's listening TCP socket, or one made for rank 0 by its parent, so that no other process can take the
// port.
#pragma once

#include <utility>

namespace shardscope::trainer::world {

class Listener {
  public:
    // A free port for this machine's processes only (127.0.0.1). These throw WorldError.
    static Listener on_loopback();
    // The first free of `ports` ports from `first`, for this machine's processes only or for every host, by
    // IPv6 and IPv4; `first` 0: any free one.
    static Listener on_ports(int first, int ports, bool loopback);
    // The socket that a parent left open (Place::listen_fd).
    static Listener inherited(int descriptor);

    ~Listener();
    Listener(Listener&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)), port_(other.port_), ipv6_(other.ipv6_) {}
    Listener& operator=(Listener&&) = delete;

    int port() const { return port_; }
    bool ipv6() const { return ipv6_; }
    int descriptor() const { return descriptor_; }
    int release() { return std::exchange(descriptor_, -1); }  // the caller owns it from now on
    // Called between fork and exec: the started program has the socket under the same number.
    void keep_on_exec() const;

  private:
    Listener(int descriptor, int port, bool ipv6) : descriptor_(descriptor), port_(port), ipv6_(ipv6) {}

    int descriptor_;
    int port_;
    bool ipv6_;
};

}  // namespace shardscope::trainer::world
