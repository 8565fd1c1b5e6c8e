// SPDX-License-Identifier: Apache-2.0
// PTX texts of a megabyte and more. The NVIDIA driver reports what is wrong with a body when the text is loaded, which takes
// it seconds; here a kernel of a large text is checked when it is got, unless CUDA_MODULE_LOADING=EAGER or a buffer for
// errors asks for all of it.
#include "driver.h"

#include <unistd.h>

#include <cstdlib>

namespace {

/// Twelve hundred kernels `k0`, `k1`, ..., of which `bad` has an error in line 4; the process's own, so that nobody knows it.
const std::string& text() {
    static const std::string made = [] {
        std::string text = "// " + std::to_string(getpid()) + "\n.version 8.0\n.target sm_75\n"
                           ".visible .entry bad() { mov.b32 %q, 1; ret; }\n";
        for (unsigned i = 0; i < 1200; ++i) {
            text += ".visible .entry k" + std::to_string(i) + "() {\n .reg .b32 %r<9>;\n";
            for (unsigned j = 0; j < 40; ++j) text += " add.u32 %r1, %r2, " + std::to_string(j) + ";\n";
            text += " ret;\n}\n";
        }
        return text;
    }();
    return made;
}

CUresult launch(CUfunction function) {
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
}

} // namespace

TEST_CASE("large module: a bad kernel fails when it is got, the others run") {
    driver_test::context();
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(text().size() > 1u << 20);
    REQUIRE(cuModuleLoadData(&module, text().c_str()) == 0);
    REQUIRE(cuModuleGetFunction(&function, module, "k1199") == 0);
    CHECK(launch(function) == 0);
    CHECK(cuCtxSynchronize() == 0);
    CHECK(cuModuleGetFunction(&function, module, "bad") == 218);
    CHECK(cuModuleGetFunction(&function, module, "k1") == 0);
    REQUIRE(cuModuleEnumerateFunctions(&function, 1, module) == 0); // the first is the bad one
    CHECK(cuFuncLoad(function) == 218);
    CHECK(launch(function) == 218);
    CUfunction all[1201] = {};
    REQUIRE(cuModuleEnumerateFunctions(all, 1201, module) == 0);
    CHECK(cuFuncLoad(all[1200]) == 0);
    REQUIRE(cuModuleGetFunction(&function, module, "k1199") == 0);
    CHECK(function == all[1200]);
    CHECK(cuModuleGetFunction(&function, module, "k1200") == 500);
    CHECK(cuModuleUnload(module) == 0);

    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    REQUIRE(cuLibraryLoadData(&library, text().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) == 0);
    CHECK(cuLibraryGetKernel(&kernel, library, "k7") == 0);
    CHECK(cuLibraryGetKernel(&kernel, library, "bad") == 218);
    CHECK(cuLibraryUnload(library) == 0);
}

TEST_CASE("large module: who asks for errors has them at load") {
    driver_test::context();
    CUmodule module = nullptr;
    char error[512] = "";
    unsigned options[] = {5, 6};
    void* values[] = {error, reinterpret_cast<void*>(sizeof error)};
    CHECK(cuModuleLoadDataEx(&module, text().c_str(), 2, options, values) == 218);
    CHECK(std::string(error).find("line 4; error   : unknown symbol '%q'") != std::string::npos);

    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    CHECK(cuModuleLoadData(&module, text().c_str()) == 218);
    unsetenv("CUDA_MODULE_LOADING");
    REQUIRE(cuModuleLoadData(&module, text().c_str()) == 0);
    CHECK(cuModuleUnload(module) == 0);
}
