// How the processes of a job make themselves known:
//
//     visitor   hello       a number (proof.h)
//     rank 0    challenge   a number
//     visitor   proof       the proof that it knows the token, its Hello
//     rank 0    accepted    its own proof, its Hello
//     visitor   confirm
//
// The token keeps out processes of other jobs and anyone else who finds the port. Data are not encrypted: the
// token does not protect against somebody who changes what is on the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/world/place.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::world {

struct Hello {
    // These two are first in every version of the text, so that versions can tell each other apart.
    std::int64_t protocol = 0;  // of frames and their texts; grows with each change
    std::string version;        // of the program
    int rank = 0, ranks = 0;
    Member member;
};

std::string own_host_name();

Hello own_hello(const Place& place, const std::string& version);

std::string encode(const Hello& hello);
// Throws MessageError. For another protocol only what precedes the rank is read.
Hello decode_hello(std::string_view text);

// Why two processes with the same token cannot work together, in one sentence; "" if they can.
std::string disagreement(const Hello& rank_0, const Hello& other);

}  // namespace shardscope::trainer::world
