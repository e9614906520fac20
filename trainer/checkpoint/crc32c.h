// The checksum of everything in a checkpoint: CRC-32C (Castagnoli, Brauer, Herrmann: "Optimization of cyclic
// redundancy-check codes with 24 and 32 parity bits", IEEE Trans. Commun. 41(6), 1993; the parameters of RFC
// 3720, appendix B.4: reflected, polynomial 0x1EDC6F41, start and final exclusive or with all ones). It finds
// every burst of up to 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardscope::trainer {

// The checksum of `before`'s bytes followed by these; `before` is the checksum so far (0: nothing yet). Uses
// the processor's instruction where there is one.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

// The same by the definition, a byte at a time.
std::uint32_t crc32c_plain(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace shardscope::trainer
