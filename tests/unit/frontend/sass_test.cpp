// SPDX-License-Identifier: Apache-2.0
// Machine code: the table, the disassembler beside NVIDIA's, cubins that are damaged, modules that are lifted.
#include "frontend/module_loader.h"
#include "frontend/sass/cubin.h"
#include "frontend/sass/lift.h"
#include "frontend/sass/loop_entries.h"
#include "frontend/sass/opcode_table.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace ptarmigan;

namespace {

const std::string source_folder = PTARMIGAN_SOURCE_DIR;

std::vector<std::uint8_t> read_bytes(const std::string& path) {
    std::ifstream file(source_folder + "/" + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

const char* const cubins[] = {"vector_add", "block_reduce_shuffle", "atomic_mix"};

std::string cubin_path(const char* name) {
    return "tests/programs/cubin/" + std::string(name) + ".sm_80.cubin";
}

/// An instruction in the place of another.
struct Patch {
    std::uint32_t address;
    std::uint64_t low, high;
};

/// A kernel of a cubin with other instructions in it: false with the reason in `why` where it is not lifted.
bool try_patched(const char* path, const char* kernel, const std::vector<Patch>& patches, std::string& text, std::string& why) {
    std::vector<std::uint8_t> image = read_bytes(path);
    sass::Cubin cubin;
    std::string error;
    REQUIRE(sass::read_cubin(image, cubin, error));
    const auto patched = std::find_if(cubin.kernels.begin(), cubin.kernels.end(), [&](const auto& one) { return one.name == kernel; });
    REQUIRE(patched != cubin.kernels.end());
    const std::span<const std::uint8_t> code = cubin.sections[patched->text].bytes;
    for (const Patch& patch : patches) {
        REQUIRE(patch.address + 16 <= code.size());
        std::uint8_t* place = &image[std::size_t(code.data() - image.data()) + patch.address];
        std::memcpy(place, &patch.low, 8);
        std::memcpy(place + 8, &patch.high, 8);
    }
    unsigned architecture = 0;
    const auto machine_code = sass::MachineCode::read({image.begin(), image.end()}, architecture, error);
    REQUIRE(machine_code);
    return machine_code->lift(*machine_code->find_kernel(kernel), text, why);
}

/// What becomes of a kernel of a cubin with other instructions in it.
std::string lift_patched(const char* path, const char* kernel, const std::vector<Patch>& patches) {
    std::string text, why;
    const bool is_lifted = try_patched(path, kernel, patches, text, why);
    INFO(why);
    REQUIRE(is_lifted);
    const auto loader = ptx::ModuleLoader::load(text, path, {.bind_all_bodies = true});
    INFO(loader->diagnostics().render_all());
    CHECK(loader->ok());
    return text;
}

/// Whether the parts are in the text from there on, in this order.
bool holds(const std::string& text, const std::vector<std::string>& parts, std::size_t from = 0) {
    for (const std::string& part : parts) {
        from = text.find(part, from);
        if (from == std::string::npos) {
            UNSCOPED_INFO("not found: " << part);
            return false;
        }
        from += part.size();
    }
    return true;
}

const char* const tensor_copies = "tests/programs/cubin/tma_gemm.sm_90.cubin";
/// USETSHMSZ 0x3900, which code has whose copies are the warp's, in the place of a NOP behind the end.
constexpr Patch give_memory_back(std::uint32_t address) {
    return {address, 0x00000039000079c9, 0x000e620008000000};
}

} // namespace

TEST_CASE("sass: every row of the table can be read, and no opcode stands twice") {
    for (const std::string& fault : sass::table_faults()) FAIL_CHECK(fault);
    CHECK(sass::all_forms().size() > 100);
}

TEST_CASE("sass: rows tell what is asked of them") {
    for (const sass::Form& form : sass::all_forms()) {
        INFO(form.name);
        // Copies by uniform registers; what only sm_90's asynchronous part has; what may name another block's memory.
        const bool is_tensor = form.mnemonic.rfind("UTMA", 0) == 0 && form.mnemonic != "UTMACMDFLUSH";
        const bool is_bulk = form.mnemonic.rfind("UBLK", 0) == 0;
        const bool is_object = form.mnemonic == "SYNCS";
        const bool is_product = form.mnemonic.find("GMMA") != form.mnemonic.npos || form.mnemonic == "WARPGROUP";
        if (form.rule.empty()) continue;
        CHECK(((form.traits & sass::COPIES) != 0) == (is_tensor || is_bulk));
        CHECK(((form.traits & sass::SIGNALS) != 0) == (form.mnemonic == "UTMALDG"));
        CHECK(((form.traits & sass::ASYNCHRONOUS) != 0) == (is_tensor || is_object || is_product));
        if (is_tensor || is_bulk || is_object) CHECK((form.traits & sass::NAMES_CLUSTER) != 0);
    }
}

TEST_CASE("sass: the results that rows name are those that rules write") {
    for (const unsigned architecture : {75u, 80u, 90u, 100u, 120u}) {
        const std::vector<std::uint8_t> image = read_bytes("tests/programs/cubin/atomic_mix.sm_" + std::to_string(architecture) + ".cubin");
        sass::Cubin cubin;
        std::string error;
        REQUIRE(sass::read_cubin(image, cubin, error));
        const std::ptrdiff_t first = cubin.sections[cubin.kernels[0].text].bytes.data() - image.data();
        std::ifstream file(source_folder + "/tests/data/sass_sm_" + std::to_string(architecture) + ".txt");
        std::string line;
        unsigned lifted = 0;
        while (std::getline(file, line)) {
            unsigned long long high = 0, low = 0;
            REQUIRE(std::sscanf(line.c_str(), "%16llx%16llx", &high, &low) == 2);
            std::vector<std::uint8_t> changed = image;
            std::memcpy(&changed[std::size_t(first)], &low, 8);
            std::memcpy(&changed[std::size_t(first) + 8], &high, 8);
            unsigned found = 0;
            const auto code = sass::MachineCode::read({changed.begin(), changed.end()}, found, error);
            REQUIRE(code);
            std::string text, why;
            lifted += code->lift(code->cubin().kernels[0], text, why);
            if (why.find("a result that its row does not name") != why.npos) FAIL_CHECK(line << ": " << why);
        }
        CHECK(lifted > 200);
    }
}

TEST_CASE("sass: instructions are printed as NVIDIA's disassembler prints them") {
    // One instruction of each opcode form and choice of modifiers in what ptxas 13.0 makes of tests/programs/ptx and
    // of PTX by Triton and Numba, and in a sample of PyTorch and cuBLAS.
    for (const unsigned architecture : {75u, 80u, 90u, 100u, 120u}) {
        std::ifstream file(source_folder + "/tests/data/sass_sm_" + std::to_string(architecture) + ".txt");
        std::string line;
        unsigned count = 0;
        while (std::getline(file, line)) {
            sass::Code code;
            char text[256] = {};
            unsigned long long high = 0, low = 0;
            REQUIRE(std::sscanf(line.c_str(), "%16llx%16llx %255[^\n]", &high, &low, text) == 3);
            code.high = high;
            code.low = low;
            sass::Instruction instruction;
            CHECK(sass::decode(code, 0, instruction, architecture));
            CHECK(sass::disassemble(instruction) == text);
            ++count;
        }
        CHECK(count > 300);
    }
}

TEST_CASE("sass: an instruction with a bit that its row does not name is refused by name") {
    // F2FP of sm_90 packs f32 to f16; with bits 73, 74 and 89 it unpacks E4M3, which with bit 82 no row has.
    const sass::Code packs{0x0000003aff1d723e, 0x000fe200000000ff}, unpacks{0x0000003aff1d723e, 0x000fe200020406ff};
    sass::Instruction instruction;
    CHECK(sass::decode(packs, 0, instruction, 90));
    CHECK_FALSE(sass::decode(unpacks, 0, instruction, 90));
    CHECK(sass::describe(instruction) == "F2FP.F16.E4M3.UNPACK_B with bits 82");
    // What no row has is named all the same: a product of sm_100's tensor memory.
    CHECK_FALSE(sass::decode({0x0c0075ea, 0x0001e20008200009}, 0, instruction, 100));
    CHECK(sass::describe(instruction) == "UTCHMMA, opcode 0x5ea");
    // DSETP's comparisons 0 and 15 are MIN and MAX, a warp barrier's operand is elsewhere on sm_90.
    CHECK(sass::decode({0x000000120200722a, 0x003fde000390f000}, 0, instruction, 90));
    CHECK(instruction.has("MAX"));
}

TEST_CASE("sass: cubins become modules that the front end takes") {
    for (const char* name : cubins) {
        INFO(name);
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(cubin_path(name)), lifted, error));
        CHECK(lifted.architecture == 80);
        CHECK(lifted.refused.empty());
        const auto loader = ptx::ModuleLoader::load(lifted.text, name, {.bind_all_bodies = true, .max_errors = 20});
        INFO(loader->diagnostics().render_all());
        CHECK(loader->ok());
        CHECK(loader->module().find_function(name).has_value());
    }
}

TEST_CASE("sass: kernels are lifted when they are asked for, alone") {
    for (const char* path : {"tests/programs/cubin/combined_atomics.sm_90.cubin", "tests/programs/cubin/function_pointers.sm_90.cubin"}) {
        INFO(path);
        const std::vector<std::uint8_t> image = read_bytes(path);
        unsigned architecture = 0;
        std::string error;
        const auto code = sass::MachineCode::read({image.begin(), image.end()}, architecture, error);
        REQUIRE(code);
        CHECK(architecture == 90);
        sass::LiftedModule whole;
        REQUIRE(sass::lift_cubin(image, whole, error));
        const auto declared = ptx::ModuleLoader::load(code->take_declarations(), path, {});
        REQUIRE(declared->ok());
        CHECK(code->lifted_kernels() == 0);
        const auto& variables = declared->module().variables;
        REQUIRE(!code->cubin().kernels.empty());
        for (const sass::CubinKernel& kernel : code->cubin().kernels) {
            INFO(kernel.name);
            CHECK(code->find_kernel(kernel.name) == &kernel);
            const auto id = declared->module().find_function(std::string(kernel.name));
            REQUIRE(id.has_value());
            CHECK_THROWS_AS(declared->body(*id), ptx::DiagnosticError); // nobody takes it for one without effects
            std::string text, why;
            REQUIRE(code->lift(kernel, text, why));
            const std::string entry = text.substr(text.find(".visible .entry"));
            CHECK(whole.text.find(entry) != std::string::npos);
            const auto alone = ptx::ModuleLoader::load(text, path, {.bind_all_bodies = true});
            INFO(alone->diagnostics().render_all());
            REQUIRE(alone->ok());
            REQUIRE(alone->module().variables.size() == variables.size());
            for (std::size_t i = 0; i < variables.size(); ++i) CHECK(alone->module().variables[i].name == variables[i].name);
        }
        CHECK(code->lifted_kernels() == code->cubin().kernels.size());
    }
}

TEST_CASE("sass: entries of loops that have several") {
    using Edges = std::vector<std::vector<unsigned>>;
    using Blocks = std::vector<unsigned>;
    // 1 and 2 are the rounds' beginnings; 3 leads back to both.
    const sass::LoopEntries loop = sass::find_loop_entries(Edges{{1, 2}, {2}, {3}, {1, 2, 4}, {}});
    REQUIRE(loop.loops == std::vector<Blocks>{{1, 2}});
    CHECK(loop.loop_of == std::vector<int>{-1, 0, 0, -1, -1});
    CHECK(loop.back_edges == std::set<std::pair<unsigned, unsigned>>{{1, 2}, {3, 1}, {3, 2}});
    CHECK(sass::find_loop_entries(Edges{{1}, {2}, {1, 3}, {}}).loops.empty());
    CHECK(sass::find_loop_entries(Edges{{0, 1}, {}}).loops.empty());
    // A loop with one entry, and in it one that is entered at 2 and at 3.
    CHECK(sass::find_loop_entries(Edges{{1}, {2, 3}, {3}, {2, 4}, {1, 5}, {}}).loops == std::vector<Blocks>{{2, 3}});
    // Nobody comes to 3, which would be another way into the loop.
    CHECK(sass::find_loop_entries(Edges{{1}, {2}, {1}, {2}}).loops.empty());
    CHECK(sass::find_loop_entries({}).loops.empty());
}

TEST_CASE("sass: a call over a branch back is a jump") {
    // Of two loops, one in the other: as calls each would be the outer loop once more. ptxas 13 made `@P BRA` of them,
    // older ones `@!P CALL.REL` and BRA, which is patched in.
    sass::LiftedModule lifted;
    std::string error;
    REQUIRE(sass::lift_cubin(read_bytes("tests/programs/cubin/jump_call.sm_80.cubin"), lifted, error));
    CHECK(lifted.refused.empty());
    CHECK(lifted.text.find("L0_60:") != std::string::npos);
    CHECK(lifted.text.find("L1_") == std::string::npos); // no blocks of a callee
}

TEST_CASE("sass: functions that call themselves have one body, and a stack that grows") {
    for (const char* path : {"tests/programs/cubin/recursion.sm_90.cubin", "tests/programs/cubin/recursion.debug_sm_80.cubin"}) {
        INFO(path);
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(path), lifted, error));
        CHECK(lifted.refused.empty());
        CHECK(lifted.text.find("stacksave.u64") != std::string::npos);
        CHECK(lifted.text.find("setp.lt.u32") != std::string::npos);
        const auto loader = ptx::ModuleLoader::load(lifted.text, path, {.bind_all_bodies = true, .max_errors = 20});
        CHECK(loader->ok());
    }
}

TEST_CASE("sass: halves of an address become one value again") {
    sass::LiftedModule lifted;
    std::string error;
    REQUIRE(sass::lift_cubin(read_bytes(cubin_path("vector_add")), lifted, error));
    // Both loads and the store are at 64-bit products of the index, not at joined halves.
    CHECK(lifted.text.find("mad.wide.s32") != std::string::npos);
    CHECK(lifted.text.find("ld.param.b64") != std::string::npos);
    CHECK(lifted.text.find("mov.b64 %q0, {") == std::string::npos);
}

TEST_CASE("sass: the address of a byte becomes one value again") {
    for (const char* path : {"tests/programs/cubin/byte_index.sm_80.cubin", "tests/programs/cubin/byte_index.sm_90.cubin"}) {
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(path), lifted, error));
        INFO(lifted.text);
        REQUIRE(lifted.refused.empty());
        const std::size_t store = lifted.text.find("st.global.b8 ");
        REQUIRE(store != std::string::npos);
        const std::size_t place = lifted.text.find('[', store) + 1;
        const std::string name = lifted.text.substr(place, lifted.text.find(']', place) - place);
        CHECK(lifted.text.find("mov.b64 " + name + ", {") == std::string::npos);
    }
}

TEST_CASE("sass: calls of ptxas' own slow ways are statements again") {
    for (const char* path : {"tests/programs/cubin/quotients.sm_80.cubin", "tests/programs/cubin/quotients.sm_90.cubin"}) {
        INFO(path);
        const std::vector<std::uint8_t> bytes = read_bytes(path);
        const auto calls = [&](const std::vector<std::uint8_t>& cubin) {
            sass::LiftedModule lifted;
            std::string error;
            REQUIRE(sass::lift_cubin(cubin, lifted, error));
            CHECK(lifted.refused.empty());
            std::size_t count = 0;
            for (const char* statement : {"div.rn.f32", "rcp.rn.f32", "sqrt.rn.f32"})
                for (std::size_t at = 0; (at = lifted.text.find(statement, at)) != std::string::npos; ++at) ++count;
            return count;
        };
        CHECK(calls(bytes) == 9); // one for each statement
        // Functions of other names are what their code says.
        std::vector<std::uint8_t> renamed = bytes;
        const std::string name = "_slowpath";
        for (auto at = renamed.begin(); (at = std::search(at, renamed.end(), name.begin(), name.end())) != renamed.end();) *++at = 'S';
        CHECK(calls(renamed) == 0);
    }
}

TEST_CASE("sass: pairs of bf16 and of f16 are packed as what they are") {
    for (const char* path : {"tests/programs/cubin/bfloat_pack.sm_80.cubin", "tests/programs/cubin/bfloat_pack.sm_90.cubin"}) {
        INFO(path);
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(path), lifted, error));
        CHECK(lifted.refused.empty());
        const std::size_t bfloat = lifted.text.find("cvt.rn.bf16x2.f32"), half = lifted.text.find("cvt.rn.f16x2.f32");
        CHECK(bfloat != std::string::npos);
        CHECK(half != std::string::npos);
        CHECK(lifted.text.find("cvt.rn.f16x2.f32", half + 1) == std::string::npos);
    }
}

TEST_CASE("sass: an operand of 64 bits that is a constant holds the upper half") {
    // double(0x500000000) is I2F.F64.U64 d, 0x5; x % 0xffc0000000000000 begins with I2F.U64.RP d, 0xffc00000.
    for (const char* path :
         {"tests/programs/cubin/wide_constants.sm_80.cubin", "tests/programs/cubin/wide_constants.sm_90.cubin"}) {
        INFO(path);
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(path), lifted, error));
        CHECK(lifted.refused.empty());
        for (const char* type : {"cvt.rn.f64.u64", "cvt.rp.f32.u64"}) {
            const std::size_t conversion = lifted.text.find(type);
            REQUIRE(conversion != std::string::npos);
            const std::size_t source = lifted.text.find(", ", conversion) + 2;
            const std::string name = lifted.text.substr(source, lifted.text.find(';', source) - source);
            const std::string value = type[4] == 'r' && type[5] == 'n' ? "0x500000000" : "0xffc0000000000000";
            INFO(lifted.text);
            CHECK(lifted.text.find("mov.b64 " + name + ", " + value + ";") != std::string::npos);
        }
    }
}

TEST_CASE("sass: hints to the cache of copies to shared memory") {
    for (const char* path : {"tests/programs/cubin/copy_hints.sm_80.cubin", "tests/programs/cubin/copy_hints.sm_90.cubin", "tests/programs/cubin/copy_hints.sm_100.cubin"}) {
        INFO(path);
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(path), lifted, error));
        CHECK(lifted.refused.empty());
    }
}

TEST_CASE("sass: a register's address of the parameters is the bank's, where a parameter lies elsewhere in PTX") {
    // Three of 8 bytes, then 64 bytes of alignment 32, which are at 48 in the bank, that begins at 0x210, and at 32 here.
    sass::LiftedModule lifted;
    std::string error;
    REQUIRE(sass::lift_cubin(read_bytes("tests/programs/cubin/parameter_block.sm_90.cubin"), lifted, error));
    CHECK(lifted.refused.empty());
    const std::size_t asked = lifted.text.find("setp.ge.s64");
    REQUIRE(asked != std::string::npos);
    const std::string behind = lifted.text.substr(asked, 120);
    CHECK(behind.substr(0, behind.find(';')).ends_with(", 48"));
    CHECK(behind.find(", -16;") != std::string::npos);
}

TEST_CASE("sass: bar.warp.sync is one, where machine code needs none") {
    // NOP, whose mask's register .nv.info names: the ballot's result.
    for (const char* path : {"tests/programs/cubin/lanes_meet.sm_80.cubin", "tests/programs/cubin/lanes_meet.sm_90.cubin"}) {
        INFO(path);
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(path), lifted, error));
        CHECK(lifted.refused.empty());
        const std::size_t ballot = lifted.text.find("vote.sync.ballot"), store = lifted.text.find("st.global", ballot),
                          meet = lifted.text.find("bar.warp.sync", store), load = lifted.text.find("ld.global", meet);
        CHECK(load != std::string::npos);
    }
}

TEST_CASE("sass: an instruction that writes its own guard is guarded by what that was") {
    std::vector<std::uint8_t> image = read_bytes(cubin_path("vector_add"));
    sass::Cubin cubin;
    std::string error;
    REQUIRE(sass::read_cubin(image, cubin, error));
    const auto offset = std::size_t(cubin.sections[cubin.kernels[0].text].bytes.data() - image.data());
    REQUIRE((image[offset + 0x41] & 0xf0) == 0x70); // ISETP P0, by PT
    image[offset + 0x41] &= 0x0f;
    sass::LiftedModule lifted;
    REQUIRE(sass::lift_cubin(image, lifted, error));
    REQUIRE(lifted.refused.empty());
    const std::size_t kept = lifted.text.find(", %p0;");
    REQUIRE(kept != std::string::npos);
    const std::size_t line = lifted.text.rfind("mov.pred ", kept);
    REQUIRE(line != std::string::npos);
    const std::string copy = lifted.text.substr(line + 9, kept - line - 9);
    CHECK(lifted.text.find("@" + copy + " mov.pred %p0, ", kept) != std::string::npos);
}

TEST_CASE("sass: instructions of NVIDIA's libraries that ptxas does not write") {
    // In the place of vector_add's FADD R9, R4, R3, between the loads and the store.
    struct Case {
        std::uint64_t low, high;
        std::vector<std::string> lifted; ///< in this order
    };
    const Case cases[] = {
        // P2R.B2 R9, PR, R9, 0x5: two predicates into the third byte, whose other bits stay.
        {0x0000000509097803, 0x000fe40000002000, {"and.b32 %", ", 0xfffaffff;", "selp.b32 %", ", 0x10000, 0, %p0;", "selp.b32 %", ", 0x40000, 0, %p2;"}},
        // FSET.BF.LT.AND R9, R4, R3, P0
        {0x000000030409720a, 0x000fe20000001000, {"setp.lt.f32 %", "and.pred %", ", %p0;", "selp.b32 %", ", 0x3f800000, 0, %"}},
        // LDG.E.CONSTANT R9, [R4], !P3: zero where the predicate is false
        {0x0000000004097381, 0x000ea400001e890c, {"not.pred %", "%p3;", "mov.b32 %", ", 0;", "@%", " ld.global.nc.b32 %"}},
        // LDG.E R9, [R4.64+UR4] and [R4.U32+UR4]
        {0x0000000404097981, 0x000322000c1e0900, {"add.u64 %q", "ld.global.b32 %", "[%q"}},
        {0x0000000404097981, 0x00032200081e0900, {"cvt.u64.u32 %q", "%r4;", "add.u64 %q", "ld.global.b32 %", "[%q"}},
        // LDC.U16 R9, c[0x0][0xc]: the lower half of %nctaid.x
        {0x00000300ff097b82, 0x000ea40000000400, {"%nctaid.x;", "bfe.u32 %", ", 0, 16;"}},
        // F2F.F32.BF16 R9, R4: NaNs are the one that additions give
        {0x0000000400097304, 0x000e620000401000, {"cvt.u16.u32 %h", "cvt.f32.bf16 %", "add.rn.f32 %", ", 0f80000000;"}},
        // F2F.F32.F16 R9, -R4.H1: cuBLASLt's nvjet
        {0x9000000400097304, 0x000e620000101000, {"shr.u32 %", ", 16;", "xor.b32 %", "cvt.f32.f16 %", "add.rn.f32 %", ", 0f80000000;"}},
        // F2F.F64.F16 R8, -R4: NaNs keep their sign
        {0x8000000400087310, 0x0015280000101800, {"cvt.u16.u32 %h", "cvt.f64.f16 %", "xor.b64 %", ", 0x8000000000000000;", "setp.nan.f64 %", "selp.b64 %"}},
        // F2F.BF16.F32.RP R9, R4: up, where something is left out above zero
        {0x0000000400097304, 0x000e22000020a000, {"shr.u32 %", ", 16;", "setp.ge.and.s32 %", "selp.b32 %", "0x7fff"}},
        // CALL.REL.NOINC R4, where no function's address is known
        {0xffffffe404007344, 0x025fea0003c3ffff, {"trap;", "exit;"}},
        // F2I.S16.F16.TRUNC.NTZ R9, 3.140625
        {0x0000424800097905, 0x000ea2000010e900, {"mov.b32 %", ", 0x4248;", "cvt.u16.u32 %h", "cvt.rzi.s16.f16 %"}},
        // LDL.U8 R9, [R4+0x9] in a kernel without local memory
        {0x0000090004097983, 0x000ea80000100000, {"trap;"}},
        // MEMBAR.GPU
        {0x0000000000007992, 0x000fec0000012000, {"fence.sc.gpu;"}},
    };
    const std::vector<std::uint8_t> whole = read_bytes(cubin_path("vector_add"));
    sass::Cubin cubin;
    std::string error;
    REQUIRE(sass::read_cubin(whole, cubin, error));
    const auto offset = std::size_t(cubin.sections[cubin.kernels[0].text].bytes.data() - whole.data()) + 0xd0;
    for (const Case& test : cases) {
        std::vector<std::uint8_t> image = whole;
        for (unsigned i = 0; i < 8; ++i) {
            image[offset + i] = std::uint8_t(test.low >> 8 * i);
            image[offset + 8 + i] = std::uint8_t(test.high >> 8 * i);
        }
        sass::LiftedModule lifted;
        REQUIRE(sass::lift_cubin(image, lifted, error));
        INFO(lifted.text);
        REQUIRE(lifted.refused.empty());
        std::size_t at = lifted.text.find("ld.global.b32", lifted.text.find("ld.global.b32") + 1);
        for (const std::string& part : test.lifted) {
            INFO(part);
            at = lifted.text.find(part, at);
            REQUIRE(at != std::string::npos);
        }
        CHECK(ptx::ModuleLoader::load(lifted.text, "patched", {.bind_all_bodies = true})->ok());
    }
}

TEST_CASE("sass: kernels that give shared memory back copy tensors once for a warp") {
    // cuBLAS' and cuDNN's sm90_xmma kernels come to UTMALDG with all lanes.
    CHECK_FALSE(holds(lift_patched(tensor_copies, "bulk_sums", {}), {"activemask"}));
    const std::string text = lift_patched(tensor_copies, "bulk_sums", {give_memory_back(0xa70)});
    const std::size_t copy = text.find(" cp.async.bulk.shared::cluster.global");
    REQUIRE(copy != std::string::npos);
    CHECK(text.rfind("activemask", copy) != std::string::npos);
    CHECK(text.rfind("%lanemask_eq", copy) != std::string::npos);
}

TEST_CASE("sass: where copies are the warp's, one lane does nothing for all before all have come") {
    // bulk_sums' and tma_gemm's copies, arrivals and fences: no barrier of the warp stands before them in machine code.
    for (const auto& [kernel, exit] : {std::pair{"bulk_sums", 0xa70u}, std::pair{"tma_gemm", 0x1970u}}) {
        INFO(kernel);
        const std::string text = lift_patched(tensor_copies, kernel, {give_memory_back(exit)});
        unsigned count = 0;
        for (const char* statement : {" cp.async.bulk.", "mbarrier.arrive", "fence.acq_rel", "fence.sc", " cp.reduce.async.bulk."})
            for (std::size_t at = text.find(statement); at != std::string::npos; at = text.find(statement, at + 1)) {
                if (text.compare(at, 21, " cp.async.bulk.commit") == 0 || text.compare(at, 19, " cp.async.bulk.wait") == 0) continue;
                const std::size_t met = text.rfind("bar.warp.sync", at);
                INFO(text.substr(met == std::string::npos ? 0 : met, at + 60 - (met == std::string::npos ? 0 : met)));
                REQUIRE(met != std::string::npos);
                // Nothing is read or written between the two.
                for (const char* access : {"\tst.", "\tld.shared", "\tld.global", " st.", "\tstmatrix"})
                    CHECK(text.substr(met, at - met).find(access) == std::string::npos);
                ++count;
            }
        CHECK(count > 2);
        // ptxas' own code says where lanes meet.
        CHECK_FALSE(holds(lift_patched(tensor_copies, kernel, {}), {"mbarrier.arrive", "bar.warp.sync", "cp.async.bulk"}));
    }
}

TEST_CASE("sass: warp barriers of the compiler's own wait for nobody, and end a narrower mask") {
    // bulk_sums' WARPSYNC.ALL at 0x7c0, which .nv.info does not list as the source's.
    CHECK(holds(lift_patched(tensor_copies, "bulk_sums", {}), {"fence.proxy.async", "bar.sync"}));
    CHECK_FALSE(holds(lift_patched(tensor_copies, "bulk_sums", {}), {"bar.warp.sync"}));
    // WARPSYNC.COLLECTIVE.ALL, and in code whose copies are the warp's, lanes wait.
    const std::vector<std::string> waits = {"fence.proxy.async", ", 0xffffffff;", "bar.warp.sync %"};
    CHECK(holds(lift_patched(tensor_copies, "bulk_sums", {{0x7c0, 0x0000000000007948, 0x000fea0003c00000}}), waits));
    CHECK(holds(lift_patched(tensor_copies, "bulk_sums", {give_memory_back(0xa70)}), waits));
    // tma_gemm's ELECT at 0x1340, before UTMASTG: BRA.DIV UR4 in the place of the branch at 0x1320, then WARPSYNC.ALL or
    // a NOP.
    const Patch divides{0x1320, 0x0000000604447947, 0x000fea000b800000}, nop{0x1330, 0x0000000000007918, 0x000fe20000000000};
    const std::string with = lift_patched(tensor_copies, "tma_gemm", {divides}),
                      without = lift_patched(tensor_copies, "tma_gemm", {divides, nop});
    const auto elected = [](const std::string& text) {
        const std::size_t elect = text.rfind("elect.sync ", text.find("cp.async.bulk.tensor.2d.global.shared::cta"));
        REQUIRE(elect != std::string::npos);
        return text.substr(elect, text.find(';', elect) - elect);
    };
    INFO(elected(with) << " and " << elected(without));
    CHECK(elected(with).ends_with(", 0xffffffff"));
    CHECK(elected(without).ends_with(", %active_mask"));
}

TEST_CASE("sass: copies that a warp makes once where only the elected lane names them") {
    // tma_gemm's UTMALDG.2D [UR4], [UR18], the target, the object and two coordinates, and R2UR before it.
    constexpr std::uint64_t plain = 0x000fe400000e0000;
    const std::pair<Patch, bool> cases[] = {
        {{0x1600, 0x00000000030402ca, plain}, true},  // @P0 R2UR UR4, R3
        {{0x1600, 0x00000000030482ca, plain}, true},  // @!P0 R2UR UR4, R3
        {{0x1610, 0x00000000060502ca, plain}, true},  // @P0 R2UR UR5, R6
        {{0x1620, 0x00000000040602ca, plain}, true},  // @P0 R2UR UR6, R4
        {{0x1640, 0x00000000070a02ca, plain}, false}, // @P0 R2UR UR10, R7: not a register of the copy's
        {{0x1600, 0x00000000030472ca, plain}, false}, // R2UR UR4, R3
    };
    for (const auto& [patch, is_of_warp] : cases) {
        INFO(std::hex << patch.address << ": " << patch.low << ", " << patch.high);
        const std::string text = lift_patched(tensor_copies, "tma_gemm", {patch});
        const std::size_t copy = text.find("cp.async.bulk.tensor.2d.shared::cluster.global.tile");
        REQUIRE(copy != std::string::npos);
        const std::size_t line = text.rfind('\n', copy), asked = text.rfind("activemask.b32", copy);
        CHECK((asked != std::string::npos) == is_of_warp);
        if (is_of_warp) CHECK(holds(text.substr(asked, line - asked), {"%lanemask_eq", "setp.eq.s32 "}));
    }
    // ELECT P2 between the two, in the place of UMOV UR14, UR6: what is behind may be of one lane anyway.
    const std::string elects = lift_patched(tensor_copies, "tma_gemm", {cases[0].first, {0x1700, 0x00000000003f782f, 0x000fda0003840000}});
    CHECK(holds(elects, {"cp.async.bulk.tensor.2d.shared::cluster.global.tile"}));
    CHECK_FALSE(holds(elects, {"activemask.b32"}));
}

TEST_CASE("sass: a copy that all lanes come to behind ELECT is the elected lane's") {
    // tma_gemm's UTMALDG.2D at 0x1730; ELECT P2 in the place of UMOV UR14, UR6 before it. ptxas makes that of elect.sync, a branch and a copy.
    const std::string plain = lift_patched(tensor_copies, "tma_gemm", {}),
                      elected = lift_patched(tensor_copies, "tma_gemm", {{0x1700, 0x00000000003f782f, 0x000fda0003840000}});
    const auto copy_of = [](const std::string& text) {
        const std::size_t copy = text.find("cp.async.bulk.tensor.2d.shared::cluster.global.tile");
        REQUIRE(copy != std::string::npos);
        const std::size_t line = text.rfind('\n', copy) + 1;
        return text.substr(line, copy - line);
    };
    CHECK(copy_of(plain) == "\t");
    const std::size_t asked = elected.rfind("elect.sync ", elected.find("cp.async.bulk.tensor.2d.shared::cluster.global.tile"));
    REQUIRE(asked != std::string::npos);
    const std::size_t name = elected.find('|', asked) + 1;
    CHECK(copy_of(elected) == "\t@" + elected.substr(name, elected.find(',', name) - name) + " ");
    // So is the word of a new mbarrier: other lanes would write it again after the elected one has announced bytes. Its first is at 0x110.
    const std::string made = lift_patched(tensor_copies, "tma_gemm", {{0x100, 0x00000000003f782f, 0x000fda0003840000}});
    const std::size_t word = made.find(" st.shared.b64 [%u8+27648]"), line = made.rfind('\n', word) + 1;
    INFO(made.substr(0, 4000));
    REQUIRE(word != std::string::npos);
    CHECK(made.compare(line, 3, "\t@%") == 0);
}

TEST_CASE("sass: UTMACMDFLUSH behind UTMACCTL ends no group of copies") {
    // fence.proxy.tensormap of Triton's tensor descriptors: UTMACCTL.IV [UR4] and UTMACMDFLUSH by scoreboard 3 (tma_gemm's own counts by 0).
    const std::string text = lift_patched(
        tensor_copies, "tma_gemm", {{0x1960, 0x00000000040079b9, 0x0003e20008000000}, {0x1970, 0x00000000000079b7, 0x0007e40000000000}});
    const std::size_t group = text.find("cp.async.bulk.commit_group");
    REQUIRE(group != std::string::npos);
    CHECK(text.find("cp.async.bulk.commit_group", group + 1) == std::string::npos);
    CHECK(holds(text, {"cp.async.bulk.wait_group 0"}, group));
}

TEST_CASE("sass: im2col of five dimensions has three offsets of 5 bits") {
    // UTMALDG.5D.IM2COL [UR4], [UR18], UR12 in the place of tma_gemm's UTMALDG.2D.
    const Patch patch{0x1730, 0x00000004120073b4, 0x0005e4000806000c};
    for (const bool is_of_warp : {false, true}) {
        std::vector<Patch> patches = {patch};
        if (is_of_warp) patches.push_back(give_memory_back(0x1970));
        const std::string text = lift_patched(tensor_copies, "tma_gemm", patches);
        const std::size_t copy = text.find("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [");
        REQUIRE(copy != std::string::npos);
        const std::string line = text.substr(copy, text.find(';', copy) - copy);
        CHECK(holds(line, {", {%u6, %u7, %u8, %u9, %u10}], [", "], {"}));
        // The offsets are halves of what is cut out of one word.
        std::string halves = line.substr(line.rfind('{') + 1);
        halves.pop_back();
        std::istringstream list(halves);
        unsigned count = 0;
        for (std::string half; std::getline(list >> std::ws, half, ','); ++count) {
            INFO(half << " of " << line);
            const std::size_t made = text.rfind("cvt.u16.u32 " + half + ", ", copy);
            REQUIRE(made != std::string::npos);
            const std::size_t name = text.find(", ", made) + 2;
            const std::string offset = text.substr(name, text.find(';', name) - name);
            const std::size_t cut = text.rfind("bfe.u32 " + offset + ", ", made);
            REQUIRE(cut != std::string::npos);
            const std::string field = text.substr(cut, text.find(';', cut) - cut);
            CHECK(field.ends_with(", " + std::to_string(5 * count) + ", 5"));
            const std::string source = field.substr(0, field.find(", ", field.find(", ") + 2));
            CHECK(source.ends_with(", %u12"));
        }
        CHECK(count == 3);
    }
}

TEST_CASE("sass: lanes have one answer to whether a phase is over, where copies are the warp's") {
    // SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R3 in the place of bulk_sums' first, which is of [R11+URZ].
    const Patch of_warp{0x240, 0x00000003ff0075a7, 0x002e640008000146}, guarded{0x240, 0x00000003ff0015a7, 0x002e640008000146};
    const Patch by_hand = give_memory_back(0xa70);
    const auto answer = [](const std::string& text) {
        const std::size_t asked = text.find("mbarrier.try_wait.parity.shared.b64 ");
        REQUIRE(asked != std::string::npos);
        return text.substr(asked, text.find(" bra", asked) - asked);
    };
    const std::string together = answer(lift_patched(tensor_copies, "bulk_sums", {of_warp, by_hand}));
    INFO(together);
    const std::string complete = together.substr(36, together.find(',') - 36);
    CHECK(holds(together, {"vote.sync.any.pred %", ", " + complete + ", %", "mov.pred %p0, "}));
    // Each lane's address is its own, and so is each lane's answer in ptxas' own code.
    CHECK_FALSE(holds(answer(lift_patched(tensor_copies, "bulk_sums", {by_hand})), {"vote.sync"}));
    CHECK_FALSE(holds(answer(lift_patched(tensor_copies, "bulk_sums", {of_warp})), {"vote.sync"}));
    // Of a lane that does not ask the answer does not count.
    const std::string some = answer(lift_patched(tensor_copies, "bulk_sums", {guarded, by_hand}));
    INFO(some);
    CHECK(holds(some, {"and.pred %", ", " + some.substr(36, some.find(',') - 36) + ", %p1;", "vote.sync.any.pred %"}));
}

TEST_CASE("sass: constants of a section that is not there are refused by name") {
    // LDC R1, c[0x3][R2+0x28] in the place of bulk_sums' first, which is of bank 0.
    std::string text, why;
    CHECK_FALSE(try_patched(tensor_copies, "bulk_sums", {{0x0, 0x00c00a0002017b82, 0x000fe20000000800}}, text, why));
    INFO(why);
    CHECK(holds(why, {"constants that are not there"}));
}

TEST_CASE("sass: parameters whose sizes take a word of their own") {
    // EIATTR_KPARAM_INFO_V2, which ptxas 13.2 writes for kernels with more than 16 KB of them, in the place of the short form.
    std::vector<std::uint8_t> image = read_bytes("tests/programs/cubin/tma_gemm.sm_90.cubin");
    const std::vector<std::uint8_t> before = image;
    sass::Cubin expected, got;
    std::string error;
    REQUIRE(sass::read_cubin(before, expected, error));
    constexpr std::uint8_t short_form[] = {4, 0x17, 12, 0};
    for (auto at = image.begin();;) {
        at = std::search(at, image.end(), std::begin(short_form), std::end(short_form));
        if (at == image.end()) break;
        at[1] = 0x45;
        std::uint32_t size = 0;
        std::memcpy(&size, &at[12], sizeof size);
        size >>= 18;
        if (size == 8) size |= 4u << 24; // of a pointer, what is said of what it points to
        std::memcpy(&at[12], &size, sizeof size);
        at += 16;
    }
    REQUIRE(image != before);
    REQUIRE(sass::read_cubin(image, got, error));
    REQUIRE(!expected.kernels[0].parameters.empty());
    for (std::size_t i = 0; i < expected.kernels.size(); ++i) {
        const auto &these = expected.kernels[i].parameters, &those = got.kernels[i].parameters;
        CHECK(std::equal(these.begin(), these.end(), those.begin(), those.end(), [](const auto& a, const auto& b) {
            return a.ordinal == b.ordinal && a.offset == b.offset && a.size == b.size;
        }));
    }
}

TEST_CASE("sass: kernels that cannot reach shared memory do not name it") {
    // Those that name it count as kernels whose lanes may talk there: they are not made in versions.
    const auto names_it = [](const char* file) {
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(file), lifted, error));
        return lifted.text.find("mov.u32 %shared_base") != std::string::npos;
    };
    CHECK(!names_it("tests/programs/cubin/half_conversions.sm_90.cubin"));
    CHECK(!names_it("tests/programs/cubin/wide_constants.sm_80.cubin"));
    CHECK(names_it("tests/programs/cubin/block_reduce_shuffle.sm_90.cubin"));
    CHECK(names_it("tests/programs/cubin/shared_pointer.sm_80.cubin"));
    CHECK(names_it("tests/programs/cubin/shared_pointer.sm_90.cubin"));
    CHECK(names_it("tests/programs/cubin/tma_gemm.sm_90.cubin"));
}

TEST_CASE("sass: the stack pointer begins at a multiple of 16") {
    // The frames of the file are 8 bytes; code may store 16 bytes at what it takes from there.
    const std::vector<std::uint8_t> image = read_bytes("tests/programs/cubin/function_pointers.sm_90.cubin");
    sass::LiftedModule lifted;
    std::string error;
    REQUIRE(sass::lift_cubin(image, lifted, error));
    CHECK(lifted.text.find("sass_stack[16]") != std::string::npos);
    CHECK(lifted.text.find("sass_stack[8]") == std::string::npos);
}

TEST_CASE("sass: what the stack holds is named by its place where R1 is followed") {
    const auto lifted_text = [](const char* file) {
        sass::LiftedModule lifted;
        std::string error;
        REQUIRE(sass::lift_cubin(read_bytes(file), lifted, error));
        return lifted.text;
    };
    // R1 has moved, and accesses are in other blocks than that.
    for (const char* file : {"tests/programs/cubin/device_printf.sm_80.cubin", "tests/programs/cubin/device_printf.sm_90.cubin"}) {
        const std::string text = lifted_text(file);
        CHECK(text.find("[sass_stack") != std::string::npos);
        CHECK(text.find(", %local_base, %q") == std::string::npos);
    }
    // Not where it depends on who calls.
    CHECK(lifted_text("tests/programs/cubin/recursion.sm_90.cubin").find("[sass_stack") == std::string::npos);
    // R1 does not become another place by a conversion to R0, whose operand is a pair and its result none.
    const std::string converted = lifted_text("tests/programs/cubin/conversion_beside_stack.sm_90.cubin");
    CHECK(converted.find("[sass_stack+144]") != std::string::npos);
    CHECK(converted.find("[sass_stack]") == std::string::npos);
    CHECK(converted.find("[sass_stack+16]") == std::string::npos);
}

TEST_CASE("sass: a stack that goes below the size that the file gives is asked where R1 is written") {
    std::vector<std::uint8_t> image = read_bytes("tests/programs/cubin/device_printf.sm_90.cubin");
    sass::Cubin cubin;
    std::string error;
    REQUIRE(sass::read_cubin(image, cubin, error));
    const auto offset = std::size_t(cubin.sections[cubin.kernels[0].text].bytes.data() - image.data());
    std::size_t changed = 0; // VIADD or IADD3 R1, R1, -frame: 0x1000 further down
    for (std::size_t at = offset; at + 16 <= offset + 0x100; at += 16)
        if (image[at + 2] == 1 && image[at + 3] == 1 && image[at + 7] == 0xff) {
            image[at + 5] = static_cast<std::uint8_t>(image[at + 5] - 0x10);
            ++changed;
        }
    REQUIRE(changed == 1);
    sass::LiftedModule lifted;
    REQUIRE(sass::lift_cubin(image, lifted, error));
    CHECK(lifted.refused.empty());
    const std::size_t written = lifted.text.rfind("mov.b32 %r1, ");
    REQUIRE(written != std::string::npos);
    const std::string behind = lifted.text.substr(written, 100);
    CHECK(behind.find(", %r1, %stack_lowest") != std::string::npos);
    CHECK(behind.find("trap;") != std::string::npos);
}

TEST_CASE("sass: each instruction in turn is one that is not in the table") {
    // Rules that look at what follows them meet it, too, where no way leads to it.
    for (const char* name : {"generic_sums.sm_90", "vector_add.sm_80"}) {
        const std::vector<std::uint8_t> whole = read_bytes("tests/programs/cubin/" + std::string(name) + ".cubin");
        sass::Cubin cubin;
        std::string error;
        REQUIRE(sass::read_cubin(whole, cubin, error));
        for (const auto& kernel : cubin.kernels) {
            const auto bytes = cubin.sections[kernel.text].bytes;
            const auto offset = std::size_t(bytes.data() - whole.data());
            for (std::size_t at = 0; at + 16 <= bytes.size(); at += 16) {
                std::vector<std::uint8_t> damaged = whole;
                damaged[offset + at] = 0xff;
                damaged[offset + at + 1] |= 0x0f;
                sass::LiftedModule lifted;
                error.clear();
                if (!sass::lift_cubin(damaged, lifted, error)) CHECK(!error.empty());
                for (const auto& refused : lifted.refused) CHECK(!refused.reason.empty());
            }
        }
    }
}

TEST_CASE("sass: damaged cubins are errors or refused kernels") {
    std::minstd_rand random(1);
    for (const char* name : cubins) {
        const std::vector<std::uint8_t> whole = read_bytes(cubin_path(name));
        REQUIRE(whole.size() > 1000);
        for (unsigned round = 0; round < 150; ++round) {
            std::vector<std::uint8_t> damaged = whole;
            for (unsigned i = 0; i <= round % 4; ++i) damaged[random() % damaged.size()] = std::uint8_t(random());
            if (round % 5 == 0) damaged.resize(random() % damaged.size());
            sass::LiftedModule lifted;
            std::string error;
            if (!sass::lift_cubin(damaged, lifted, error)) CHECK(!error.empty());
            static_cast<void>(sass::elf_extent(damaged.data(), damaged.size(), [](const void*, std::size_t) { return true; }));
        }
    }
    // A section's alignment is written into the text.
    std::vector<std::uint8_t> image = read_bytes(cubin_path("vector_add"));
    sass::Cubin cubin;
    std::string error;
    Elf64_Ehdr header;
    std::memcpy(&header, image.data(), sizeof header);
    std::vector<std::uint8_t> uneven = image;
    const std::uint64_t alignment = 462;
    std::memcpy(uneven.data() + header.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_addralign), &alignment, 8);
    CHECK_FALSE(sass::read_cubin(uneven, cubin, error));
    CHECK(error.find("aligned to 462") != std::string::npos);
    // An instruction that is not in the table is named.
    cubin = {};
    REQUIRE(sass::read_cubin(image, cubin, error));
    REQUIRE(cubin.kernels.size() == 1);
    const auto offset = std::size_t(cubin.sections[cubin.kernels[0].text].bytes.data() - image.data());
    image[offset + 0x30] = 0xff;
    image[offset + 0x31] |= 0x0f;
    sass::LiftedModule lifted;
    REQUIRE(sass::lift_cubin(image, lifted, error));
    REQUIRE(lifted.refused.size() == 1);
    CHECK(lifted.refused[0].kernel == "vector_add");
    CHECK(lifted.refused[0].reason == "opcode 0xfff at 0x30");
}
