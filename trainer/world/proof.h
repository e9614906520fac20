// How a process shows that it knows the job's token without sending it: each side gives the other a number
// that was never used before and answers with the HMAC-SHA-256 (RFC 2104), keyed with the token, of both
// numbers and of its own text. Somebody who only listens, or only pretends to be the other side, learns
// nothing to join with, but can test guesses of the token offline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::trainer::world {

inline constexpr std::size_t kNonceBytes = 16, kProofBytes = 32;

// Bytes from the system's source of random numbers.
std::string random_bytes(std::size_t count);

enum class Side : std::uint8_t { visitor, rank_0 };

struct Nonces {
    std::string visitor, rank_0;
};

// A proof of kProofBytes that `side`, which sends `text`, knows the token.
std::string proof(std::string_view token, Side side, const Nonces& nonces, std::string_view text);
// Whether `message` is the other side's proof and then its text; the text is left in it. Takes the same time
// wherever the proof is wrong.
bool take_proof(std::string_view token, Side side, const Nonces& nonces, std::string_view& message);

}  // namespace shardscope::trainer::world
