// Elements that lie apart in a file: every block size gives the same values.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/strided_read.h"
#include "trainer/kernels/bf16.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

constexpr int kRows = 5, kColumns = 7, kBefore = 3;

float at(int row, int column) {
    return static_cast<float>(row * 16 + column);
}

void add_number(std::string& text, ElementType type, float value) {
    const auto add = [&](const auto& number) {
        text.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    if (type == ElementType::fp32) add(value);
    if (type == ElementType::fp64) add(static_cast<double>(value));
    if (type == ElementType::bf16) add(kernels::to_bf16(value).bits);
}

// A transposed matrix, whose rows are spread over all of it, and one row far behind it.
TEST(StridedRead, GivesTheRowsOfATransposedMatrix) {
    const TemporaryFolder folder;
    for (const ElementType type : {ElementType::fp32, ElementType::bf16, ElementType::fp64}) {
        std::string text(kBefore, 'x');
        for (int column = 0; column < kColumns; ++column)
            for (int row = 0; row < kRows; ++row) add_number(text, type, at(row, column));
        const std::int64_t far = std::ssize(text) + 1001;
        text.resize(static_cast<std::size_t>(far), 'y');
        for (int column = 0; column < kColumns; ++column) add_number(text, type, at(kRows, column));
        put(folder / "file", text);
        const File file = File::open_to_read(folder / "file");
        for (const std::int64_t block : {1, 3, 16, 50, 2000}) {
            std::vector<std::vector<float>> rows(kRows + 1, std::vector<float>(kColumns, -1));
            std::vector<StridedRun> runs;
            for (int row = 0; row < kRows; ++row) {
                runs.push_back({kBefore + row * size_of(type), kRows, type,
                                std::as_writable_bytes(std::span(rows[static_cast<std::size_t>(row)]))});
            }
            runs.push_back({far, 1, type, std::as_writable_bytes(std::span(rows.back()))});
            read_strided(file, runs, block);
            for (int row = 0; row <= kRows; ++row) {
                for (int column = 0; column < kColumns; ++column) {
                    ASSERT_EQ(rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)],
                              at(row, column))
                        << row << ", " << column << " in blocks of " << block;
                }
            }
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
