#include "profiler/stacks/symbols.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gelf.h>
#include <libelf.h>

#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {
namespace {

constexpr std::size_t kMostMapLines = 1'000'000;

// "_Z3hoti" -> "hot(int)". Other names are as they are in the program, even if they could mean a type ("f").
std::string demangled(const char* name) {
    if (std::string_view(name).substr(0, 2) != "_Z") return name;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
    return status == 0 && text != nullptr ? text.get() : name;
}

struct Segment {
    std::uint64_t address = 0, offset = 0, size = 0;
};

std::vector<Segment> code_segments(Elf* elf) {
    std::vector<Segment> segments;
    std::size_t count = 0;
    if (::elf_getphdrnum(elf, &count) != 0) return segments;
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr header;
        if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) continue;
        if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0)
            segments.push_back({header.p_vaddr, header.p_offset, header.p_filesz});
    }
    return segments;
}

// An ELF file that is open for reading.
class ElfFile {
  public:
    // A path may have become a pipe or a device since: opening it does not wait.
    explicit ElfFile(const std::string& path)
        : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        ::elf_version(EV_CURRENT);
        if (file_) elf_.reset(::elf_begin(file_.get(), ELF_C_READ, nullptr));
        if (elf_ != nullptr && ::elf_kind(elf_.get()) != ELF_K_ELF) elf_.reset();
    }
    explicit operator bool() const { return elf_ != nullptr; }
    Elf* get() const { return elf_.get(); }

    // Calls visit(section, header) for the sections of a type.
    template <typename Visit>
    void each_section(std::uint32_t type, Visit visit) const {
        Elf_Scn* section = nullptr;
        while ((section = ::elf_nextscn(elf_.get(), section)) != nullptr) {
            GElf_Shdr header;
            if (::gelf_getshdr(section, &header) != nullptr && header.sh_type == type) visit(section, header);
        }
    }

  private:
    traces::store::FileDescriptor file_;
    std::unique_ptr<Elf, decltype(&::elf_end)> elf_{nullptr, &::elf_end};
};

// Calls visit(address, size, name) for the functions in the tables of a type.
template <typename Visit>
void each_function(const ElfFile& file, std::uint32_t table, Visit visit) {
    file.each_section(table, [&](Elf_Scn* section, const GElf_Shdr& header) {
        Elf_Data* data = ::elf_getdata(section, nullptr);
        if (data == nullptr || header.sh_entsize == 0) return;
        for (std::size_t i = 0; i < data->d_size / header.sh_entsize; ++i) {
            GElf_Sym symbol;
            if (::gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
            const int type = GELF_ST_TYPE(symbol.st_info);
            if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
            const char* name = ::elf_strptr(file.get(), header.sh_link, symbol.st_name);
            if (name != nullptr && *name != '\0') visit(symbol.st_value, symbol.st_size, name);
        }
    });
}

// The file with the symbols that were taken out of this one, by its build id; empty: it has none. Source:
// GDB's manual, "Debugging Information in Separate Files".
std::string debug_file(const ElfFile& file) {
    std::string path;
    file.each_section(SHT_NOTE, [&](Elf_Scn* section, const GElf_Shdr&) {
        Elf_Data* data = ::elf_getdata(section, nullptr);
        if (data == nullptr || !path.empty()) return;
        GElf_Nhdr note;
        std::size_t at = 0, name = 0, text = 0;
        while ((at = ::gelf_getnote(data, at, &note, &name, &text)) > 0) {
            if (note.n_type != NT_GNU_BUILD_ID || note.n_descsz < 2) continue;
            const auto* id = static_cast<const unsigned char*>(data->d_buf) + text;
            path = fmt::format("/usr/lib/debug/.build-id/{:02x}/", id[0]);
            for (std::size_t i = 1; i < note.n_descsz; ++i) path += fmt::format("{:02x}", id[i]);
            path += ".debug";
            return;
        }
    });
    return path;
}

}  // namespace

Symbols Symbols::of_elf(const std::string& path) {
    Symbols symbols;
    const ElfFile file(path);
    if (!file) return symbols;
    const std::vector<Segment> segments = code_segments(file.get());
    const auto add = [&](std::uint64_t address, std::uint64_t size, const char* name) {
        for (const Segment& segment : segments) {
            if (address < segment.address || address - segment.address >= segment.size) continue;
            symbols.functions_.push_back({address - segment.address + segment.offset, size, name});
            return;
        }
    };
    each_function(file, SHT_SYMTAB, add);
    if (symbols.empty()) {
        if (const std::string debug = debug_file(file); !debug.empty()) {
            if (const ElfFile separate(debug); separate) each_function(separate, SHT_SYMTAB, add);
        }
    }
    if (symbols.empty()) each_function(file, SHT_DYNSYM, add);
    symbols.put_in_order(0);
    return symbols;
}

std::uintmax_t Symbols::add_perf_map(const std::string& path, std::uintmax_t from) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error || bytes == from || functions_.size() >= kMostMapLines) return from;
    if (bytes < from) {
        functions_.clear();
        from = 0;
    }
    std::ifstream map(path);
    map.seekg(static_cast<std::streamoff>(from));
    const std::size_t sorted = functions_.size();
    std::string line;
    // The last line has no end yet if the program is writing it.
    while (functions_.size() < kMostMapLines && std::getline(map, line) && !map.eof()) {
        from += line.size() + 1;
        Function function;
        const char *at = line.data(), *end = at + line.size();
        const auto number = [&](std::uint64_t& into) {
            const auto [next, failure] = std::from_chars(at, end, into, 16);
            if (failure != std::errc() || next == end || *next != ' ') return false;
            at = next + 1;
            return true;
        };
        if (!number(function.start) || !number(function.size) || at == end) continue;
        function.name.assign(at, end);
        functions_.push_back(std::move(function));
    }
    put_in_order(sorted);
    return from;
}

void Symbols::put_in_order(std::size_t sorted) {
    const auto before = [](const Function& a, const Function& b) { return a.start < b.start; };
    const auto added = functions_.begin() + static_cast<std::ptrdiff_t>(sorted);
    std::stable_sort(added, functions_.end(), before);
    std::inplace_merge(functions_.begin(), added, functions_.end(), before);
    // Of several names of one function, the first.
    functions_.erase(std::unique(functions_.begin(), functions_.end(),
                                 [](const Function& a, const Function& b) { return a.start == b.start; }),
                     functions_.end());
}

std::string Symbols::at(std::uint64_t offset) const {
    auto function = std::upper_bound(functions_.begin(), functions_.end(), offset,
                                     [](std::uint64_t o, const Function& f) { return o < f.start; });
    if (function == functions_.begin()) return {};
    --function;
    if (function->size > 0 && offset - function->start >= function->size) return {};
    return demangled(function->name.c_str());
}

}  // namespace shardscope::profiler
