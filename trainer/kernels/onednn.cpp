// See onednn.h and onednn_library.h.
#include "trainer/kernels/onednn.h"

#include "trainer/kernels/onednn_library.h"

#ifdef SHARDSCOPE_ONEDNN_2

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dlfcn.h>
#include <fmt/core.h>

#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

namespace onednn {

void check(dnnl_status_t status, const char* what) {
    if (status != dnnl_success) {
        throw std::runtime_error(fmt::format(
            "oneDNN cannot {} (status {}): remove the library (OpenBLAS then computes the products)", what,
            static_cast<int>(status)));
    }
}

const OfThread& OfThread::get(const OneDnn::Library& library) {
    const auto made = [&library] {
        library.set_omp_threads(1);
        OfThread thread{library,
                        make<dnnl_stream_t>("make a stream", library.stream_destroy, library.stream_create,
                                            library.engine, static_cast<unsigned>(dnnl_stream_default_flags)),
                        make<dnnl_primitive_attr_t>("make attributes", library.primitive_attr_destroy,
                                                    library.primitive_attr_create)};
        check(library.primitive_attr_set_scratchpad_mode(thread.attributes.get(), dnnl_scratchpad_mode_user),
              "set its scratch memory");
        // fp32 stays fp32, whatever ONEDNN_DEFAULT_FPMATH_MODE says.
        check(library.primitive_attr_set_fpmath_mode(thread.attributes.get(), dnnl_fpmath_mode_strict),
              "set its precision");
        return thread;
    };
    thread_local const OfThread mine = made();
    return mine;
}

Owned<dnnl_primitive_desc_t> planned(const OfThread& thread, const_dnnl_op_desc_t operation,
                                     const_dnnl_primitive_desc_t hint) {
    const OneDnn::Library& library = thread.library;
    dnnl_primitive_desc_t plan = nullptr;
    const dnnl_status_t status =
        library.primitive_desc_create(&plan, operation, thread.attributes.get(), library.engine, hint);
    if (status != dnnl_unimplemented) check(status, "plan an operation");
    return {plan, library.primitive_desc_destroy};
}

Primitive::Primitive(const OfThread& thread, const_dnnl_primitive_desc_t plan,
                     std::initializer_list<Operand> operands)
    : thread_(thread),
      primitive_(make<dnnl_primitive_t>("compile an operation", thread.library.primitive_destroy,
                                        thread.library.primitive_create, plan)) {
    const OneDnn::Library& library = thread.library;
    const auto bind = [&](const Operand& operand) {
        arguments_.push_back(operand.argument);
        memories_.push_back(make<dnnl_memory_t>("bind a tensor", library.memory_destroy,
                                                library.memory_create, operand.memory, library.engine,
                                                nullptr));
    };
    for (const Operand& operand : operands) bind(operand);
    const dnnl_memory_desc_t* scratch = library.primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0);
    bind({DNNL_ARG_SCRATCHPAD, scratch});
    scratch_bytes_ = library.memory_desc_get_size(scratch);
}

void Primitive::run(std::initializer_list<const void*> data) const {
    std::array<dnnl_exec_arg_t, kMost + 1> arguments;
    int count = 0;
    const auto add = [&](std::size_t operand, const void* address) {
        dnnl_memory_t memory = memories_[operand].get();
        check(thread_.library.memory_set_data_handle(memory,
                                                     const_cast<void*>(address)),  // NOLINT: its interface
              "bind a tensor");
        arguments[static_cast<std::size_t>(count++)] = {arguments_[operand], memory};
    };
    for (const void* address : data) add(static_cast<std::size_t>(count), address);
    add(memories_.size() - 1, workspace(Purpose::library, scratch_bytes_));
    check(thread_.library.primitive_execute(primitive_.get(), thread_.stream.get(), count, arguments.data()),
          "run an operation");
}

}  // namespace onednn

namespace {

using namespace onednn;

// Whether CPUID describes the processor's tiles (leaf 0x1D, palette 1); many virtual machines hide that.
bool tiles_are_described() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(0x1d, 1, &a, &b, &c, &d) != 0 && b != 0;
#else
    return false;
#endif
}

// Whether the user limits the library's instructions.
bool has_limit() {
    for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
        const char* value = std::getenv(name);
        if (value && *value) return true;
    }
    return false;
}

}  // namespace

const OneDnn& OneDnn::get() {
    static const OneDnn library;
    return library;
}

OneDnn::~OneDnn() = default;

OneDnn::OneDnn() {
    void* handle = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        description_ = "oneDNN 2 is not installed: apt-get install libdnnl2";
        return;
    }
    auto library = std::make_unique<Library>();
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
        if (!function) missing = name;
    };
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name takes none.
#define SHARDSCOPE_FIND(name) find(library->name, "dnnl_" #name);
    SHARDSCOPE_ONEDNN_FUNCTIONS(SHARDSCOPE_FIND)
    find(library->set_omp_threads, "omp_set_num_threads");  // of the OpenMP that oneDNN is linked with
    if (missing) {
        description_ = fmt::format("the oneDNN found has no function {}", missing);
        return;
    }
    // The library uses tiles wherever the processor reports them, and crashes with an illegal instruction if
    // CPUID does not describe their sizes. A limit of ours would replace the user's.
    if (!tiles_are_described() && !has_limit()) library->set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
    library->set_omp_threads(1);
    if (library->engine_create(&library->engine, dnnl_cpu, 0) != dnnl_success) {
        description_ = "oneDNN cannot use this processor";
        return;
    }
    const dnnl_version_t& version = *library->version();
    description_ = fmt::format("oneDNN {}.{}.{}", version.major, version.minor, version.patch);
    const unsigned instructions = static_cast<unsigned>(library->get_effective_cpu_isa());
    const auto has = [&](dnnl_cpu_isa_t set) { return (instructions & set) == static_cast<unsigned>(set); };
    has_bf16_ = has(dnnl_cpu_isa_avx512_core_bf16);
    if (has_bf16_) {
        const bool tiles = has(dnnl_cpu_isa_avx512_core_amx);
        bf16_description_ = fmt::format("{} ({})", description_, tiles ? "AMX" : "AVX512_BF16");
#if defined(__x86_64__)
        fast_bf16_ = tiles || !__builtin_cpu_is("intel");
#endif
        if (!fast_bf16_) bf16_description_ += ", which is slower than fp32 here";
    } else {
        bf16_description_ = "this processor has no bfloat16 instructions";
    }
    library_ = std::move(library);
}

namespace {

// A matrix without gaps, stored transposed or not.
template <class Library>
dnnl_memory_desc_t matrix(const Library& library, int rows, int columns, bool transposed) {
    const dnnl_dims_t sizes = {rows, columns};
    const dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};
    dnnl_memory_desc_t description;
    check(library.memory_desc_init_by_strides(&description, 2, sizes, dnnl_bf16, strides),
          "describe a matrix");
    return description;
}

Primitive compile(const OfThread& thread, const MatmulShape& shape) {
    const auto& library = thread.library;
    const dnnl_memory_desc_t source = matrix(library, shape.m, shape.k, shape.transpose_a);
    const dnnl_memory_desc_t weights = matrix(library, shape.k, shape.n, shape.transpose_b);
    const dnnl_memory_desc_t bias = matrix(library, 1, shape.n, false);
    const dnnl_memory_desc_t result = matrix(library, shape.m, shape.n, false);
    dnnl_matmul_desc_t product;
    check(library.matmul_desc_init(&product, &source, &weights, shape.bias ? &bias : nullptr, &result),
          "describe a product");
    const auto plan = planned(thread, &product);
    if (!plan) check(dnnl_unimplemented, "plan a bfloat16 product");
    return {thread,
            plan.get(),
            {{DNNL_ARG_SRC, &source},
             {DNNL_ARG_WEIGHTS, &weights},
             {DNNL_ARG_DST, &result},
             {DNNL_ARG_BIAS, &bias}}};
}

}  // namespace

void OneDnn::multiply(const MatmulShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias,
                      Bf16* c) const {
    const OfThread& thread = OfThread::get(*library_);  // before the products, which end before it does
    thread_local std::map<MatmulShape, Primitive> products;
    auto found = products.find(shape);
    if (found == products.end()) found = products.emplace(shape, compile(thread, shape)).first;
    if (shape.bias) return found->second.run({a, b, c, bias});
    found->second.run({a, b, c});
}

}  // namespace shardscope::trainer::kernels

#else

namespace shardscope::trainer::kernels {

const OneDnn& OneDnn::get() {
    static const OneDnn library;
    return library;
}
OneDnn::OneDnn() : description_("built without oneDNN: no header of oneDNN 2 was found") {}
OneDnn::~OneDnn() = default;
void OneDnn::multiply(const MatmulShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*) const {}

}  // namespace shardscope::trainer::kernels

#endif
