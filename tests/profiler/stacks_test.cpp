// Which function an address of a process is in.
#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "profiler/stacks/address_space.h"
#include "profiler/stacks/maps_file.h"
#include "profiler/stacks/perf_rings.h"
#include "profiler/stacks/symbols.h"
#include "tests/traces/temporary_folder.h"

namespace shardscope::profiler {
namespace TEST_FILE {

CodeMapping mapping(std::uint64_t start, std::uint64_t size, const char* file, std::uint64_t offset = 0) {
    CodeMapping m;
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
        CodeMapping m = mapping(0x1000, 0x1000, "/none/a.so");
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
    for (const CodeMapping& of_this : read_maps_file("/proc/self/maps", 7, MonotonicTime(0)))
        spaces.add(of_this);
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
    const std::string lines =
        "7f10 20 py::step:/job/train.py\nno line\n7f40 0 last\n7f10 10 py::again:/job/train.py\n"
        "fffffffffffffffff 1 x\n7 \n";
    std::ofstream(path) << lines << "7f80 8 unfin";
    Symbols map;
    std::uintmax_t read = map.add_perf_map(path, 0);
    EXPECT_EQ(read, lines.size());
    EXPECT_EQ(map.at(0x7F0F), "");
    EXPECT_EQ(map.at(0x7F10), "py::step:/job/train.py");
    EXPECT_EQ(map.at(0x7F2F), "py::step:/job/train.py");
    EXPECT_EQ(map.at(0x7F30), "");
    EXPECT_EQ(map.at(0x7F99), "last");

    // What is added to it is read alone: the beginning is no longer there to be read.
    std::ofstream(path) << std::string(lines.size(), '#') << "7f80 8 unfinished\n7e00 8 early\n";
    read = map.add_perf_map(path, read);
    EXPECT_EQ(map.at(0x7F84), "unfinished");
    EXPECT_EQ(map.at(0x7E01), "early");
    EXPECT_EQ(map.at(0x7F10), "py::step:/job/train.py");
    EXPECT_EQ(map.add_perf_map(path, read), read);

    std::ofstream(path) << "10 8 other\n";  // another program's
    EXPECT_EQ(map.add_perf_map(path, read), 11U);
    EXPECT_EQ(map.at(0x12), "other");
    EXPECT_EQ(map.at(0x7F84), "");
    EXPECT_EQ(map.add_perf_map(folder / "none", 5), 5U);
}

TEST(AddressSpaces, NameCodeAsSoonAsItsMapDoes) {
    AddressSpaces spaces;
    const std::string own = fmt::format("/tmp/perf-{}.map", ::getpid());
    CodeMapping made = mapping(0x7000, 0x1000, "//anon");
    made.pid = ::getpid();
    spaces.add(made);
    EXPECT_EQ(spaces.frame(made.pid, 0x7010), "[unknown] (compiled at run time)");
    std::ofstream(own) << "7010 10 py::f:a.py\n";
    EXPECT_EQ(spaces.frame(made.pid, 0x7010), "py::f:a.py (compiled at run time)");
    std::ofstream(own, std::ios::app) << "7020 10 py::g:a.py\n";
    EXPECT_EQ(spaces.frame(made.pid, 0x7020), "py::g:a.py (compiled at run time)");
    std::ofstream(own) << "7040 1 h\n";  // another map
    EXPECT_EQ(spaces.frame(made.pid, 0x7040), "h (compiled at run time)");
    EXPECT_EQ(spaces.frame(made.pid, 0x7010), "[unknown] (compiled at run time)");
    ::unlink(own.c_str());
}

TEST(MapsFile, ListsMappingsOfCode) {
    const traces::TemporaryFolder folder;
    const std::string path = folder / "maps";
    std::ofstream(path) << "55d0-55d1 r--p 00000000 08:01 77   /usr/bin/a b\n"
                           "55d1-55d4 r-xp 00001000 08:01 77   /usr/bin/a b\n"
                           "7f00-7f10 rwxp 00000000 00:00 0 \n"
                           "7f20-7f30 r-xp 00000000 08:01 78   /lib/gone.so (deleted)\n"
                           "7f40-7f50 r-xp 00000000 00:00 0    [vdso]\n"
                           "7f60-7f50 r-xp 00000000 00:00 0    [backwards]\n"
                           "7f70-7f80 r-x\n7f70-7f80 r-xp\n7f70-7f80 r-xp 0\n7f70\n\nx-y r-xp 0 0:0 0\n"
                           "7f90-7fa0 r-xp 00000000 08:01";
    const std::vector<CodeMapping> found = read_maps_file(path, 7, MonotonicTime(3));
    ASSERT_EQ(found.size(), 5U);
    EXPECT_EQ(found[0].start, 0x55D1U);
    EXPECT_EQ(found[0].size, 3U);
    EXPECT_EQ(found[0].offset, 0x1000U);
    EXPECT_EQ(found[0].file, "/usr/bin/a b");
    EXPECT_EQ(found[0].pid, 7);
    EXPECT_EQ(found[0].time, MonotonicTime(3));
    EXPECT_EQ(found[1].file, "");
    EXPECT_EQ(found[2].file, "/lib/gone.so");
    EXPECT_EQ(found[3].file, "[vdso]");
    EXPECT_EQ(found[4].file, "");  // the line was cut
    EXPECT_TRUE(read_maps_file(folder / "none", 7, MonotonicTime(0)).empty());
}

TEST(PerfRefusal, GivesAdviceByItsError) {
    using ::testing::HasSubstr;
    EXPECT_THAT(perf_refusal(EACCES, false).reason, HasSubstr("refuses perf events (Permission denied)"));
    EXPECT_THAT(perf_refusal(EACCES, false).advice, HasSubstr("kernel.perf_event_paranoid=2"));
    EXPECT_THAT(perf_refusal(EPERM, false).advice, HasSubstr("--cap-add PERFMON"));
    EXPECT_THAT(perf_refusal(EMFILE, false).advice, HasSubstr("ulimit -n"));
    EXPECT_THAT(perf_refusal(ENOSYS, false).reason, HasSubstr("no perf events"));
    EXPECT_EQ(perf_refusal(ENOSYS, false).advice, "");
    EXPECT_EQ(perf_refusal(EINVAL, false).advice, "");
    EXPECT_THAT(perf_refusal(EPERM, true).advice, HasSubstr("kernel.perf_event_mlock_kb"));
    EXPECT_EQ(perf_refusal(ENOMEM, true).advice, "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
