// SPDX-License-Identifier: Apache-2.0
// Kernels that have the shape of their blocks: `__block_size__` of CUDA 13 (.blocksareclusters), launched with clusters of one thread, with
// an H200's answers; and CUDA Tile's, whose tensor maps host code of the cubin makes.
#include "driver.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

extern "C" CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                              CUstream, void**);

namespace {

using Blocks = std::array<unsigned, 2>;

/// Each block leaves %ntid.x * 10000 + %ntid.y * 1000 + %nctaid.x * 100 + %nctaid.y * 10 + 1 at its place.
std::string program() {
    std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n";
    for (const auto& [name, limits] : {std::pair{"two", ".reqntid 64, 2, 1\n.reqnctapercluster 2, 1, 1\n"},
                                       std::pair{"one", ".reqntid 64, 1, 1\n.reqnctapercluster 1, 1, 1\n"}})
        text += std::string(".visible .entry ") + name + "(.param .u64 out)\n.blocksareclusters\n" + limits + R"({
    .reg .u32 %r<8>; .reg .u64 %l<3>;
    mov.u32 %r0, %ntid.x; mov.u32 %r1, %ntid.y; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %nctaid.y;
    mul.lo.u32 %r4, %r0, 10000; mad.lo.u32 %r4, %r1, 1000, %r4; mad.lo.u32 %r4, %r2, 100, %r4; mad.lo.u32 %r4, %r3, 10, %r4;
    add.u32 %r4, %r4, 1;
    mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y; mad.lo.u32 %r5, %r6, %r2, %r5;
    ld.param.u64 %l0, [out]; mad.wide.u32 %l1, %r5, 4, %l0; st.global.u32 [%l1], %r4;
    ret;
})" + "\n";
    return text;
}

std::vector<std::uint32_t> taken(CUdeviceptr out) {
    std::vector<std::uint32_t> words(16);
    REQUIRE(cuCtxSynchronize() == 0);
    REQUIRE(cuMemcpyDtoH_v2(words.data(), out, 64) == 0);
    REQUIRE(cuMemsetD8_v2(out, 0, 64) == 0);
    while (!words.empty() && words.back() == 0) words.pop_back();
    return words;
}

} // namespace

TEST_CASE("launch: kernels with .blocksareclusters are launched with clusters") {
    driver_test::context();
    CUmodule module = nullptr;
    CUfunction two = nullptr, one = nullptr;
    REQUIRE(cuModuleLoadData(&module, program().c_str()) == 0);
    REQUIRE(cuModuleGetFunction(&two, module, "two") == 0);
    REQUIRE(cuModuleGetFunction(&one, module, "one") == 0);
    CUdeviceptr out = driver_test::allocate(64);
    REQUIRE(cuMemsetD8_v2(out, 0, 64) == 0);
    void* parameters[] = {&out};
    const std::vector<std::uint32_t> of_two(8, 642421), of_one(3, 641311);
    // The block: one thread, or the shape that the kernel has.
    for (const Blocks block : {Blocks{1, 1}, Blocks{64, 1}, Blocks{64, 2}, Blocks{128, 1}, Blocks{32, 1}, Blocks{2, 1}, Blocks{1024, 2}}) {
        INFO("blocks of " << block[0] << " x " << block[1]);
        const bool fits_two = block == Blocks{1, 1} || block == Blocks{64, 2}, fits_one = block == Blocks{1, 1} || block == Blocks{64, 1};
        CHECK(cuLaunchKernel(two, 2, 2, 1, block[0], block[1], 1, 0, nullptr, parameters, nullptr) == (fits_two ? 0 : 1));
        CHECK(taken(out) == (fits_two ? of_two : std::vector<std::uint32_t>()));
        CHECK(cuLaunchKernel(one, 3, 1, 1, block[0], block[1], 1, 0, nullptr, parameters, nullptr) == (fits_one ? 0 : 1));
        CHECK(taken(out) == (fits_one ? of_one : std::vector<std::uint32_t>()));
    }
    CHECK(cuLaunchCooperativeKernel(two, 2, 2, 1, 1, 1, 1, 0, nullptr, parameters) == 0);
    CHECK(taken(out) == of_two);
    CHECK(cuLaunchKernel(two, 0x7fffffff, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == 1);
    CHECK(cuMemFree_v2(out) == 0);
    CHECK(cuModuleUnload(module) == 0);
}

TEST_CASE("launch: CUDA Tile's kernels, whose tensor maps are made by host code of the cubin") {
    driver_test::context();
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    REQUIRE(cuModuleLoad(&module, PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/tile_product.sm_90.cubin") == 0);
    REQUIRE(cuModuleGetFunction(&kernel, module, "pairs") == 0);
    // Halves 0 to 7, so that sums are exact; 96 x 72 of them and 72 x 80.
    constexpr int rows = 96, inner = 72, columns = 80;
    const auto number = [](int i, int j, int salt) { return (i * 7 + j * 5 + salt) % 8; };
    const auto matrix = [&](int height, int width, int salt) {
        constexpr std::uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
        std::vector<std::uint16_t> values;
        for (int i = 0; i < height; ++i)
            for (int j = 0; j < width; ++j) values.push_back(half[number(i, j, salt)]);
        const CUdeviceptr place = driver_test::allocate(2 * values.size());
        REQUIRE(cuMemcpyHtoD_v2(place, values.data(), 2 * values.size()) == 0);
        return place;
    };
    struct Array {
        CUdeviceptr place;
        int height, width, stride, step = 1;
    } arrays[] = {{matrix(rows, inner, 1), rows, inner, inner},
                  {matrix(inner, columns, 2), inner, columns, columns},
                  {driver_test::allocate(4 * rows * columns), rows, columns, columns}};
    std::vector<void*> parameters;
    for (Array& array : arrays)
        for (void* part : {static_cast<void*>(&array.place), static_cast<void*>(&array.height), static_cast<void*>(&array.width),
                           static_cast<void*>(&array.stride), static_cast<void*>(&array.step)})
            parameters.push_back(part);
    std::size_t offset = 0, size = 0;
    CHECK(cuFuncGetParamInfo(kernel, parameters.size() - 1, &offset, &size) == 0);
    CHECK(cuFuncGetParamInfo(kernel, parameters.size(), &offset, &size) == 1); // the maps are nobody's to give
    REQUIRE(cuLaunchKernel(kernel, 2, 2, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr) == 0);
    REQUIRE(cuCtxSynchronize() == 0);
    std::vector<float> products(rows * columns);
    REQUIRE(cuMemcpyDtoH_v2(products.data(), arrays[2].place, 4 * products.size()) == 0);
    int wrong = 0;
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) {
            int sum = 0;
            for (int k = 0; k < inner; ++k) sum += number(i, k, 1) * number(k, j, 2);
            wrong += products[i * columns + j] != static_cast<float>(sum);
        }
    CHECK(wrong == 0);
    CHECK(cuLaunchKernel(kernel, 2, 2, 1, 2, 1, 1, 0, nullptr, parameters.data(), nullptr) == 1);
    for (const Array& array : arrays) CHECK(cuMemFree_v2(array.place) == 0);
    CHECK(cuModuleUnload(module) == 0);
}
