// CRC-32C, the checksum of everything in a checkpoint (Castagnoli, Brauer, Herrmann: "Optimization of cyclic
// redundancy-check codes with 24 and 32 parity bits", IEEE Trans. Commun. 41(6), 1993; the parameters of RFC
// 3720, appendix B.4: reflected, polynomial 0x1EDC6F41, initial value and final exclusive-or all ones). It
// detects every burst of up to 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardscope::trainer::checkpoint {

// The checksum of the bytes that `before` covers followed by `bytes`; `before` is the checksum so far (0 at
// the beginning). Uses the processor's instruction if there is one.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

// The same checksum by its definition, one byte at a time.
std::uint32_t crc32c_plain(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace shardscope::trainer::checkpoint
