// How the processes of a job make themselves known: each shows the other its hello before anything else.
//
// The token keeps out processes of other jobs and whoever else finds the port. It is sent as it is, and so is
// everything else: it does not protect against somebody who listens on the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/world/place.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

struct Hello {
    // These two are first in every version of the text, so that versions can tell each other apart.
    std::int64_t protocol = 0;  // of frames and their texts; grows with each change
    std::string token;
    std::string version;  // of the program
    int rank = 0, ranks = 0;
    Member member;
};

std::string own_host_name();

Hello own_hello(const Place& place, const std::string& version);

std::string encode(const Hello& hello);
// Throws FrameError. Of another protocol only what precedes the rank is read.
Hello decode_hello(std::string_view text);

// Takes the same time wherever they differ.
bool same_token(std::string_view a, std::string_view b);

// Why two that have the same token cannot work together, "" where they can; one sentence.
std::string disagreement(const Hello& rank_0, const Hello& other);

}  // namespace shardscope::trainer
