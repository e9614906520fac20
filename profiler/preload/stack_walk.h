// Walks the stack of an interrupted thread by frame pointers, in its signal handler. Reads memory directly
// only where the thread's live stack is, which is found page by page from the stack pointer up, whatever
// stack that is (the thread's, a fiber's, that of signals); elsewhere, where code without frame pointers
// leads, through the kernel, which refuses what is not mapped. No heap, no lock, no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

namespace shardscope::profiler::preload {

struct Registers {
    std::uintptr_t pc = 0, sp = 0, fp = 0;
};

inline Registers registers_of(const ucontext_t& context) {
    Registers r;
#if defined(__x86_64__)
    r.pc = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
    r.sp = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
    r.fp = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RBP]);
#elif defined(__aarch64__)
    r.pc = context.uc_mcontext.pc;
    r.sp = context.uc_mcontext.sp;
    r.fp = context.uc_mcontext.regs[29];
#else
    (void)context;
#endif
    return r;
}

// A return address as code is numbered: without the signature of ARM's pointer authentication.
inline std::uint64_t plain_address(std::uintptr_t address) {
#if defined(__aarch64__)
    return address & 0xFFFF'FFFF'FFFF;
#else
    return address;
#endif
}

// What a function with a frame pointer leaves at it, on both processors.
struct FrameRecord {
    std::uintptr_t caller;   // the caller's frame pointer
    std::uintptr_t address;  // where it continues
};

// The mapped memory from an address of the live stack upwards, as far as it has been looked at.
class LiveStack {
  public:
    explicit LiveStack(std::uintptr_t at) : begin_(at), end_((at | (kPage - 1)) + 1) {}

    // Whether the record is in it. Not if it is far from what is known.
    bool has(std::uintptr_t record) {
        const std::uintptr_t end = record + sizeof(FrameRecord);
        if (record < begin_ || end < record || (end > end_ && end - end_ > kFar)) return false;
        while (end_ < end) {
            if (!is_readable(end_)) return false;
            end_ += kPage;
        }
        return true;
    }

  private:
    static constexpr std::uintptr_t kPage = 4096;  // the smallest there is
    static constexpr std::uintptr_t kFar = 16 * kPage;

    // The kernel reads the mask before it looks at what to do with it, which is nothing that exists.
    static bool is_readable(std::uintptr_t address) {
        return ::syscall(SYS_rt_sigprocmask, -1L, address, nullptr, 8L) != 0 && errno == EINVAL;
    }

    std::uintptr_t begin_, end_;
};

inline bool read_elsewhere(std::uintptr_t at, FrameRecord* record) {
    const iovec here{record, sizeof *record};
    const iovec there{reinterpret_cast<void*>(at), sizeof *record};  // NOLINT(performance-no-int-to-ptr)
    // syscall() takes whole words, also where an int would do.
    return ::syscall(SYS_process_vm_readv, long{::getpid()}, &here, 1L, &there, 1L, 0L) ==
           static_cast<long>(sizeof *record);
}

// Fills `addresses`, innermost first, and returns how many there are. Changes errno.
inline std::uint32_t walk_stack(const Registers& from, std::uint64_t* addresses, std::uint32_t most) {
    constexpr int kMostElsewhere = 32;  // each of these costs some microseconds
    std::uint32_t count = 0;
    addresses[count++] = from.pc;
    LiveStack stack(from.sp);
    int elsewhere = 0;
    for (std::uintptr_t fp = from.fp; count < most && fp != 0 && fp % sizeof fp == 0;) {
        FrameRecord record;
        if (stack.has(fp)) {
            record = *reinterpret_cast<const FrameRecord*>(fp);  // NOLINT(performance-no-int-to-ptr)
        } else if (++elsewhere > kMostElsewhere || !read_elsewhere(fp, &record)) {
            break;
        }
        if (record.address == 0) break;
        addresses[count++] = plain_address(record.address);
        // Callers are further up, unless they are on another stack, which a signal's handler has left.
        if (record.caller == fp || (record.caller < fp && stack.has(record.caller))) break;
        fp = record.caller;
    }
    return count;
}

}  // namespace shardscope::profiler::preload
