// See tile_product.h. Both operands are copied into the order in which tiles are loaded: a panel is 32 rows
// of op(a), or 32 columns of op(b), as steps of 32 along k; a step is two tiles of 1 KB. In a tile of `a` a
// row is 32 elements along k; in a tile of `b` a row is 16 columns, each with two consecutive elements along
// k. A pair of panels gives 32 x 32 sums in four tiles. Edges are filled with zeros, which add nothing.
#include "trainer/kernels/tile_product.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

#include <algorithm>
#include <cstring>

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr int kTile = 16;          // rows of a tile, and 4-byte words of a row
constexpr int kPanel = 2 * kTile;  // rows of op(a) or columns of op(b)
constexpr int kStep = 32;          // elements along k
constexpr int kStepElements = kPanel * kStep;
constexpr int kDeep = 2048;          // along k: longer sums are split into parts
constexpr int kTall = 512;           // rows whose unfinished sums are kept between the parts
constexpr int kCached = 640 * 1024;  // elements of op(b) that stay in the L2 cache while rows go by

int round_up(int n, int multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

// An operand, viewed with `k` running along its panels: element (i, k) is data[i * across + k * along], and
// one of the two strides is 1. `count` is the number of rows of op(a) or columns of op(b).
struct Source {
    const Bf16* data;
    std::ptrdiff_t across, along;
    int count, depth;
};

// The 32 x 32 elements at (i, k); a block that crosses the edge of the source is copied and padded with
// zeros.
Source whole_step(const Source& from, int i, int k, Bf16 (&edge)[kStepElements]) {
    const Source at{from.data + i * from.across + k * from.along, from.across, from.along,
                    std::min(kPanel, from.count - i), std::min(kStep, from.depth - k)};
    if (at.count == kPanel && at.depth == kStep) return at;
    std::memset(edge, 0, sizeof edge);
    for (int row = 0; row < at.count; ++row) {
        for (int column = 0; column < at.depth; ++column) {
            const int to = at.along == 1 ? row * kStep + column : column * kPanel + row;
            edge[to] = at.data[row * at.across + column * at.along];
        }
    }
    return at.along == 1 ? Source{edge, kStep, 1, kPanel, kStep} : Source{edge, 1, kPanel, kPanel, kStep};
}

// to[column][row] = from[row][column], 16 x 16 words.
SHARDSCOPE_INLINE void transpose_words(const std::uint32_t* from, std::uint32_t* to) {
    for (int column = 0; column < kTile; ++column) {
        for (int row = 0; row < kTile; ++row) to[column * kTile + row] = from[row * kTile + column];
    }
}

// Reads 16 x 16 words from 16 rows along k: words[row][k / 2].
SHARDSCOPE_INLINE void read_rows(const Bf16* from, std::ptrdiff_t stride, std::uint32_t* words) {
    for (int row = 0; row < kTile; ++row) std::memcpy(words + row * kTile, from + row * stride, 4 * kTile);
}

// The same where k runs across the rows: words[k / 2][row].
SHARDSCOPE_INLINE void read_pairs(const Bf16* from, std::ptrdiff_t stride, std::uint32_t* words) {
    for (int pair = 0; pair < kTile; ++pair) {
        const Bf16* low = from + 2 * pair * stride;
        const Bf16* high = low + stride;
        std::uint32_t* to = words + pair * kTile;
        for (int i = 0; i < kTile; ++i) to[i] = low[i].bits | static_cast<std::uint32_t>(high[i].bits) << 16;
    }
}

// One panel, `steps` steps from element k on. Tiles of a hold words[row][k / 2], tiles of b words[k /
// 2][column].
SHARDSCOPE_VECTOR_CLONES
void pack_panel(const Source& from, int i, int k, int steps, bool of_a, std::uint32_t* to) {
    for (int step = 0; step < steps; ++step) {
        Bf16 edge[kStepElements];
        const Source at = whole_step(from, i, k + step * kStep, edge);
        for (int half = 0; half < 2; ++half) {
            const Bf16* data = at.data + half * kTile * at.across;
            const bool along_rows = at.along == 1;
            if (along_rows == of_a) {
                along_rows ? read_rows(data, at.across, to) : read_pairs(data, at.along, to);
            } else {
                std::uint32_t words[kTile * kTile];
                along_rows ? read_rows(data, at.across, words) : read_pairs(data, at.along, words);
                transpose_words(words, to);
            }
            to += kTile * kTile;
        }
    }
}

// sums[32][32] (+)= a panel of a times one of b.
__attribute__((target("amx-tile,amx-bf16"))) void multiply_panels(const std::uint32_t* a,
                                                                  const std::uint32_t* b, int steps, bool add,
                                                                  float* sums, std::ptrdiff_t stride) {
    constexpr int kTileWords = kTile * kTile;
    const std::ptrdiff_t row = stride * static_cast<std::ptrdiff_t>(sizeof(float));
    float* lower = sums + kTile * stride;
    if (add) {
        _tile_loadd(0, sums, row);
        _tile_loadd(1, sums + kTile, row);
        _tile_loadd(2, lower, row);
        _tile_loadd(3, lower + kTile, row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int step = 0; step < steps; ++step) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_loadd(5, a + kTileWords, 64);
        _tile_loadd(7, b + kTileWords, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        a += 2 * kTileWords;
        b += 2 * kTileWords;
    }
    _tile_stored(0, sums, row);
    _tile_stored(1, sums + kTile, row);
    _tile_stored(2, lower, row);
    _tile_stored(3, lower + kTile, row);
}

// Configures all eight tiles as 16 rows of 64 bytes, only while this lives: tiles in use make a thread switch
// more expensive.
class TileConfiguration {
  public:
    __attribute__((target("amx-tile"))) TileConfiguration() {
        // Static: the instruction reads all of it, which compilers do not know.
        static constexpr struct alignas(64) {
            std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
            std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } configuration;
        _tile_loadconfig(&configuration);
    }
    __attribute__((target("amx-tile"))) ~TileConfiguration() { _tile_release(); }
    TileConfiguration(const TileConfiguration&) = delete;
    TileConfiguration& operator=(const TileConfiguration&) = delete;
};

// The sums of rows x columns become elements of c.
SHARDSCOPE_VECTOR_CLONES
void store(const float* sums, std::ptrdiff_t stride, const Bf16* bias, Bf16* c, int row_elements, int rows,
           int columns) {
    const std::size_t n = static_cast<std::size_t>(columns);
    for (int i = 0; i < rows; ++i) {
        const float* from = sums + i * stride;
        Bf16* to = c + static_cast<std::ptrdiff_t>(i) * row_elements;
        if (bias) {
            float shifted[kPanel];
            for (std::size_t j = 0; j < n; ++j) shifted[j] = from[j] + to_float(bias[j]);
            put(to, shifted, n);
        } else {
            put(to, from, n);
        }
    }
}

bool ask_for_tiles() {
    constexpr unsigned kBf16Bit = 1u << 22, kTileBit = 1u << 24;  // of leaf 7, edx
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16Bit) == 0 || (d & kTileBit) == 0)
        return false;
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool tiles_usable() {
    static const bool usable = ask_for_tiles();
    return usable;
}

void tile_product(const ProductShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias, Bf16* c) {
    const auto source = [&](const Bf16* data, bool k_runs_along, int count) {
        return k_runs_along ? Source{data, shape.k, 1, count, shape.k}
                            : Source{data, 1, count, count, shape.k};
    };
    const Source rows = source(a, !shape.transpose_a, shape.m);
    const Source columns = source(b, shape.transpose_b, shape.n);
    const int deep = std::min(round_up(shape.k, kStep), kDeep);
    const int tall = shape.k > kDeep ? kTall : round_up(shape.m, kPanel);
    const int wide = std::min(round_up(shape.n, kPanel), std::max(kPanel, kCached / deep / kPanel * kPanel));
    const auto words = [](Purpose purpose, int panel, int depth) {
        return workspace_of<std::uint32_t>(
            purpose, static_cast<std::size_t>(panel) * static_cast<std::size_t>(depth) / 2);
    };
    std::uint32_t* packed_a = words(Purpose::operand_a, kPanel, deep);
    std::uint32_t* packed_b = words(Purpose::operand_b, wide, deep);
    // Holds the unfinished sums of a block, or the finished sums of a pair of panels.
    const bool parts = shape.k > kDeep;
    const int stride = parts ? wide : kPanel;
    float* sums = workspace_of<float>(
        Purpose::product, static_cast<std::size_t>(parts ? tall : kPanel) * static_cast<std::size_t>(stride));
    const TileConfiguration configuration;
    for (int column = 0; column < shape.n; column += wide) {
        const int last_column = std::min(column + wide, shape.n);
        for (int block = 0; block < shape.m; block += tall) {
            const int last_row = std::min(block + tall, shape.m);
            for (int k = 0; k < shape.k; k += kDeep) {
                const int steps = (std::min(kDeep, shape.k - k) + kStep - 1) / kStep;
                const std::ptrdiff_t panel_words = static_cast<std::ptrdiff_t>(steps) * kStepElements / 2;
                for (int j = column; j < last_column && (parts || block == 0); j += kPanel) {
                    pack_panel(columns, j, k, steps, false, packed_b + (j - column) / kPanel * panel_words);
                }
                const bool last = k + kDeep >= shape.k;
                for (int i = block; i < last_row; i += kPanel) {
                    pack_panel(rows, i, k, steps, true, packed_a);
                    for (int j = column; j < last_column; j += kPanel) {
                        float* at =
                            parts ? sums + static_cast<std::ptrdiff_t>(i - block) * stride + (j - column)
                                  : sums;
                        multiply_panels(packed_a, packed_b + (j - column) / kPanel * panel_words, steps,
                                        k > 0, at, stride);
                        if (!last) continue;
                        store(at, stride, shape.bias ? bias + j : nullptr,
                              c + static_cast<std::ptrdiff_t>(i) * shape.n + j, shape.n,
                              std::min(kPanel, last_row - i), std::min(kPanel, last_column - j));
                    }
                }
            }
        }
    }
}

}  // namespace shardscope::trainer::kernels

#else

#include <stdexcept>

namespace shardscope::trainer::kernels {

bool tiles_usable() {
    return false;
}
void tile_product(const ProductShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*) {
    throw std::logic_error("a product with tiles on a processor that has none");
}

}  // namespace shardscope::trainer::kernels

#endif
