// SPDX-License-Identifier: Apache-2.0
// The names of entries in the log.
#include "runtime/shim/call_log.h"

#include <catch2/catch.hpp>

using ptarmigan::shim::called_entry;

TEST_CASE("call log: an entry's name is found in what the compiler calls a function that has its lambda") {
    CHECK(called_entry("CUresult ptarmigan::shim::fenced(Body&&) [with Body = cuInit(unsigned int)::<lambda()>; CUresult = int]") == "cuInit");
    CHECK(called_entry("CUresult ptarmigan::shim::fenced(Body&&) [with Body = entry<context_entry<cuCtxGetId(CUcontext, long long unsigned int*)::"
                       "<lambda(Context&)> >(cuCtxGetId(...)::<lambda()>)>; CUresult = int]") == "cuCtxGetId");
    CHECK(called_entry("CUresult ptarmigan::shim::fenced(Body&&) [Body = (lambda at runtime/shim/entries/stream.cpp:9:2)]") == "a driver entry");
}

TEST_CASE("call log: the body of an entry with two forms has the entry's name") {
    CHECK(called_entry("fenced(Body&&) [with Body = cuMemcpyAsync_body(ptarmigan::shim::DefaultStream, CUdeviceptr)::<lambda(Stream&)>]") == "cuMemcpyAsync");
}

TEST_CASE("call log: a function that entries share has its own name") {
    CHECK(called_entry("fenced(Body&&) [with Body = context_entry<{anonymous}::load_module(CUmodule*, const void*)::<lambda(Context&)> >(...)::<lambda()>]") ==
          "load_module");
}
