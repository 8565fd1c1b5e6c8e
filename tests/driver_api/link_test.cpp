// SPDX-License-Identifier: Apache-2.0
// cuLink*: inputs of several kinds, the image they make, logs. Codes and texts of an H200's driver are
// compared by tests/recordings/link_logs.cpp; what is here beyond them follows nvJitLink 13.0.
#include "driver.h"

#include <cstdio>
#include <cstring>
#include <elf.h>
#include <unistd.h>
#include <vector>

extern "C" {
CUresult cuLinkCreate_v2(unsigned, unsigned*, void**, CUlinkState*);
CUresult cuLinkAddData_v2(CUlinkState, int, void*, std::size_t, const char*, unsigned, unsigned*,
                          void**);
CUresult cuLinkAddFile_v2(CUlinkState, int, const char*, unsigned, unsigned*, void**);
CUresult cuLinkComplete(CUlinkState, void**, std::size_t*);
CUresult cuLinkDestroy(CUlinkState);
}

namespace {

enum Input : int { cubin, ptx, fatbinary, object, library, nvvm };

const std::string header = ".version 8.0\n.target sm_75\n.address_size 64\n";
const std::string kernel = header + R"(
.extern .func (.param .b32 r) twice(.param .b32 a);
.extern .global .u32 offset;
.visible .entry k(.param .u64 out)
{
  .reg .b64 %d<2>; .reg .b32 %r<4>; .param .b32 a; .param .b32 r;
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x;
  st.param.b32 [a], %r1;
  call (r), twice, (a);
  ld.param.b32 %r2, [r];
  ld.global.u32 %r3, [offset];
  add.u32 %r2, %r2, %r3;
  mad.wide.u32 %d1, %r1, 4, %d1;
  st.global.u32 [%d1], %r2;
  ret;
}
)";
const std::string functions = header + R"(
.visible .global .u32 offset = 100;
.visible .func (.param .b32 r) twice(.param .b32 a)
{ .reg .b32 x; ld.param.b32 x, [a]; add.u32 x, x, x; st.param.b32 [r], x; ret; }
)";

/// A link with log buffers.
class Link {
public:
    Link() {
        driver_test::context();
        REQUIRE(cuLinkCreate_v2(4, options_, values_, &state_) == 0);
    }
    ~Link() { CHECK(cuLinkDestroy(state_) == 0); }
    CUresult add(int kind, const void* data, std::size_t size, const char* name = nullptr) {
        return cuLinkAddData_v2(state_, kind, const_cast<void*>(data), size, name, 0, nullptr,
                                nullptr);
    }
    CUresult add(const std::string& text, const char* name = nullptr) {
        return add(ptx, text.c_str(), text.size() + 1, name);
    }
    CUresult add_file(int kind, const std::string& path) {
        return cuLinkAddFile_v2(state_, kind, path.c_str(), 0, nullptr, nullptr);
    }
    CUresult complete(void** image, std::size_t* size) { return cuLinkComplete(state_, image, size); }
    std::string errors() const { return error_; }
    std::size_t error_bytes() const { return reinterpret_cast<std::uintptr_t>(values_[1]); }

private:
    char error_[1024] = "", info_[1024] = "";
    unsigned options_[4] = {5, 6, 3, 4};
    void* values_[4] = {error_, reinterpret_cast<void*>(sizeof error_), info_,
                        reinterpret_cast<void*>(sizeof info_)};
    CUlinkState state_ = nullptr;
};

/// Runs k of the image: out[i] = 2 i + 100.
void check_kernel(const void* image) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(cuModuleLoadData(&module, image) == 0);
    REQUIRE(cuModuleGetFunction(&function, module, "k") == 0);
    CUdeviceptr out = driver_test::allocate(32 * 4), offset = 0;
    std::size_t bytes = 0;
    CHECK(cuModuleGetGlobal_v2(&offset, &bytes, module, "offset") == 0);
    CHECK(bytes == 4);
    void* parameters[] = {&out};
    REQUIRE(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) == 0);
    unsigned results[32] = {};
    REQUIRE(cuMemcpyDtoH_v2(results, out, sizeof results) == 0);
    for (unsigned i = 0; i < 32; ++i) CHECK(results[i] == 2 * i + 100);
    CHECK(cuMemFree_v2(out) == 0);
    CHECK(cuModuleUnload(module) == 0);
}

void store_file(const std::string& path, const std::string& bytes) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    REQUIRE(file);
    CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    CHECK(std::fclose(file) == 0);
}

/// A fat binary container with one PTX text, as the linker makes it.
std::string container_of(const std::string& text) {
    Link link;
    REQUIRE(link.add(text) == 0);
    void* image = nullptr;
    std::size_t size = 0;
    REQUIRE(link.complete(&image, &size) == 0);
    return {static_cast<const char*>(image), size};
}

/// An ELF object with that container in __nv_relfatbin.
std::string object_of(const std::string& container) {
    const std::string names{"\0__nv_relfatbin\0.shstrtab\0", 26};
    Elf64_Ehdr elf{};
    std::memcpy(elf.e_ident, "\x7f"
                             "ELF\2\1\1",
                7);
    Elf64_Shdr sections[3] = {};
    const std::size_t code = sizeof elf + sizeof sections;
    sections[1].sh_name = 1;
    sections[1].sh_type = SHT_PROGBITS;
    sections[1].sh_offset = code;
    sections[1].sh_size = container.size();
    sections[2].sh_name = 16;
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = code + container.size();
    sections[2].sh_size = names.size();
    elf.e_shoff = sizeof elf;
    elf.e_shentsize = sizeof(Elf64_Shdr);
    elf.e_shnum = 3;
    elf.e_shstrndx = 2;
    std::string bytes(reinterpret_cast<const char*>(&elf), sizeof elf);
    bytes.append(reinterpret_cast<const char*>(sections), sizeof sections);
    return bytes + container + names;
}

std::string archive_of(const std::vector<std::pair<std::string, std::string>>& members) {
    std::string bytes = "!<arch>\n";
    for (const auto& [name, contents] : members) {
        char head[61];
        std::snprintf(head, sizeof head, "%-16s%-12s%-6s%-6s%-8s%-10zu`\n", (name + "/").c_str(), "0",
                      "0", "0", "644", contents.size());
        bytes += head + contents + (contents.size() % 2 ? "\n" : "");
    }
    return bytes;
}

} // namespace

TEST_CASE("link: two texts run as one module") {
    Link link;
    REQUIRE(link.add(kernel, "kernel.ptx") == 0);
    REQUIRE(link.add(functions, "functions.ptx") == 0);
    void* image = nullptr;
    std::size_t size = 0;
    REQUIRE(link.complete(&image, &size) == 0);
    CHECK(size > kernel.size());
    CHECK(link.errors().empty());
    check_kernel(image);
    CHECK(link.add(functions) == 1); // it is complete
    void* again = nullptr;
    CHECK(link.complete(&again, nullptr) == 0);
    CHECK(again == image);
}

TEST_CASE("link: the image outlives its link as a file") {
    std::string bytes;
    {
        Link link;
        REQUIRE(link.add(functions) == 0);
        REQUIRE(link.add(kernel) == 0);
        void* image = nullptr;
        std::size_t size = 0;
        REQUIRE(link.complete(&image, &size) == 0);
        bytes.assign(static_cast<const char*>(image), size);
    }
    const std::string path = "/tmp/ptarmigan_link_test_" + std::to_string(getpid());
    store_file(path, bytes);
    CUmodule module = nullptr;
    CHECK(cuModuleLoad(&module, path.c_str()) == 0);
    CHECK(cuModuleUnload(module) == 0);
    std::remove(path.c_str());
    check_kernel(bytes.data());
}

TEST_CASE("link: what is undefined fails the completion") {
    Link link;
    REQUIRE(link.add(kernel, "unresolved") == 0);
    void* image = nullptr;
    std::size_t size = 0;
    CHECK(link.complete(&image, &size) == 300);
    CHECK(image == nullptr);
    const std::string errors = "error   : Undefined reference to 'twice' in 'unresolved'\n"
                               "error   : Undefined reference to 'offset' in 'unresolved'";
    CHECK(link.errors() == errors);
    CHECK(link.error_bytes() == errors.size());
    CHECK(link.complete(&image, &size) == 300);
    CHECK(link.errors() == errors);
}

TEST_CASE("link: a contradiction fails the input and the completion, and is logged once") {
    Link link;
    REQUIRE(link.add(functions, "first") == 0);
    CHECK(link.add(functions, "second") == 300);
    const std::string errors = link.errors();
    CHECK(errors == "error   : Multiple definition of 'twice' in 'second', first defined in 'first'\n"
                    "error   : Multiple definition of 'offset' in 'second', first defined in 'first'");
    CHECK(link.add(kernel, "third") == 0);
    void* image = nullptr;
    CHECK(link.complete(&image, nullptr) == 300);
    CHECK(link.errors() == errors);
    CHECK(image == nullptr);
}

TEST_CASE("link: a contradiction in a member of a library is found when all is there") {
    const std::string twice = header + ".visible .global .u32 offset;\n.visible .entry k2() {ret;}";
    const std::string clash = header + ".visible .func (.param .b32 r) twice(.param .b32 a) {ret;}\n"
                                       ".visible .entry k2() {ret;}";
    const std::string bytes =
        archive_of({{"a.o", object_of(container_of(twice))}, {"b.o", object_of(container_of(clash))}});
    Link link;
    REQUIRE(link.add(library, bytes.data(), bytes.size(), "lib.a") == 0);
    REQUIRE(link.add(kernel) == 0);
    void* image = nullptr;
    CHECK(link.complete(&image, nullptr) == 300);
    CHECK(link.errors() == "error   : Multiple definition of 'k2' in 'lib.a:b.o', first defined in 'lib.a:a.o'");
}

TEST_CASE("link: refused inputs leave the others whole") {
    Link link;
    REQUIRE(link.add(kernel) == 0);
    CHECK(link.add("no PTX") == 200);
    CHECK(link.add(header + ".visible .entry k() { frob.u32 x; }") == 218);
    CHECK(link.add(object, "PK", 2, "zip.o") == 999);
    REQUIRE(link.add(functions) == 0);
    void* image = nullptr;
    REQUIRE(link.complete(&image, nullptr) == 0);
    check_kernel(image);
}

TEST_CASE("link: code that only a GPU or another compiler can use fails the completion too") {
    for (const int kind : {cubin, nvvm}) {
        Link link;
        REQUIRE(link.add(kernel) == 0);
        REQUIRE(link.add(functions) == 0);
        const CUresult refused = link.add(kind, kind == cubin ? "\x7f" "ELF" : "\xed\x43\x4e\x7f", 4);
        CHECK(refused == (kind == cubin ? 209 : 801));
        const std::string errors = link.errors();
        void* image = nullptr;
        CHECK(link.complete(&image, nullptr) == refused);
        CHECK(link.errors() == errors);
        CHECK(image == nullptr);
    }
}

TEST_CASE("link: bad PTX is refused when it is added") {
    Link link;
    CHECK(link.add(header + ".visible .entry k() { .reg .b32 x; frob.u32 x, 1; ret; }") == 218);
    CHECK(link.errors().find("ptxas application ptx input, line 4; error   : ") == 0);
    CHECK(link.errors().find("frob") != std::string::npos);
    CHECK(link.add("no PTX") == 200);
    CHECK(link.add(".version 99.0\n.target sm_75\n.address_size 64\n") == 222);
    CHECK(link.add(".version 8.0\n.target sm_75\n.address_size 32\n.visible .entry k() {ret;}") == 218);
    CHECK(link.errors().find("ptxas fatal   :  32-Bit ABI") != std::string::npos);
}

TEST_CASE("link: a text that is loaded alone must be whole") {
    driver_test::context();
    CUmodule module = nullptr;
    char error[256] = "";
    unsigned options[] = {5, 6};
    void* values[] = {error, reinterpret_cast<void*>(sizeof error)};
    CHECK(cuModuleLoadDataEx(&module, kernel.c_str(), 2, options, values) == 218);
    CHECK(std::string(error) == "ptxas fatal   : Unresolved extern function 'twice'");
    {
        Link link;
        REQUIRE(link.add(kernel) == 0); // checked as a part: that makes it no whole
    }
    values[1] = reinterpret_cast<void*>(sizeof error);
    CHECK(cuModuleLoadDataEx(&module, kernel.c_str(), 2, options, values) == 218);
    const std::string unused = header + ".extern .func foo(.param .b32 a);\n.visible .entry k() {ret;}";
    CHECK(cuModuleLoadData(&module, unused.c_str()) == 0);
    const std::string promised = header + ".visible .func foo(.param .b32 a);\n.visible .entry k() {ret;}";
    CHECK(cuModuleLoadData(&module, promised.c_str()) == 218);
    const std::string small = ".version 8.0\n.target sm_75\n.address_size 32\n.visible .entry k() {ret;}";
    CHECK(cuModuleLoadData(&module, small.c_str()) == 218);
}

TEST_CASE("link: fat binaries and earlier links are inputs") {
    const std::string first = container_of(functions);
    Link link;
    REQUIRE(link.add(kernel) == 0);
    REQUIRE(link.add(fatbinary, first.data(), first.size(), "functions") == 0);
    void* image = nullptr;
    std::size_t size = 0;
    REQUIRE(link.complete(&image, &size) == 0);
    check_kernel(image);
    Link second;
    REQUIRE(second.add(cubin, image, size) == 0);
    REQUIRE(second.complete(&image, &size) == 0);
    check_kernel(image);
}

TEST_CASE("link: objects of the host") {
    const std::string bytes = object_of(container_of(functions));
    Link link;
    REQUIRE(link.add(object, bytes.data(), bytes.size(), "functions.o") == 0);
    REQUIRE(link.add(kernel) == 0);
    void* image = nullptr;
    REQUIRE(link.complete(&image, nullptr) == 0);
    check_kernel(image);
}

TEST_CASE("link: of a library only what is missed is linked") {
    // The second member would clash with the kernel, if it were taken.
    const std::string bytes =
        archive_of({{"code.o", object_of(container_of(functions))},
                    {"other.o", object_of(container_of(header + ".visible .entry k() {ret;}"))}});
    const std::string path = "/tmp/ptarmigan_link_test_" + std::to_string(getpid()) + ".a";
    store_file(path, bytes);
    Link link;
    REQUIRE(link.add_file(library, path) == 0);
    REQUIRE(link.add(kernel) == 0);
    void* image = nullptr;
    REQUIRE(link.complete(&image, nullptr) == 0);
    check_kernel(image);
    std::remove(path.c_str());
}

TEST_CASE("link: files of the host cut or changed anywhere are no crash") {
    const std::string archive = archive_of({{"code.o", object_of(container_of(functions))}});
    for (std::size_t size = 1; size < archive.size(); size += size < 400 ? 1 : 37) {
        Link link;
        static_cast<void>(link.add(library, archive.data(), size));
    }
    for (std::size_t at = 0; at < archive.size(); at += at < 400 ? 1 : 37)
        for (const char value : {'\0', '\x7f', '\xff'}) {
            std::string changed = archive;
            changed[at] = value;
            Link link;
            static_cast<void>(link.add(library, changed.data(), changed.size()));
            void* image = nullptr;
            static_cast<void>(link.complete(&image, nullptr));
        }
}

TEST_CASE("link: images of earlier links cut or changed anywhere are no crash") {
    const std::string image = container_of(functions);
    for (std::size_t at = 0; at < image.size(); ++at) {
        const std::string exact(image, 0, at); // a read behind it is one behind an allocation
        Link link;
        if (at != 0) CHECK(link.add(fatbinary, exact.data(), exact.size()) != 0);
        std::string changed = image;
        changed[at] = static_cast<char>(changed[at] ^ 0x81);
        static_cast<void>(link.add(cubin, changed.data(), changed.size()));
        void* result = nullptr;
        static_cast<void>(link.complete(&result, nullptr));
    }
}

TEST_CASE("link: options that CUDA knows are taken, logs are cut to their buffers") {
    driver_test::context();
    char error[16];
    std::memset(error, '#', sizeof error);
    std::vector<unsigned> options = {5, 6};
    std::vector<void*> values = {error, reinterpret_cast<void*>(sizeof error)};
    // Registers, threads, optimisation, target from context, target, fallback, debug, verbose, lines, cache, ... LTO ones.
    for (unsigned option = 0; option < 35; ++option) {
        if (option >= 2 && option <= 6) continue;
        options.push_back(option);
        values.push_back(reinterpret_cast<void*>(option == 9 ? 90ul : 0ul));
    }
    CUlinkState state = nullptr;
    const auto count = static_cast<unsigned>(options.size());
    REQUIRE(cuLinkCreate_v2(count, options.data(), values.data(), &state) == 0);
    CHECK(cuLinkAddData_v2(state, ptx, const_cast<char*>(kernel.data()), kernel.size(), "kernel.ptx",
                           count - 2, options.data() + 2, values.data() + 2) == 0);
    void* image = nullptr;
    CHECK(cuLinkComplete(state, &image, nullptr) == 300);
    CHECK(std::string(error) == "error   : Undef"); // 15 characters and a NUL
    CHECK(reinterpret_cast<std::uintptr_t>(values[1]) == sizeof error);
    CHECK(cuLinkDestroy(state) == 0);
}

TEST_CASE("link: what can't be linked is named") {
    Link link;
    CHECK(link.add(cubin, "\x7f"
                          "ELF and so on",
                   14, "machine.cubin") == 209);
    CHECK(link.errors().find("'machine.cubin' is a cubin") != std::string::npos);
    CHECK(link.add(nvvm, "BC\xc0\xde", 4, "code.bc") == 801);
    CHECK(link.errors().find("'code.bc' is LTO code") != std::string::npos);
    CHECK(link.add(library, "!<thin>\n", 8, "thin.a") == 200);
    CHECK(link.add(object, "PK", 2, "zip.o") == 999);
    CHECK(link.add(17, "x", 1) == 1);
    CHECK(link.add_file(ptx, "/nonexistent.ptx") == 301);
}

TEST_CASE("link: wrong arguments") {
    driver_test::context();
    CUlinkState state = nullptr;
    unsigned unknown[] = {999};
    void* values[] = {nullptr};
    CHECK(cuLinkCreate_v2(0, nullptr, nullptr, nullptr) == 1);
    CHECK(cuLinkCreate_v2(1, unknown, values, &state) == 1);
    CHECK(cuLinkCreate_v2(1, nullptr, nullptr, &state) == 1);
    REQUIRE(cuLinkCreate_v2(0, nullptr, nullptr, &state) == 0);
    CHECK(cuLinkAddData_v2(state, ptx, nullptr, 4, "", 0, nullptr, nullptr) == 1);
    CHECK(cuLinkAddData_v2(state, ptx, values, 0, "", 0, nullptr, nullptr) == 1);
    CHECK(cuLinkAddData_v2(state, ptx, const_cast<char*>(kernel.data()), kernel.size(), "", 1, unknown,
                           values) == 1);
    CHECK(cuLinkAddFile_v2(state, ptx, nullptr, 0, nullptr, nullptr) == 1);
    CHECK(cuLinkComplete(state, nullptr, nullptr) == 1);
    CHECK(cuLinkDestroy(state) == 0);
    CHECK(cuLinkDestroy(state) == 400);
    CHECK(cuLinkAddFile_v2(state, ptx, "x", 0, nullptr, nullptr) == 400);
}
