// Batch norm compared with its formula, its gradients with finite differences of it.
#include <utility>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/batch_norm.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr double kEps = 1e-5;

struct Statistics {
    Vector mean, variance;  // variance of n
};
Statistics statistics_of(const Vector& x, int rows, int columns) {
    Statistics of{Vector(columns), Vector(columns)};
    for (std::size_t i = 0; i < x.size(); ++i) of.mean[i % columns] += x[i] / rows;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double d = x[i] - of.mean[i % columns];
        of.variance[i % columns] += d * d / rows;
    }
    return of;
}

Vector plain_batch_norm(const Vector& x, const Vector& gamma, const Vector& beta, int rows, int columns) {
    const Statistics of = statistics_of(x, rows, columns);
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i % columns;
        y[i] = (x[i] - of.mean[c]) / std::sqrt(of.variance[c] + kEps) * gamma[c] + beta[c];
    }
    return y;
}

struct Shape {
    int rows, columns;
};
class BatchNormShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(BatchNormShapes, AgreesWithItsFormulaAndKeepsStatistics) {
    const auto [rows, columns] = GetParam();
    const std::size_t n = static_cast<std::size_t>(rows) * columns;
    Floats x = normals(n, "x");
    for (float& value : x) value = 2.0F * value + 3.0F;
    const Floats gamma = normals(columns, "gamma"), beta = normals(columns, "beta");
    Floats y(n, NAN), mean(columns, NAN), rstd(columns, NAN), running_mean(columns, 0),
        running_variance(columns, 1);
    batch_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(),
                       {running_mean.data(), running_variance.data(), 0.1F}, rows, columns, kEps);
    EXPECT_LE(
        relative_error(y, plain_batch_norm(in_double(x), in_double(gamma), in_double(beta), rows, columns)),
        kFloatTolerance);
    const Statistics of = statistics_of(in_double(x), rows, columns);
    for (int c = 0; c < columns; ++c) {
        EXPECT_NEAR(running_mean[c], 0.1 * of.mean[c], 1e-6);
        EXPECT_NEAR(running_variance[c], 0.9 + 0.1 * of.variance[c] * rows / (rows - 1), 1e-5);
    }
    // With those of the batch as running statistics, the evaluation gives the same.
    Floats evaluated(n, NAN), variance(of.variance.begin(), of.variance.end());
    batch_norm_evaluate(x.data(), gamma.data(), beta.data(), mean.data(), variance.data(), evaluated.data(),
                        rows, columns, kEps);
    EXPECT_LE(relative_error(evaluated, y), kFloatTolerance);
}

TEST_P(BatchNormShapes, GradientsAgreeWithFiniteDifferences) {
    const int rows = std::min(GetParam().rows, 12), columns = std::min(GetParam().columns, 5);
    const std::size_t n = static_cast<std::size_t>(rows) * columns;
    const Floats x = normals(n, "x"), dy = normals(n, "dy");
    const Floats gamma = normals(columns, "gamma"), beta = normals(columns, "beta");
    Floats y(n), mean(columns), rstd(columns), running(2 * columns);
    Floats dx(n, NAN), dgamma(columns, NAN), dbeta(columns, NAN);
    batch_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(),
                       {running.data(), running.data() + columns, 0.1F}, rows, columns, kEps);
    batch_norm_backward(dy.data(), x.data(), gamma.data(), mean.data(), rstd.data(), dx.data(), dgamma.data(),
                        dbeta.data(), rows, columns);
    const auto slope = [&](const Vector& x_, const Vector& gamma_, const Vector& beta_) {
        return dot(in_double(dy), plain_batch_norm(x_, gamma_, beta_, rows, columns));
    };
    const Vector x_ = in_double(x), gamma_ = in_double(gamma), beta_ = in_double(beta);
    const auto expect = [&](const Floats& gradient, const Vector& from, const auto& f) {
        EXPECT_LE(relative_error(gradient, finite_differences(from, f)), 2e-5);
    };
    expect(dx, x_, [&](const Vector& v) { return slope(v, gamma_, beta_); });
    expect(dgamma, gamma_, [&](const Vector& v) { return slope(x_, v, beta_); });
    expect(dbeta, beta_, [&](const Vector& v) { return slope(x_, gamma_, v); });
    // The gradients that are wanted do not depend on those that are not.
    Floats alone(n, NAN);
    batch_norm_backward(dy.data(), x.data(), gamma.data(), mean.data(), rstd.data(), alone.data(), nullptr,
                        nullptr, rows, columns);
    EXPECT_EQ(alone, dx);
}

// Two ranks with half of the rows each: their results, put together, are those of one rank.
TEST_P(BatchNormShapes, SyncedRanksAgreeWithOneThatHasAllRows) {
    const int rows = GetParam().rows, columns = GetParam().columns, half = rows / 2;
    const std::size_t n = static_cast<std::size_t>(rows) * columns, part = n / 2;
    Floats x = normals(n, "x");
    for (std::size_t i = 0; i < part; ++i) x[i] += 2.0F;  // the ranks' means differ
    const Floats dy = normals(n, "dy"), gamma = normals(columns, "gamma"), beta = normals(columns, "beta");
    struct Results {
        explicit Results(std::size_t n, std::size_t columns)
            : y(n),
              dx(n),
              mean(columns),
              rstd(columns),
              dgamma(columns),
              dbeta(columns),
              running(2 * columns) {}
        Floats y, dx, mean, rstd, dgamma, dbeta, running;
    };
    Results one(n, columns), two(n, columns);
    batch_norm_forward(x.data(), gamma.data(), beta.data(), one.y.data(), one.mean.data(), one.rstd.data(),
                       {one.running.data(), one.running.data() + columns, 0.1F}, rows, columns, kEps);
    batch_norm_backward(dy.data(), x.data(), gamma.data(), one.mean.data(), one.rstd.data(), one.dx.data(),
                        one.dgamma.data(), one.dbeta.data(), rows, columns);

    const std::size_t of_rank = 2 * static_cast<std::size_t>(columns) + 1;
    Floats statistics(2 * of_rank), sums(2 * columns), own(2 * columns), dgamma(columns), dbeta(columns);
    for (const std::size_t rank : {0, 1})
        batch_norm_statistics(x.data() + rank * part, statistics.data() + rank * of_rank, half, columns);
    for (const std::size_t rank : {0, 1}) {
        two.running.assign(2 * columns, 0);
        batch_norm_synced_forward(x.data() + rank * part, statistics.data(), 2, gamma.data(), beta.data(),
                                  two.y.data() + rank * part, two.mean.data(), two.rstd.data(),
                                  {two.running.data(), two.running.data() + columns, 0.1F}, half, columns,
                                  kEps);
        batch_norm_gradient_sums(dy.data() + rank * part, x.data() + rank * part, two.mean.data(),
                                 two.rstd.data(), own.data(), dgamma.data(), dbeta.data(), half, columns);
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += own[i];
        for (int c = 0; c < columns; ++c) {
            two.dgamma[c] += dgamma[c];
            two.dbeta[c] += dbeta[c];
        }
    }
    for (const std::size_t rank : {0, 1})
        batch_norm_synced_backward(dy.data() + rank * part, x.data() + rank * part, gamma.data(),
                                   two.mean.data(), two.rstd.data(), sums.data(), two.dx.data() + rank * part,
                                   half, columns, rows);
    for (const auto& [of_two, of_one] :
         {std::pair(&two.y, &one.y), std::pair(&two.dx, &one.dx), std::pair(&two.running, &one.running),
          std::pair(&two.dgamma, &one.dgamma), std::pair(&two.dbeta, &one.dbeta)})
        EXPECT_LE(relative_error(*of_two, *of_one), kFloatTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormShapes,
                         ::testing::Values(Shape{4, 1}, Shape{6, 16}, Shape{130, 3}, Shape{200, 150}));

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
