// The matmul of bfloat16 matrices with the processor's tile registers (AMX-BF16: Sapphire Rapids and later).
// oneDNN 2 has this too, but sizes its tiles by CPUID's leaf 0x1D, which many virtual machines hide; here the
// only existing palette is built in (Intel's "Architecture instruction set extensions programming reference",
// AMX: palette 1 is 8 tiles of 16 rows of 64 bytes). Internal to bf16_product.cpp; thread safe.
#pragma once

#include "trainer/kernels/bf16_product.h"

namespace shardscope::trainer::kernels {

// Whether the processor has tiles and the operating system lets this process use them (requested once, by
// arch_prctl(2)).
bool tiles_usable();

// As bf16_product, only if tiles_usable(). Each sum runs over k in the order of the operands, so that the
// same operands give the same bits.
void tile_product(const ProductShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c);

}  // namespace shardscope::trainer::kernels
