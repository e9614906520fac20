// See onednn.h. Uses oneDNN's C interface, version 2. The functions are looked up by name, so that the
// program also starts on machines without the library.
#include "trainer/kernels/onednn.h"

#ifdef SHARDSCOPE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#if defined(SHARDSCOPE_ONEDNN) && DNNL_VERSION_MAJOR == 2

#include <array>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dlfcn.h>
#include <fmt/core.h>

#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

// The functions that are called, without their prefix dnnl_.
// clang-format off
#define SHARDSCOPE_ONEDNN_FUNCTIONS(F)                                                                     \
    F(version) F(get_effective_cpu_isa) F(set_max_cpu_isa)                                                 \
    F(engine_create) F(engine_destroy) F(stream_create) F(stream_destroy)                                  \
    F(memory_desc_init_by_strides) F(memory_desc_get_size)                                                 \
    F(memory_create) F(memory_destroy) F(memory_set_data_handle)                                           \
    F(primitive_attr_create) F(primitive_attr_destroy) F(primitive_attr_set_scratchpad_mode)               \
    F(matmul_desc_init) F(primitive_desc_create) F(primitive_desc_destroy) F(primitive_desc_query_md)      \
    F(primitive_create) F(primitive_destroy) F(primitive_execute)
// clang-format on

// NOLINTBEGIN(bugprone-macro-parentheses): a name takes none.
#define SHARDSCOPE_MEMBER(name) decltype(&dnnl_##name) name;
#define SHARDSCOPE_FIND(name) find(library->name, "dnnl_" #name);
// NOLINTEND(bugprone-macro-parentheses)

// All functions are null unless every one was found.
struct OneDnn::Library {
    SHARDSCOPE_ONEDNN_FUNCTIONS(SHARDSCOPE_MEMBER)
    void (*set_omp_threads)(int);
    dnnl_engine_t engine = nullptr;

    // Runs at the end of the process, after the streams and matmuls of its threads are destroyed.
    ~Library() {
        if (engine) engine_destroy(engine);
    }
};

namespace {

void check(dnnl_status_t status, const char* what) {
    if (status != dnnl_success) {
        throw std::runtime_error(
            fmt::format("oneDNN cannot {} (status {}): train with precision.param = \"fp32\", or remove "
                        "the library (the "
                        "products are then computed in fp32)",
                        what, static_cast<int>(status)));
    }
}

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, dnnl_status_t (*)(Handle)>;

// Calls create(&handle, …) and owns what it makes.
template <class Handle, class Create, class... Arguments>
Owned<Handle> make(const char* what, dnnl_status_t (*destroy)(Handle), Create create,
                   Arguments... arguments) {
    Handle handle = nullptr;
    check(create(&handle, arguments...), what);
    return {handle, destroy};
}

enum Operand : std::size_t { kSource, kWeights, kBias, kResult, kScratch, kOperands };
constexpr std::array<int, kOperands> kArguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                                   DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};

// Whether CPUID describes the processor's tiles (leaf 0x1D, palette 1); many virtual machines hide that.
bool tiles_are_described() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(0x1d, 1, &a, &b, &c, &d) != 0 && b != 0;
#else
    return false;
#endif
}

struct Compiled {
    std::vector<Owned<dnnl_memory_t>> memories;  // in the order of Operand; all five, the bias even if unused
    Owned<dnnl_primitive_t> primitive;
    std::size_t scratch_bytes;
};

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
    SHARDSCOPE_ONEDNN_FUNCTIONS(SHARDSCOPE_FIND)
    find(library->set_omp_threads, "omp_set_num_threads");  // of the OpenMP that oneDNN is linked with
    if (missing) {
        description_ = fmt::format("the oneDNN found has no function {}", missing);
        return;
    }
    // The library uses tiles wherever the processor reports them, and crashes with an illegal instruction if
    // CPUID does not describe their sizes.
    if (!tiles_are_described()) library->set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
    const dnnl_version_t& version = *library->version();
    const unsigned instructions = static_cast<unsigned>(library->get_effective_cpu_isa());
    const auto has = [&](dnnl_cpu_isa_t set) { return (instructions & set) == static_cast<unsigned>(set); };
    if (!has(dnnl_cpu_isa_avx512_core_bf16)) {
        description_ = "this processor has no bfloat16 instructions";
        return;
    }
    library->set_omp_threads(1);
    if (library->engine_create(&library->engine, dnnl_cpu, 0) != dnnl_success) {
        description_ = "oneDNN cannot use this processor";
        return;
    }
    const bool tiles = has(dnnl_cpu_isa_avx512_core_amx);
    description_ = fmt::format("oneDNN {}.{}.{} ({})", version.major, version.minor, version.patch,
                               tiles ? "AMX" : "AVX512_BF16");
#if defined(__x86_64__)
    fast_ = tiles || !__builtin_cpu_is("intel");
#endif
    if (!fast_) description_ += ", which is slower than fp32 here";
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

template <class Library>
Compiled compile(const Library& library, const MatmulShape& shape) {
    const dnnl_memory_desc_t source = matrix(library, shape.m, shape.k, shape.transpose_a);
    const dnnl_memory_desc_t weights = matrix(library, shape.k, shape.n, shape.transpose_b);
    const dnnl_memory_desc_t bias = matrix(library, 1, shape.n, false);
    const dnnl_memory_desc_t result = matrix(library, shape.m, shape.n, false);
    dnnl_matmul_desc_t product;
    check(library.matmul_desc_init(&product, &source, &weights, shape.bias ? &bias : nullptr, &result),
          "describe a product");
    // The scratch memory is our own, one block per calling thread: threads cannot share the library's.
    const auto attributes = make<dnnl_primitive_attr_t>("make attributes", library.primitive_attr_destroy,
                                                        library.primitive_attr_create);
    check(library.primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user),
          "set its scratch memory");
    const auto description = make<dnnl_primitive_desc_t>(
        "plan a bfloat16 product", library.primitive_desc_destroy, library.primitive_desc_create, &product,
        attributes.get(), library.engine, nullptr);
    const dnnl_memory_desc_t& scratch =
        *library.primitive_desc_query_md(description.get(), dnnl_query_scratchpad_md, 0);
    std::vector<Owned<dnnl_memory_t>> memories;
    for (const dnnl_memory_desc_t* of : {&source, &weights, &bias, &result, &scratch}) {
        memories.push_back(make<dnnl_memory_t>("bind a matrix", library.memory_destroy, library.memory_create,
                                               of, library.engine, nullptr));
    }
    return {std::move(memories),
            make<dnnl_primitive_t>("compile a bfloat16 product", library.primitive_destroy,
                                   library.primitive_create, description.get()),
            library.memory_desc_get_size(&scratch)};
}

}  // namespace

void OneDnn::multiply(const MatmulShape& shape, const Bf16* a, const Bf16* b, const Bf16* bias,
                      Bf16* c) const {
    const Library& library = *library_;
    // Compiled matmuls belong to the thread (the machine code itself is shared, in the library's own cache).
    // With one OpenMP thread the library runs its loops in this thread and starts no other.
    struct OfThread {
        explicit OfThread(const Library& used)
            : stream((used.set_omp_threads(1),
                      make<dnnl_stream_t>("make a stream", used.stream_destroy, used.stream_create,
                                          used.engine, static_cast<unsigned>(dnnl_stream_default_flags)))) {}
        Owned<dnnl_stream_t> stream;
        std::map<MatmulShape, Compiled> products;
    };
    thread_local OfThread mine(library);
    auto found = mine.products.find(shape);
    if (found == mine.products.end()) {
        found = mine.products.emplace(shape, compile(library, shape)).first;
    }
    const Compiled& compiled = found->second;
    const std::array<const void*, kOperands> data = {a, b, bias, c,
                                                     workspace(Purpose::library, compiled.scratch_bytes)};
    std::array<dnnl_exec_arg_t, kOperands> arguments;
    int count = 0;
    for (std::size_t i = 0; i < kOperands; ++i) {
        if (i == kBias && !shape.bias) continue;
        dnnl_memory_t memory = compiled.memories[i].get();
        check(library.memory_set_data_handle(memory, const_cast<void*>(data[i])),
              "bind a matrix");  // NOLINT: its interface
        arguments[static_cast<std::size_t>(count++)] = {kArguments[i], memory};
    }
    check(library.primitive_execute(compiled.primitive.get(), mine.stream.get(), count, arguments.data()),
          "compute a bfloat16 product");
}

}  // namespace shardscope::trainer::kernels

#else

namespace shardscope::trainer::kernels {

struct OneDnn::Library {};

const OneDnn& OneDnn::get() {
    static const OneDnn library;
    return library;
}
OneDnn::OneDnn() : description_("built without oneDNN 2: its header was not found") {}
OneDnn::~OneDnn() = default;
void OneDnn::multiply(const MatmulShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*) const {}

}  // namespace shardscope::trainer::kernels

#endif
