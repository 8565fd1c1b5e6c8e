// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/machine_code_advice.h"

#include <catch2/catch.hpp>

using namespace ptarmigan::shim;

namespace {
bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}
} // namespace

TEST_CASE("machine code: nobody is asked to rebuild NVIDIA's libraries") {
    const std::string usual = "build it with nvcc";
    for (const char* path : {"/usr/local/cuda/lib64/libcublasLt.so.13", "libcublas.so.12", "/opt/x/libcufft.so.12"}) {
        const std::string advice = machine_code_advice(path, {}, usual);
        CHECK(has(advice, "can't be rebuilt"));
        CHECK_FALSE(has(advice, "nvcc"));
    }
    CHECK(has(machine_code_advice("/x/libcufft.so.12", {}, usual), "FFTW"));
    CHECK(machine_code_advice("/home/me/libcublas/app", {}, usual) == usual);
    CHECK(machine_code_advice("", {"/usr/lib/libc.so.6"}, usual) == usual);
}

TEST_CASE("machine code: CuPy's setting is named where CuPy makes the code") {
    const std::vector<std::string> objects{"/x/site-packages/cupy/_core/core.cpython-311-x86_64-linux-gnu.so"};
    CHECK(has(machine_code_advice("", objects, "usual"), "CUPY_COMPILE_WITH_PTX=1"));
    CHECK(machine_code_advice("/x/site-packages/other.so", objects, "usual") == "usual");
}

TEST_CASE("machine code: the process's own libraries are seen") {
    bool found = false;
    for (const std::string& path : loaded_objects()) found = found || has(path, "libc.so");
    CHECK(found);
}
