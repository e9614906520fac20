// Which function an address of a process is in.
#include <cstdio>
#include <fstream>
#include <string>

#include <dlfcn.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "profiler/stacks/address_space.h"
#include "profiler/stacks/symbols.h"
#include "tests/traces/temporary_folder.h"

namespace shardscope::profiler {
namespace TEST_FILE {

PerfMapping mapping(std::uint64_t start, std::uint64_t size, const char* file, std::uint64_t offset = 0) {
    PerfMapping m;
    m.pid = 7;
    m.start = start;
    m.size = size;
    m.offset = offset;
    m.file = file;
    return m;
}

TEST(AddressSpaces, KnowWhatIsMappedWhere) {
    AddressSpaces spaces;
    EXPECT_EQ(spaces.frame(7, 0x1000), "[unknown]");
    spaces.add(mapping(0x1000, 0x3000, "/none/a.so"));
    spaces.add(mapping(0x2000, 0x1000, "/none/b.so"));  // in its middle
    spaces.add(mapping(0x8000, 0, "/none/empty.so"));
    spaces.add(mapping(~std::uint64_t{0} - 0xFFF, 0x2000, "/none/over.so"));  // over the end of memory
    EXPECT_EQ(spaces.frame(7, 0xFFF), "[unknown]");
    EXPECT_EQ(spaces.frame(7, 0x1000), "[unknown] (a.so)");
    EXPECT_EQ(spaces.frame(7, 0x2000), "[unknown] (b.so)");
    EXPECT_EQ(spaces.frame(7, 0x2FFF), "[unknown] (b.so)");
    EXPECT_EQ(spaces.frame(7, 0x3000), "[unknown] (a.so)");
    EXPECT_EQ(spaces.frame(7, 0x4000), "[unknown]");
    EXPECT_EQ(spaces.frame(7, 0x8000), "[unknown]");
    EXPECT_EQ(spaces.frame(7, ~std::uint64_t{0}), "[unknown]");
    EXPECT_EQ(spaces.frame(8, 0x1000), "[unknown]");

    spaces.fork(8, 7);
    spaces.clear(7);
    EXPECT_EQ(spaces.frame(8, 0x2000), "[unknown] (b.so)");
    EXPECT_EQ(spaces.frame(7, 0x2000), "[unknown]");
    spaces.add(mapping(0x5000, 0x1000, "[vdso]"));
    EXPECT_EQ(spaces.frame(7, 0x5000), "[unknown] ([vdso])");
}

TEST(AddressSpaces, ForgetTheProcessThatWasUsedLeastRecently) {
    AddressSpaces spaces;
    for (std::int32_t pid = 1; pid <= static_cast<std::int32_t>(AddressSpaces::kMost) + 1; ++pid) {
        PerfMapping m = mapping(0x1000, 0x1000, "/none/a.so");
        m.pid = pid;
        spaces.add(m);
    }
    EXPECT_EQ(spaces.frame(2, 0x1000), "[unknown] (a.so)");
    EXPECT_EQ(spaces.frame(1, 0x1000), "[unknown]");
}

// The dynamic linker says where a function of the C library is.
TEST(AddressSpaces, NameTheFunctionsOfALibrary) {
    // Asked for by its library: a sanitizer puts a function of its own before it.
    void* library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    void* function = ::dlsym(library, "qsort_r");
    ASSERT_NE(function, nullptr);
    AddressSpaces spaces;
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line)) {
        unsigned long start = 0, end = 0, offset = 0;
        char access[8] = {}, path[512] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %511s", &start, &end, access, &offset, path) <
            5)
            continue;
        if (access[2] == 'x') spaces.add(mapping(start, end - start, path, offset));
    }
    const auto address = reinterpret_cast<std::uint64_t>(function);
    const std::string frame = spaces.frame(7, address + 1);
    EXPECT_TRUE(frame.starts_with("qsort_r (libc") || frame.starts_with("__qsort_r (libc")) << frame;
}

TEST(Symbols, OfAFileThatIsNoProgramAreNone) {
    EXPECT_TRUE(Symbols::of_elf("/none").empty());
    EXPECT_TRUE(Symbols::of_elf("/proc/self/maps").empty());
    EXPECT_TRUE(Symbols::of_elf("/").empty());
    EXPECT_EQ(Symbols::of_elf("/none").at(0), "");
}

// As Python writes it with -X perf.
TEST(Symbols, OfAMapAreThoseThatAProgramCompiled) {
    const traces::TemporaryFolder folder;
    const std::string path = folder / "perf-7.map";
    std::ofstream(path) << "7f10 20 py::step:/job/train.py\nno line\n7f40 0 last\n7f10 10 "
                           "py::again:/job/train.py\nfffffffffffffffff 1 x\n7 \n";
    const Symbols map = Symbols::of_perf_map(path);
    EXPECT_EQ(map.at(0x7F0F), "");
    EXPECT_EQ(map.at(0x7F10), "py::step:/job/train.py");
    EXPECT_EQ(map.at(0x7F2F), "py::step:/job/train.py");
    EXPECT_EQ(map.at(0x7F30), "");
    EXPECT_EQ(map.at(0x7F99), "last");

    AddressSpaces spaces;
    const std::string own = fmt::format("/tmp/perf-{}.map", ::getpid());
    PerfMapping made = mapping(0x7000, 0x1000, "//anon");
    made.pid = ::getpid();
    spaces.add(made);
    EXPECT_EQ(spaces.frame(made.pid, 0x7010), "[unknown] (compiled at run time)");
    std::ofstream(own) << "7010 10 py::f:a.py\n";
    EXPECT_EQ(spaces.frame(made.pid, 0x7010), "py::f:a.py (compiled at run time)");
    ::unlink(own.c_str());
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
