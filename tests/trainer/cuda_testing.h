// A kernel operation executed twice, by the cpu executor's run_kernel and by the CUDA module's launch_kernel,
// on copies of the same operands. The same tests run against the simulated CUDA (SHARDSCOPE_PLAYED_CUDA) and
// against a real device, if there is one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/cuda/gemm.h"
#include "trainer/cuda/kernels.h"
#include "trainer/executor/cpu_kernels.h"

namespace shardscope::trainer::cuda_testing {

using kernels::Bf16;
using kernels::Fp16;
using testing::as;
using testing::Floats;
using testing::in_double;
using testing::normals;
using testing::unwritten;
using testing::Vector;

// Device memory with a margin on both sides, filled with 0xff: reading it gives a NaN, and intact() detects a
// write. `shift` bytes move the beginning off its alignment of 256.
class DeviceMemory {
  public:
    DeviceMemory(const std::vector<std::byte>& contents, std::size_t shift)
        : shift_(shift), bytes_(contents.size()) {
        std::vector<std::byte> all(kMargin + shift + bytes_ + kMargin, std::byte{0xff});
        std::memcpy(all.data() + kMargin + shift, contents.data(), bytes_);
        void* memory = nullptr;
        cuda::check(cudaMalloc(&memory, all.size()), "cudaMalloc");
        memory_ = static_cast<std::byte*>(memory);
        cuda::check(cudaMemcpy(memory_, all.data(), all.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    ~DeviceMemory() {
        if (memory_) cudaFree(memory_);
    }
    DeviceMemory(DeviceMemory&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), shift_(other.shift_), bytes_(other.bytes_) {}
    DeviceMemory& operator=(DeviceMemory&&) = delete;

    std::byte* data() const { return memory_ + kMargin + shift_; }
    // The current content; fails the test if the margins have changed.
    std::vector<std::byte> contents() const {
        std::vector<std::byte> all(kMargin + shift_ + bytes_ + kMargin);
        cuda::check(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool margin = i < kMargin + shift_ || i >= kMargin + shift_ + bytes_;
            if (!margin || all[i] == std::byte{0xff}) continue;
            ADD_FAILURE() << "byte " << static_cast<std::int64_t>(i - kMargin - shift_) << " of a buffer of "
                          << bytes_ << " was written";
            break;
        }
        return {all.begin() + static_cast<std::ptrdiff_t>(kMargin + shift_),
                all.end() - static_cast<std::ptrdiff_t>(kMargin)};
    }

  private:
    static constexpr std::size_t kMargin = 256;
    std::byte* memory_ = nullptr;
    std::size_t shift_, bytes_;
};

// A stream of the device with everything that launches on it need, for the test's thread.
class TestDevice {
  public:
    TestDevice() : workspace_(nullptr) {}
    cuda::DeviceContext context() { return {nullptr, workspace_, gemm()}; }

  private:
    // Shared by all tests, since it opens a library.
    static cuda::Gemm& gemm() {
        static cuda::Gemm of_all(false);
        return of_all;
    }

    cuda::Workspace workspace_;
};

// Skips a test, visibly, if there is no device for it.
class CudaTest : public ::testing::Test {
  protected:
    void SetUp() override {
        int devices = 0;
        const cudaError_t result = cudaGetDeviceCount(&devices);
        if (result != cudaSuccess || devices == 0) {
            GTEST_SKIP() << "no CUDA device: "
                         << (result != cudaSuccess ? cudaGetErrorString(result) : "the driver counts none");
        }
    }
};

class Comparison {
  public:
    Comparison(plan::Kernel kernel, plan::DType dtype, std::array<std::int64_t, 6> dims,
               std::array<double, 5> scalars = {}) {
        op_.kind = plan::OpKind::kernel;
        op_.own = plan::KernelOp{.kernel = kernel, .dtype = dtype, .dims = dims, .scalars = scalars};
        op_.module = 5;
    }

    // The operation's next arg and its content before the call.
    template <class T>
    Comparison& arg(const std::vector<T>& values) {
        std::vector<std::byte> bytes(values.size() * sizeof(T));
        if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
        operands_.push_back({std::move(bytes), operands_.size(), false, sizeof(T)});
        return *this;
    }
    template <class... T>
    Comparison& args(const std::vector<T>&... values) {
        (arg(values), ...);
        return *this;
    }
    Comparison& nothing() {
        operands_.push_back({{}, operands_.size(), true, 1});
        return *this;
    }
    // The next arg uses the memory of an earlier one.
    Comparison& again(std::size_t earlier) {
        operands_.push_back({operands_[earlier].before, earlier, false, operands_[earlier].element});
        return *this;
    }
    Comparison& checked(std::int32_t flag) {
        op_.kernel().checks_output = true;
        return arg(std::vector<std::int32_t>{flag});
    }
    // Operands begin `elements` of their type after a multiple of 16 bytes.
    Comparison& shifted(std::size_t elements) {
        shift_ = elements;
        return *this;
    }

    Comparison& run(const device::KernelContext& context = {}) {
        op_.args.clear();
        for (const Operand& operand : operands_) {
            op_.args.push_back(
                {operand.absent ? -1 : 0, 0, static_cast<std::int64_t>(operand.before.size())});
        }
        on_cpu_.clear();
        for (const Operand& operand : operands_) on_cpu_.push_back(operand.before);
        executor::run_kernel(op_, addresses([&](std::size_t i) { return on_cpu_[i].data(); }), context);

        std::vector<DeviceMemory> memory;
        memory.reserve(operands_.size());
        for (const Operand& operand : operands_)
            memory.emplace_back(operand.before, shift_ * operand.element);
        TestDevice device;
        cuda::launch_kernel(op_, addresses([&](std::size_t i) { return memory[i].data(); }), context,
                            device.context());
        cuda::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
        on_cuda_.clear();
        for (const DeviceMemory& of_operand : memory) on_cuda_.push_back(of_operand.contents());
        return *this;
    }

    template <class T>
    std::vector<T> cpu(std::size_t i) const {
        return values<T>(on_cpu_[operands_[i].memory]);
    }
    template <class T>
    std::vector<T> cuda(std::size_t i) const {
        return values<T>(on_cuda_[operands_[i].memory]);
    }

    // The two results for arg i have the same bits.
    template <class T>
    void expect_same(std::size_t i) const {
        const std::vector<T> expected = cpu<T>(i), result = cuda<T>(i);
        for (std::size_t at = 0; at < expected.size(); ++at) {
            if (std::memcmp(&expected[at], &result[at], sizeof(T)) == 0) continue;
            ADD_FAILURE() << "arg " << i << ", element " << at << " of " << expected.size() << ": CUDA gives "
                          << number(result[at]) << ", the CPU " << number(expected[at]);
            return;
        }
    }
    // The two results differ by no more than `tolerance` of the largest entry.
    template <class T>
    void expect_near(std::size_t i, double tolerance = testing::kTolerance<T>) const {
        EXPECT_LE(testing::relative_error(numbers(cuda<T>(i)), numbers(cpu<T>(i))), tolerance) << "arg " << i;
    }

    // The flag that checked() adds equals the CPU's.
    void expect_same_flag() const {
        if (op_.kernel().checks_output) expect_same<std::int32_t>(operands_.size() - 1);
    }

  private:
    struct Operand {
        std::vector<std::byte> before;
        std::size_t memory = 0;  // the operand that owns the memory
        bool absent = false;
        std::size_t element = 1;  // bytes
    };

    template <class Address>
    std::vector<std::byte*> addresses(Address address) const {
        std::vector<std::byte*> made;
        for (const Operand& operand : operands_)
            made.push_back(operand.absent ? nullptr : address(operand.memory));
        return made;
    }
    template <class T>
    static std::vector<T> values(const std::vector<std::byte>& bytes) {
        std::vector<T> made(bytes.size() / sizeof(T));
        if (!bytes.empty()) std::memcpy(static_cast<void*>(made.data()), bytes.data(), bytes.size());
        return made;
    }
    template <class T>
    static double number(T x) {
        if constexpr (kernels::Narrow<T>) {
            return kernels::to_float(x);
        } else {
            return static_cast<double>(x);
        }
    }
    template <class T>
    static Vector numbers(const std::vector<T>& x) {
        Vector made;
        for (const T value : x) made.push_back(number(value));
        return made;
    }

    plan::Op op_;
    std::vector<Operand> operands_;
    std::size_t shift_ = 0;
    std::vector<std::vector<std::byte>> on_cpu_, on_cuda_;
};

template <class T>
inline constexpr plan::DType kDType = std::is_same_v<T, float>  ? plan::DType::fp32
                                      : std::is_same_v<T, Bf16> ? plan::DType::bf16
                                                                : plan::DType::fp16;

// The element types of a typed test.
using Elements = ::testing::Types<float, Bf16, Fp16>;
struct ElementNames {
    template <class T>
    static std::string GetName(int) {
        return std::string(plan::kDTypeNames[static_cast<std::size_t>(kDType<T>)]);
    }
};
template <class T>
class TypedCudaTest : public CudaTest {};

inline constexpr std::size_t kSizes[] = {1, 7, 31, 33, 1000, 4097, 20011};

// A kernel with its operands, and how the args that it writes are compared with the CPU's.
template <class T>
struct KernelCase {
    const char* name;
    Comparison kernel;
    double tolerance = 0;                    // 0: the bits must be equal
    std::vector<std::size_t> results = {0};  // args of T
    std::vector<std::size_t> floats;         // args of float, compared by tolerance

    void check(std::size_t shift, const device::KernelContext& context = {}) {
        SCOPED_TRACE(name);
        kernel.shifted(shift).run(context);
        for (const std::size_t arg : results) {
            if (tolerance > 0) {
                kernel.template expect_near<T>(arg, tolerance);
            } else {
                kernel.template expect_same<T>(arg);
            }
        }
        for (const std::size_t arg : floats) kernel.template expect_near<float>(arg);
        kernel.expect_same_flag();
    }
};

// Checks the cases that make_cases(item) gives for each item, with operands aligned and not.
template <class Items, class Text, class MakeCases>
void check_cases(const Items& items, Text text, MakeCases make_cases) {
    for (const auto& item : items) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(text(item) + ", shifted by " + std::to_string(shift));
            for (auto& each : make_cases(item)) each.check(shift);
        }
    }
}

inline std::string text_of_size(std::size_t n) {
    return std::to_string(n) + " elements";
}

}  // namespace shardscope::trainer::cuda_testing
