// Helpers that the kernels' tests share: generated inputs, the distance between two results, and gradients by
// finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tests/trainer/reference_kernels.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::testing {

using Floats = std::vector<float>;
using reference::Tokens;
using reference::Vector;

// Normal random numbers; each name gives different ones.
inline Floats normals(std::size_t n, std::string_view name) {
    Floats made(n);
    kernels::fill_normal(made.data(), n, 7, kernels::stream_of(name), 0, 0.0f, 1.0f);
    return made;
}

inline Tokens tokens(std::size_t n, int entries, std::string_view name) {
    Tokens made(n);
    for (std::size_t i = 0; i < n; ++i) {
        made[i] = static_cast<std::int32_t>(kernels::random_bits(7, kernels::stream_of(name), i) % entries);
    }
    return made;
}

inline Vector in_double(const Floats& x) {
    return {x.begin(), x.end()};
}
template <kernels::Narrow T>
Vector in_double(const std::vector<T>& x) {
    Vector wide;
    for (const T value : x) wide.push_back(kernels::to_float(value));
    return wide;
}

// The same numbers as T: a kernel's operands, rounded if T is narrow. The plain forms get in_double of these.
template <class T>
std::vector<T> as(const Floats& x) {
    std::vector<T> made(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) kernels::store(x[i], made[i]);
    return made;
}

// n values of T that a kernel must overwrite.
template <class T>
std::vector<T> unwritten(std::size_t n) {
    return as<T>(Floats(n, NAN));
}

// The largest difference between two results, relative to the largest entry of the second. Infinite if the
// sizes differ or an entry is not a number.
template <class Left, class Right>
double relative_error(const Left& result, const Right& expected) {
    if (result.size() != expected.size()) return HUGE_VAL;
    double difference = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(result[i]) || std::isnan(expected[i])) return HUGE_VAL;
        difference = std::max(difference, std::abs(static_cast<double>(result[i]) - expected[i]));
        size = std::max(size, std::abs(static_cast<double>(expected[i])));
    }
    return size > 0.0 ? difference / size : difference;
}

// The gradient of a scalar function at x, each entry from two values: (f(x + h) - f(x - h)) / 2h. In double
// with h = 1e-5 the error is about h^2 = 1e-10 from the curve and 1e-16/h = 1e-11 from rounding.
inline Vector finite_differences(Vector x, const std::function<double(const Vector&)>& f) {
    constexpr double kStep = 1e-5;
    Vector gradient(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double here = x[i];
        x[i] = here + kStep;
        const double above = f(x);
        x[i] = here - kStep;
        const double below = f(x);
        x[i] = here;
        gradient[i] = (above - below) / (2.0 * kStep);
    }
    return gradient;
}

// Sum of the elementwise product: as f in `finite_differences`, dot(dy, forward(x)) has the gradient
// backward(dy, x).
inline double dot(const Vector& a, const Vector& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

inline constexpr double kFiniteDifferenceTolerance = 1e-6;
inline constexpr double kFloatTolerance = 5e-6;  // some tens of roundings of 6e-8

// How far a kernel over T may be from the plain form on the same operands: for a narrow type one rounding of
// the result (at most 2^-8 of the entry in Bf16, 2^-11 in Fp16), plus the error of fp32.
template <class T>
inline constexpr double kTolerance = kFloatTolerance + (std::is_same_v<T, kernels::Bf16>   ? 0x1p-8
                                                        : std::is_same_v<T, kernels::Fp16> ? 0x1p-11
                                                                                           : 0);

}  // namespace shardscope::trainer::testing
