// Pooling compared with its definition, its gradients with finite differences.
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/pool.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

Vector plain_max_pool(const Vector& x, const ImageShape& image, const Window& window) {
    const ImageShape result = image.under(window, image.channels);
    Vector y(result.elements(), -std::numeric_limits<double>::infinity());
    for (std::size_t at = 0; at < y.size(); ++at) {
        const int c = static_cast<int>(at) % image.channels, place = static_cast<int>(at) / image.channels;
        const int j = place % result.width, i = place / result.width % result.height;
        const int n = place / result.width / result.height;
        for (int tap = 0; tap < window.size * window.size; ++tap) {
            const int row = i * window.stride - window.padding + tap / window.size;
            const int column = j * window.stride - window.padding + tap % window.size;
            if (row < 0 || row >= image.height || column < 0 || column >= image.width) continue;
            y[at] = std::max(y[at],
                             x[((static_cast<std::size_t>(n) * image.height + row) * image.width + column) *
                                   image.channels +
                               c]);
        }
    }
    return y;
}

struct Case {
    ImageShape image;
    Window window;
};
class MaxPool : public ::testing::TestWithParam<Case> {};

TEST_P(MaxPool, AgreesWithItsDefinitionAndFiniteDifferences) {
    const auto& [image, window] = GetParam();
    const ImageShape result = image.under(window, image.channels);
    const Floats x = normals(image.elements(), "x"), dy = normals(result.elements(), "dy");
    Floats y(dy.size(), NAN), dx(x.size(), NAN);
    std::vector<std::int32_t> places(dy.size(), -1);
    max_pool_forward(x.data(), y.data(), places.data(), image, window);
    max_pool_backward(dy.data(), places.data(), dx.data(), image, window);
    EXPECT_EQ(relative_error(y, plain_max_pool(in_double(x), image, window)), 0);
    const Vector slope =
        finite_differences(in_double(x), [&, &image = image, &window = window](const Vector& v) {
            return dot(in_double(dy), plain_max_pool(v, image, window));
        });
    EXPECT_LE(relative_error(dx, slope), kFloatTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, MaxPool,
                         ::testing::Values(Case{{2, 6, 6, 3}, {2, 2, 0}}, Case{{2, 7, 5, 17}, {3, 2, 1}},
                                           Case{{1, 5, 5, 1}, {3, 1, 1}}));

TEST(MaxPoolValues, TakesTheFirstOfEqualOnesAndKeepsNaN) {
    const Floats x = {1, 4, 4, 4}, with_nan = {1, NAN, 5, 4};
    Floats y(1);
    std::int32_t place = -1;
    max_pool_forward(x.data(), y.data(), &place, {1, 2, 2, 1}, {2, 2, 0});
    EXPECT_EQ(place, 1);
    max_pool_forward(with_nan.data(), y.data(), &place, {1, 2, 2, 1}, {2, 2, 0});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(place, 1);
}

// The parts of adaptive_avg_pool2d: from floor(i n / side) to ceil((i + 1) n / side), which overlap where
// side does not divide n, and repeat where the image is smaller.
Vector plain_average(const Vector& x, const ImageShape& image, int side) {
    const auto channels = static_cast<std::size_t>(image.channels);
    Vector y;
    for (int sample = 0; sample < image.batch; ++sample) {
        for (int part = 0; part < side * side; ++part) {
            const int i = part / side, j = part % side;
            const int top = i * image.height / side, left = j * image.width / side;
            const int bottom = ((i + 1) * image.height + side - 1) / side;
            const int right = ((j + 1) * image.width + side - 1) / side;
            for (std::size_t c = 0; c < channels; ++c) {
                double sum = 0;
                for (int row = top; row < bottom; ++row) {
                    for (int column = left; column < right; ++column)
                        sum +=
                            x[static_cast<std::size_t>((sample * image.height + row) * image.width + column) *
                                  channels +
                              c];
                }
                y.push_back(sum / ((bottom - top) * (right - left)));
            }
        }
    }
    return y;
}

TEST(AdaptiveAverage, IsTheMeanOfEachPart) {
    for (const auto& [image, side] :
         {std::pair(ImageShape{2, 5, 7, 19}, 1), std::pair(ImageShape{2, 5, 7, 3}, 3),
          std::pair(ImageShape{1, 4, 4, 5}, 4), std::pair(ImageShape{1, 2, 1, 3}, 7)}) {
        const auto parts = static_cast<std::size_t>(image.batch * side * side * image.channels);
        const Floats x = normals(image.elements(), "x"), dy = normals(parts, "dy");
        Floats y(parts, NAN), dx(x.size(), NAN);
        adaptive_average_forward(x.data(), y.data(), image, side);
        adaptive_average_backward(dy.data(), dx.data(), image, side);
        EXPECT_LE(relative_error(y, plain_average(in_double(x), image, side)), kFloatTolerance) << side;
        const Vector slope =
            finite_differences(in_double(x), [&, &image = image, &side = side](const Vector& v) {
                return dot(in_double(dy), plain_average(v, image, side));
            });
        EXPECT_LE(relative_error(dx, slope), kFloatTolerance) << side;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
