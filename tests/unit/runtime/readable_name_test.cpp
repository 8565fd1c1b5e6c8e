// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/readable_name.h"

#include <catch2/catch.hpp>

using ptarmigan::runtime::readable_name;

TEST_CASE("readable names: the function and its scope") {
    CHECK(readable_name("_Z10vector_addPKfS0_Pfi") == "vector_add");
    CHECK(readable_name("_Z6kernelIfEvPT_") == "kernel");
    CHECK(readable_name("_ZN3cub16DeviceScanKernelINS_3fooEEEvPT_i") == "cub::DeviceScanKernel");
    CHECK(readable_name("_ZN3cub17CUB_300001_SM_9004SortIiEEvT_") == "cub::Sort");
    CHECK(readable_name("_ZN12_GLOBAL__N_14sortEv") == "sort");
    CHECK(readable_name("_ZN6thrust8cuda_cub4core13_kernel_agentINS0_10__parallel5AgentIiEEEEvT_") ==
          "core::_kernel_agent");
}

TEST_CASE("readable names: what is not mangled stays") {
    CHECK(readable_name("saxpy") == "saxpy");
    CHECK(readable_name("i") == "i"); // "int" to the demangler
    CHECK(readable_name("_Znonsense") == "_Znonsense");
    CHECK(readable_name("") == "");
}
