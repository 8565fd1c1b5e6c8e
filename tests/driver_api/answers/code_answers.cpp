// SPDX-License-Identifier: Apache-2.0
// What a driver answers about modules, functions and the launch calls of CUDA 2 and 3.
// Answers: code_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <vector>

using namespace answers;

namespace {

const char* const text = R"(

// comment first
/* and another */ .version 8.4
.target sm_90
.address_size 64
.visible .global .u32 variable = 5;
.visible .const .u64 numbers[3] = {1, 2, 3};
.visible .entry k() { ret; }
.visible .entry small(.param .u32 value) { ret; }
.visible .entry store(.param .u64 to, .param .u32 value, .param .align 8 .b8 bytes[24]) {
    .reg .b64 %a; .reg .b32 %v, %n;
    ld.param.u64 %a, [to];
    ld.param.u32 %v, [value];
    st.global.u32 [%a], %v;
    mov.u32 %n, %ntid.x;
    st.global.u32 [%a + 4], %n;
    mov.u32 %n, %nctaid.x;
    st.global.u32 [%a + 8], %n;
    mov.u32 %n, %dynamic_smem_size;
    st.global.u32 [%a + 12], %n;
    ld.param.u32 %v, [bytes];
    st.global.u32 [%a + 16], %v;
    mov.u32 %n, %ntid.y;
    st.global.u32 [%a + 20], %n;
    mov.u32 %n, %nctaid.y;
    st.global.u32 [%a + 24], %n;
    ret;
}
.visible .entry required() .reqntid 64, 1, 1 { ret; }
.visible .entry required3() .reqntid 8, 4, 2 { ret; }
.visible .entry most() .maxntid 96 { ret; }
.visible .entry most_fewest() .maxntid 128 .minnctapersm 2 { ret; }
)";

std::string number(long long value) {
    return std::to_string(value);
}

void ask_loading(Answers& answers) {
    CUmodule module{};
    const auto load = [&](const char* what, const char* image) {
        answers.give(std::string("load ") + what, call("cuModuleLoadData", &module, static_cast<const void*>(image)));
    };
    load("words", "this is not a module at all, just words and more words");
    load("nothing", "");
    load("a space", " ");
    load("a number", "12345");
    load(".target first", ".target sm_50\n.version 6.0\n.visible .entry k() { ret; }");
    load("only .version", ".version 6.0\n");
    load(".version and .target", ".version 6.0\n.target sm_50\n");
    load("no .target", ".version 6.0\n.address_size 64\n.visible .entry k() { ret; }");
    load("only a comment", "// nothing\n");
    load("a newer target", ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k() { ret; }");
    load("a later version", ".version 99.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }");
    load("a word", ".versio");
    load("an undefined function", ".version 6.0\n.target sm_50\n.address_size 64\n.extern .func f;\n.visible .entry k() { call f; ret; }");
    load("four bytes of a fat binary", "\x50\xed\x55\xba");
    answers.give("load null", call("cuModuleLoadData", &module, nullptr));
    answers.give("load into nothing", call("cuModuleLoadData", nullptr, static_cast<const void*>(text)));
    answers.give("cuModuleLoad missing", call("cuModuleLoad", &module, "/nonexistent/file.ptx"));
    answers.give("cuModuleLoad empty name", call("cuModuleLoad", &module, ""));
    answers.give("cuModuleLoad null", call("cuModuleLoad", &module, nullptr));
    std::string path = std::filesystem::temp_directory_path() / "answersXXXXXX";
    const int file = mkstemp(path.data());
    if (file < 0) std::_Exit(2);
    answers.give("cuModuleLoad empty file", call("cuModuleLoad", &module, path.c_str()));
    if (write(file, "words", 5) != 5) std::_Exit(2);
    answers.give("cuModuleLoad words", call("cuModuleLoad", &module, path.c_str()));
    close(file);
    unlink(path.c_str());
    CUlibrary library{};
    CUkernel kernel{};
    const auto library_of = [&](const char* what, const char* image) {
        const int result = call("cuLibraryLoadData", &library, static_cast<const void*>(image), nullptr, nullptr, 0u, nullptr, nullptr, 0u);
        answers.give(std::string("library ") + what, result);
        if (!result) answers.give(std::string("kernel of library ") + what, call("cuLibraryGetKernel", &kernel, library, "k"));
    };
    library_of("words", "this is not a module at all, just words and more words");
    library_of("nothing", "");
    library_of("only .version", ".version 6.0\n");
    answers.give("cuLibraryLoadFromFile missing", call("cuLibraryLoadFromFile", &library, "/nonexistent", nullptr, nullptr, 0u, nullptr, nullptr, 0u));
}

void ask_names(Answers& answers, CUmodule module) {
    CUfunction function{};
    CUdeviceptr address = 0;
    std::size_t size = 0;
    void* reference = nullptr;
    for (const char* wanted : {"k", "missing", "variable", ""}) {
        const std::string of = std::string(" ") + (*wanted ? wanted : "(empty)");
        answers.give("cuModuleGetFunction" + of, call("cuModuleGetFunction", &function, module, wanted));
        answers.give("cuModuleGetGlobal" + of, call("cuModuleGetGlobal_v2", &address, &size, module, wanted));
        answers.give("cuModuleGetTexRef" + of, call("cuModuleGetTexRef", &reference, module, wanted));
        answers.give("cuModuleGetSurfRef" + of, call("cuModuleGetSurfRef", &reference, module, wanted));
    }
    answers.give("cuModuleGetFunction null", call("cuModuleGetFunction", &function, module, nullptr));
    answers.give("cuModuleGetGlobal null", call("cuModuleGetGlobal_v2", &address, &size, module, nullptr));
    answers.give("cuModuleGetGlobal into nothing", call("cuModuleGetGlobal_v2", nullptr, nullptr, module, "variable"));
    answers.give("cuModuleGetGlobal only a size", call("cuModuleGetGlobal_v2", nullptr, &size, module, "numbers"));
    answers.give("that size", static_cast<long long>(size));
    must("cuModuleGetFunction", &function, module, "store");
    for (std::size_t i : {0, 1, 2, 3}) {
        std::size_t offset = 77, bytes = 77;
        const int result = call("cuFuncGetParamInfo", function, i, &offset, &bytes);
        answers.give("parameter " + number(static_cast<long long>(i)),
                     number(result) + " " + number(static_cast<long long>(offset)) + " " + number(static_cast<long long>(bytes)));
    }
}

void ask_attributes(Answers& answers, CUmodule module) {
    for (const char* name : {"k", "required", "required3", "most", "most_fewest"}) {
        CUfunction function{};
        must("cuModuleGetFunction", &function, module, name);
        std::string all;
        for (int attribute : {0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) { // the recorded driver has no more
            int value = 77;
            const int result = call("cuFuncGetAttribute", &value, attribute, function);
            all += (all.empty() ? "" : " ") + (result ? "!" + number(result) : number(value));
        }
        answers.give(std::string("attributes of ") + name, all);
        for (unsigned block : {32u, 64u, 96u, 97u, 128u, 1024u})
            answers.give(std::string("launch of ") + name + " with " + number(block),
                         call("cuLaunchKernel", function, 1u, 1u, 1u, block, 1u, 1u, 0u, nullptr, nullptr, nullptr));
        answers.give(std::string("launch of ") + name + " with 8 4 2",
                     call("cuLaunchKernel", function, 1u, 1u, 1u, 8u, 4u, 2u, 0u, nullptr, nullptr, nullptr));
        int blocks = 77;
        for (int block : {32, 64}) {
            const int result = call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, function, block, std::size_t{0});
            answers.give(std::string("occupancy of ") + name + " with " + number(block), number(result) + " " + number(blocks));
        }
        must("cuCtxSynchronize");
    }
}

std::string seen(CUdeviceptr memory) {
    const int result = call("cuCtxSynchronize");
    int words[8] = {};
    must("cuMemcpyDtoH_v2", static_cast<void*>(words), memory, sizeof words);
    must("cuMemsetD8_v2", memory, static_cast<unsigned char>(0), std::size_t{64});
    std::string all = number(result);
    for (int i = 0; i < 7; ++i) all += " " + number(words[i]);
    return all; // the code; value, block x, grid x, shared bytes, bytes[0], block y, grid y
}

void ask_old_launches(Answers& answers, CUmodule module) {
    CUfunction store{}, fresh{}, k{}, small{};
    must("cuModuleGetFunction", &store, module, "store");
    must("cuModuleGetFunction", &k, module, "k");
    must("cuModuleGetFunction", &small, module, "small");
    CUmodule second{};
    must("cuModuleLoadData", &second, static_cast<const void*>(text));
    must("cuModuleGetFunction", &fresh, second, "k");
    CUstream stream{};
    must("cuStreamCreate", &stream, 1u);
    CUdeviceptr memory = 0;
    must("cuMemAlloc_v2", &memory, std::size_t{64});
    must("cuMemsetD8_v2", memory, static_cast<unsigned char>(0), std::size_t{64});
    answers.give("cuLaunch without a shape", call("cuLaunch", fresh));
    answers.give("cuLaunchGrid without a shape", call("cuLaunchGrid", fresh, 1, 1));
    answers.give("cuLaunchGrid after it", call("cuCtxSynchronize"));
    for (int shape : {0, -1, 1, 1024, 1025, 65536}) answers.give("cuFuncSetBlockShape " + number(shape), call("cuFuncSetBlockShape", k, shape, 1, 1));
    answers.give("cuFuncSetBlockShape 32 32 2", call("cuFuncSetBlockShape", k, 32, 32, 2));
    answers.give("cuFuncSetBlockShape 1 1 64", call("cuFuncSetBlockShape", k, 1, 1, 64));
    answers.give("cuFuncSetBlockShape 1 1 65", call("cuFuncSetBlockShape", k, 1, 1, 65));
    answers.give("cuLaunchGrid after a bad shape", call("cuLaunchGrid", k, 1, 1));
    for (unsigned bytes : {0u, 1000u, 49152u, 49153u, 1u << 30}) {
        answers.give("cuFuncSetSharedSize " + number(bytes), call("cuFuncSetSharedSize", k, bytes));
        answers.give("cuLaunchGrid then " + number(bytes), call("cuLaunchGrid", k, 1, 1));
    }
    must("cuCtxSynchronize");
    for (unsigned bytes : {0u, 4u, 8u, 100u, 4096u, 4097u, 32764u, 32768u, 1u << 20}) answers.give("cuParamSetSize of one word " + number(bytes), call("cuParamSetSize", small, bytes));
    for (int offset : {0, 4, 100, 4092}) answers.give("cuParamSeti of one word at " + number(offset), call("cuParamSeti", small, offset, 1u));
    answers.give("cuParamSetf of one word at 0", call("cuParamSetf", small, 0, 1.0f));
    (void)call("cuFuncSetBlockShape", small, 32, 1, 1);
    answers.give("cuParamSetSize 0", call("cuParamSetSize", small, 0u));
    answers.give("cuLaunch with too few parameters", call("cuLaunch", small));
    answers.give("cuParamSetSize 4", call("cuParamSetSize", small, 4u));
    answers.give("cuLaunch with as many", call("cuLaunch", small));
    answers.give("cuParamSetSize 8", call("cuParamSetSize", small, 8u));
    answers.give("cuLaunch with too many", call("cuLaunch", small));
    answers.give("and then", call("cuCtxSynchronize"));
    char bytes[24] = {11};
    (void)call("cuFuncSetBlockShape", store, 32, 2, 1);
    answers.give("cuParamSetSize 40", call("cuParamSetSize", store, 40u));
    answers.give("cuParamSetv address", call("cuParamSetv", store, 0, static_cast<void*>(&memory), 8u));
    answers.give("cuParamSeti", call("cuParamSeti", store, 8, 42u));
    answers.give("cuParamSetv bytes", call("cuParamSetv", store, 16, static_cast<void*>(bytes), 24u));
    answers.give("cuFuncSetSharedSize 512", call("cuFuncSetSharedSize", store, 512u));
    answers.give("cuLaunchGrid 5 3", call("cuLaunchGrid", store, 5, 3));
    answers.give("wrote", seen(memory));
    answers.give("cuLaunch again", call("cuLaunch", store));
    answers.give("wrote again", seen(memory));
    answers.give("cuLaunchGridAsync", call("cuLaunchGridAsync", store, 2, 1, stream));
    answers.give("wrote asynchronously", seen(memory));
    answers.give("cuParamSetf", call("cuParamSetf", store, 8, 1.0f));
    answers.give("cuLaunchGrid 0 1", call("cuLaunchGrid", store, 0, 1));
    answers.give("cuLaunchGrid 1 65536", call("cuLaunchGrid", store, 1, 65536));
    answers.give("cuLaunchGrid -1 1", call("cuLaunchGrid", store, -1, 1));
    answers.give("cuLaunchGrid 1 1", call("cuLaunchGrid", store, 1, 1));
    answers.give("wrote a float", seen(memory));
    answers.give("cuLaunchKernel without parameters after cuParamSet", call("cuLaunchKernel", store, 1u, 1u, 1u, 1u, 1u, 1u, 0u, nullptr, nullptr, nullptr));
    answers.give("wrote then", seen(memory));
    int value = 0;
    for (int attribute : {0, 8}) {
        const int result = call("cuFuncGetAttribute", &value, attribute, store);
        answers.give("attribute " + number(attribute) + " then", number(result) + " " + number(value));
    }
    answers.give("cuCtxSynchronize", call("cuCtxSynchronize"));
}

/// Null handles, the ones first that are known not to crash an H100's driver.
void ask_null(Answers& answers) {
    CUfunction function{};
    CUmodule module{};
    int value = 0;
    const char* name = nullptr;
    answers.give("cuFuncGetName null", call("cuFuncGetName", &name, nullptr));
    answers.give("cuKernelGetName null", call("cuKernelGetName", &name, nullptr));
    answers.give("cuModuleUnload null", call("cuModuleUnload", nullptr));
    answers.give("cuModuleGetFunction of no module", call("cuModuleGetFunction", &function, nullptr, "k"));
    answers.give("cuFuncGetAttribute null", call("cuFuncGetAttribute", &value, 0, nullptr));
    answers.give("cuFuncGetModule null", call("cuFuncGetModule", &module, nullptr));
    answers.give("cuLaunch null", call("cuLaunch", nullptr));
    answers.give("cuFuncSetBlockShape null", call("cuFuncSetBlockShape", nullptr, 1, 1, 1));
    answers.give("cuLibraryUnload null", call("cuLibraryUnload", nullptr));
}

/// A slot of the runtime's table that libcudart 13.1 and later ask: a setting by its name.
void ask_tables(Answers& answers) {
    static const unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
    using Setting = int (*)(unsigned char*, const char*);
    void** table = nullptr;
    must("cuGetExportTable", &table, static_cast<const void*>(id));
    const auto slots = reinterpret_cast<std::uintptr_t>(table[0]) / sizeof(void*);
    answers.give("slots of 6bd5fb6c", static_cast<long long>(slots));
    if (slots <= 12 || !table[12]) return;
    for (const char* name : {"DA_8b3537d1", "DA_00000000", "CUDA_VISIBLE_DEVICES", ""}) {
        unsigned char out[8];
        std::memset(out, 0x77, sizeof out);
        const int result = reinterpret_cast<Setting>(table[12])(out, name);
        std::string answer = number(result);
        for (unsigned char byte : out) answer += " " + number(byte);
        answers.give(std::string("setting ") + name, answer);
    }
}

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    alarm(100);
    CUcontext context{};
    CUmodule module{};
    answers.give("cuModuleLoadData before cuInit", call("cuModuleLoadData", &module, static_cast<const void*>(text)));
    int devices = 0;
    answers.give("cuDeviceGetCount before cuInit", call("cuDeviceGetCount", &devices));
    must("cuInit", 0u);
    must("cuDevicePrimaryCtxRetain", &context, 0);
    must("cuCtxSetCurrent", context);
    must("cuModuleLoadData", &module, static_cast<const void*>(text));
    ask_attributes(answers, module);
    ask_old_launches(answers, module);
    ask_loading(answers);
    ask_tables(answers);
    ask_names(answers, module);
    ask_null(answers);
    return answers.finish();
}
