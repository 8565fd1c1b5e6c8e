// SPDX-License-Identifier: Apache-2.0
// An access that the CPU refuses is put down to the thread that made it, whatever the translator made of the instruction.
// Each row runs in a process of its own, as in misaligned_test.cpp; hidden ([.]).
#include "fault_child.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace {

/// %rd2 is the end of what may be accessed. %r1: thread; %p1: thread 13, %p2: threads from 8 on, which nobody knows before.
const char* const prologue = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 end)
{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<16>;
    .shared .align 16 .b8 window[4096];
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [end];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, window;
    setp.eq.u32 %p1, %r1, 13;
    cvt.u32.u64 %r3, %rd2;
    and.b32 %r3, %r3, 8;
    add.u32 %r3, %r3, 8;
    setp.ge.u32 %p2, %r1, %r3;
    mov.u32 %r3, 3;
    mov.u32 %r4, 4;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    mov.u64 %rd8, 0;
    mov.u16 %h1, 7;
)";

/// Uses what was loaded.
const char* const epilogue = R"(
    add.u32 %r5, %r5, %r6;
    cvt.u32.u64 %r6, %rd8;
    add.u32 %r5, %r5, %r6;
    mul.wide.u32 %rd9, %r1, 4;
    add.u64 %rd9, %rd9, %rd1;
    st.global.u32 [%rd9], %r5;
    ret;
}
)";

struct Row {
    const char* what;
    std::string body;
    int stride = 0;     ///< of the addresses; 0: only thread 13's is behind the end
    int first = 13;     ///< thread whose address is the end
    int from = 0;       ///< first thread that executes the access
    bool all = false;   ///< all threads access the end
    /// LLVM may cut the load in two (AVX2: both give their even words to one shuffle), and both parts say that they are the whole:
    /// then the step's threads are named.
    bool may_be_cut = false;
    /// AArch64 has no accesses under masks and none of eight vectors: parts of what was noted, for which the step's threads are
    /// named.
    bool in_parts = false;
    int reader = -1; ///< thread that narrow steps hand thread 13's address to
};

/// Thread `first` is the first behind the end.
Row in_steps(const char* what, int stride, int first, const std::string& access, int from = 0) {
    return {what,
            "mul.wide.s32 %rd3, %r1, " + std::to_string(stride) + "; add.u64 %rd3, %rd3, %rd2; sub.u64 %rd3, %rd3, " +
                std::to_string(stride * first) + "; " + access,
            stride, first, from};
}

Row halves_used(Row row) {
    row.may_be_cut = true;
    return row;
}

Row in_parts(Row row) {
    row.in_parts = true;
    return row;
}

Row handed_on(int reader, Row row) {
    row.reader = reader;
    return row;
}

/// %rd3: addresses that follow no rule; only thread 13's is behind the end.
std::string scattered(const std::string& access) {
    return "shl.b32 %r7, %r1, 5; selp.s32 %r7, 64, %r7, %p1; sub.s32 %r7, %r7, 1024; @%p1 mov.u32 %r7, 64; "
           "cvt.s64.s32 %rd3, %r7; add.u64 %rd3, %rd3, %rd2; " +
           access;
}

/// %r7: likewise in shared memory.
std::string in_shared(const std::string& access) {
    return "shl.b32 %r7, %r1, 5; @%p1 mov.u32 %r7, 8192; add.u32 %r7, %r7, %r2; " + access;
}

const std::string load = "ld.global.u32 %r5, [%rd3];";

const Row rows[] = {
    in_steps("contiguous", 4, 5, load),
    in_steps("contiguous, later", 4, 27, load),
    in_parts(in_steps("contiguous store", 4, 21, "st.global.u32 [%rd3], %r3;")),
    in_steps("contiguous bytes", 1, 9, "st.global.u8 [%rd3], %h1;"),
    in_steps("contiguous doubles", 8, 12, "ld.global.u64 %rd8, [%rd3]; shr.u64 %rd7, %rd8, 17; xor.b64 %rd8, %rd8, %rd7;"),
    halves_used(in_steps("halves of contiguous doubles", 8, 12, "ld.global.u64 %rd8, [%rd3];")),
    in_parts(in_steps("vectors", 16, 3, "ld.global.v4.u32 {%r5,%r6,%r5,%r6}, [%rd3];")),
    in_parts(in_steps("vector stores", 8, 11, "st.global.v2.u32 [%rd3], {%r3,%r4};")),
    in_parts(in_steps("guarded", 4, 5, "@%p2 " + load, 8)),
    in_parts(in_steps("guarded store", 4, 5, "@%p2 st.global.u32 [%rd3], %r3;", 8)),
    in_steps("stride 8", 8, 7, load),
    in_steps("stride 8, store", 8, 7, "st.global.u32 [%rd3], %r3;"),
    in_steps("stride 256", 256, 6, load),
    {"all at one place", "mov.u64 %rd3, %rd2; " + load, 0, 0, 0, true},
    {"all at one place, store", "st.global.u32 [%rd2], %r3;", 0, 0, 0, true},
    {"gather", scattered(load)},
    {"gather of bytes", scattered("ld.global.u8 %r5, [%rd3];")},
    {"gather of halves", scattered("ld.global.u16 %r5, [%rd3];")},
    {"gather of doubles", scattered("ld.global.u64 %rd8, [%rd3];")},
    {"gather of pairs", scattered("ld.global.v2.u32 {%r5,%r6}, [%rd3];")},
    {"gather of fours", scattered("ld.global.v4.u32 {%r5,%r6,%r5,%r6}, [%rd3];")},
    {"gather, guarded", scattered("@%p2 " + load)},
    {"gather by index", "mov.u32 %r7, -64; @%p1 mov.u32 %r7, 64; mul.wide.s32 %rd3, %r7, 4; add.u64 %rd3, %rd3, %rd2; " + load},
    {"strong gather", scattered("ld.relaxed.gpu.global.v2.u32 {%r5,%r6}, [%rd3];")},
    {"no canonical address", scattered("@%p1 mov.u64 %rd3, 0x7f00000000000000; " + load)},
    {"scatter", scattered("st.global.u32 [%rd3], %r3;")},
    {"scatter of bytes", scattered("st.global.u8 [%rd3], %r3;")},
    {"scatter of doubles", scattered("st.global.u64 [%rd3], %rd8;")},
    {"scatter, guarded", scattered("@%p2 st.global.u32 [%rd3], %r3;")},
    {"atomic", scattered("atom.global.add.u32 %r5, [%rd3], %r3;")},
    {"atomic, guarded", scattered("@%p2 red.global.max.u32 [%rd3], %r3;")},
    {"atomic swap", scattered("atom.global.cas.b32 %r5, [%rd3], %r3, %r4;")},
    {"atomic float", scattered("mov.f32 %f1, 0f3F800000; red.global.add.f32 [%rd3], %f1;")},
    {"atomic at one place", "red.global.add.u32 [%rd2], %r3;", 0, 0, 0, true},
    {"shared", in_shared("ld.shared.u32 %r5, [%r7];")},
    {"shared atomic", in_shared("atom.shared.add.u32 %r5, [%r7], %r3;")},
    handed_on(20, {"rows of matrices", in_shared("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r3,%r4}, [%r7];")}),
    {"copy", scattered("mad.lo.u32 %r7, %r1, 16, %r2; cp.async.ca.shared.global [%r7], [%rd3], 16;")},
    {"padded copy", scattered("mad.lo.u32 %r7, %r1, 16, %r2; cp.async.ca.shared.global [%r7], [%rd3], 16, %r4;")},
};

/// The end of a page that inaccessible ones follow.
std::uint64_t end_of_memory() {
    constexpr std::size_t pages = 16;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_READ | PROT_WRITE) != 0) return 0;
    return reinterpret_cast<std::uint64_t>(memory) + page;
}

/// The thread that the report must name. The order of accesses within an instruction is free: the address tells which of
/// those behind the end it was.
int expected_thread(const Row& row, const std::string& said) {
    const std::size_t at = said.find("illegal address 0x"), end = said.find("\nend ");
    if (row.stride == 0 || at == said.npos || end == said.npos) return row.first;
    const std::uint64_t address = std::stoull(said.substr(at + 18), nullptr, 16);
    const std::uint64_t distance = address - std::stoull(said.substr(end + 5));
    return std::max(row.first + int(distance) / row.stride, row.from);
}

/// "threads (8,0,0) to (15,0,0)", with `thread` among them.
bool names_step_of(int thread, const std::string& said) {
    int first = 0, last = 0;
    const std::size_t at = said.find("threads (");
    return at != said.npos && std::sscanf(said.c_str() + at, "threads (%d,0,0) to (%d,0,0)", &first, &last) == 2 && first <= thread &&
           thread <= last;
}

/// `under_masks`: every access is. `in_quick_code`: stores of whole steps may be parts, too.
void check_rows(const std::function<void()>& configure, bool under_masks = false, bool in_quick_code = false) {
    utsname host{};
    const bool has_parts = uname(&host) == 0 && std::strcmp(host.machine, "aarch64") == 0;
    const int sve_bytes = prctl(PR_SVE_GET_VL); // in the lower half
    const bool has_sve_code = sve_bytes > 0 && (sve_bytes & 0xffff) > 16; // whose accesses are not decoded: the step's threads
    const auto line = 1 + std::count(prologue, prologue + std::strlen(prologue), '\n');
    for (const Row& row : rows) {
        const std::string text = std::string(prologue) + row.body + epilogue;
        const std::string said = driver_test::said_by_child([&] {
            configure();
            const std::uint64_t end = end_of_memory();
            dprintf(STDERR_FILENO, "\nend %llu\n", static_cast<unsigned long long>(end));
            return driver_test::code_of_launch(text, 0, end);
        });
        INFO(row.what << ":\n" << said);
        CHECK(said.find("\ncode 700\n") != std::string::npos);
        CHECK(said.find("kernel k: illegal address") != std::string::npos);
        CHECK(said.find("<ptx> PTX line " + std::to_string(line) + ", block (0,0,0), ") != std::string::npos);
        // Intel's CPUs name an address inside of what a vector store was refused; the first thread behind the end is right then.
        const auto names = [&](int thread) {
            const std::string name = "thread (" + std::to_string(thread) + ",0,0)";
            return said.find(name + "\n") != std::string::npos || said.find(name + ", in quick code\n") != std::string::npos;
        };
        const bool one = names(expected_thread(row, said)) || (row.stride != 0 && names(std::max(row.first, row.from))) || names(row.reader);
        // Under a mask that is known at run time only, the step's threads are named.
        const bool all = said.find("thread (0,0,0) and ") != std::string::npos || said.find("threads (0,0,0) to ") != std::string::npos;
        const bool in_parts = row.in_parts || ((under_masks || has_sve_code) && row.stride != 0);
        const bool is_part = (has_parts && in_parts) || (in_quick_code && row.stride != 0);
        const bool part = is_part && names_step_of(expected_thread(row, said), said);
        CHECK((row.all ? all : one || (row.may_be_cut && all) || part));
    }
}

} // namespace

TEST_CASE("fault: thread", "[.]") { check_rows([] {}); }

TEST_CASE("fault: thread_of_32_lanes", "[.]") {
    check_rows([] { setenv("PTARMIGAN_LANES", "32", 1); });
}

TEST_CASE("fault: thread_of_quick_code", "[.]") {
    check_rows([] {
        setenv("PTARMIGAN_LANES", "32", 1);
        setenv("PTARMIGAN_TIER", "quick", 1);
    }, false, true);
}

TEST_CASE("fault: thread_without_gathers", "[.]") {
    check_rows([] { setenv("PTARMIGAN_TARGET", "x86-64-v3", 1); });
}

TEST_CASE("fault: thread_by_program_counters", "[.]") {
    const auto configure = [] {
        setenv("PTARMIGAN_DIVERGENCE", "pcs", 1);
        setenv("PTARMIGAN_LANES", "8", 1);
    };
    check_rows(configure, true);
}
