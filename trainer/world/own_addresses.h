// How other hosts may reach this one if no launcher specifies it (mpirun): rank 0 sends it through MPI.
#pragma once

#include <string>
#include <vector>

namespace shardscope::trainer::world {

// The addresses of the interfaces that are up; 127.0.0.1 last.
std::vector<std::string> interface_addresses();

// For Place::master: this host's name, then the addresses of its network interfaces, with commas between
// them; 127.0.0.1 last, for those on the same host.
std::string own_addresses();

}  // namespace shardscope::trainer::world
